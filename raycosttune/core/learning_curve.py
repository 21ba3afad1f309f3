"""What an unfinished run says of the epochs that it still needs."""

import math
from collections.abc import Sequence

import numpy as np

from raycosttune.core.array import Floats

Points = Sequence[tuple[float, float]]

CURVE_SD = 0.4
LEAST_PROGRESS = 0.97
SMOOTHED = 3
SCALE_SD = 0.5
GROWTH, GROWTH_SD = 1.0, 0.8
TAILS, PEAK = 3.0, 0.3676  # degrees of freedom of Student's t, and its density at 0
STEPPED = 0.3  # how often a run waits for its learning rate to fall


def curve_evidence(gaps: Points, log_epochs: Floats) -> Floats:
    """Log likelihood of a learning curve under hypotheses of the epochs to the target.

    The gap to the target shrinks linearly in the logarithm of the epochs, as it roughly does
    under many schedules; only its share of the first gap counts, with a wide deviation, since
    power laws bend the curve. Where the learning rate falls in steps, a run stands still before
    the fall: a gap that is larger than expected, up to the first one, says little.

    Args:
        gaps: Epoch and gap to the target of each evaluation, the gap positive.
        log_epochs: Hypothetical log epochs to the target, any shape.

    Returns:
        Of the shape of `log_epochs`.
    """
    if len(gaps) == 1 or not gaps or gaps[0][1] <= 0:
        return np.zeros_like(log_epochs)
    last = gaps[-SMOOTHED:] if len(gaps) >= SMOOTHED else gaps[-1:]
    share = min(float(np.median([gap for _, gap in last])) / gaps[0][1], LEAST_PROGRESS)
    if share <= 0:
        return np.zeros_like(log_epochs)
    first, now = math.log(gaps[0][0]), math.log(last[len(last) // 2][0])
    # A restart goes back some epochs: those made before were not enough either.
    furthest = max(epoch for epoch, _ in gaps)
    ends = np.maximum(log_epochs, math.log(furthest) + 0.01)
    expected = np.log((ends - now) / (ends - first))
    apart = (math.log(share) - expected) / CURVE_SD
    smooth = PEAK / CURVE_SD * (1 + apart**2 / TAILS) ** (-(TAILS + 1) / 2)
    waiting = np.where(apart > 0, 1 / np.maximum(-expected, CURVE_SD), 0.0)
    return np.asarray(np.log((1 - STEPPED) * smooth + STEPPED * waiting), dtype=np.float64)


def scale_evidence(
    scales: Points, reached: float | None, log_epochs: Floats, log_scale: Floats
) -> Floats:
    """Log likelihood of the noise scales that a run measured.

    What acts on the epochs to the target is about the noise scale half-way to it. Before, it
    is lower, by about the ratio of the epochs: an early reading is shifted so far, and its
    interval widened. The first one of a run goes back to its start, where the noise scale is
    nearly 0 whatever becomes of it: it says nothing.

    Args:
        scales: Epoch and gradient noise scale in samples of each evaluation.
        reached: Epochs to the target, None while they are unknown.
        log_epochs: Hypothetical log epochs to the target, shape (s, o).
        log_scale: Log noise scale of each law, shape (s,).

    Returns:
        Shape (s, o).

    References:
        McCandlish et al. 2018 (the noise scale grows in training).
    """
    later = sorted(scales)[1:]
    if not later:
        return np.zeros_like(log_epochs)
    ends = log_epochs if reached is None else np.full_like(log_epochs, math.log(reached))
    half = ends - math.log(2)
    epochs, found = np.log(np.array(later)).T
    beyond = np.maximum(half - epochs[-1], 0.0)
    expected = np.interp(half, epochs, found) + GROWTH * beyond
    sd = np.hypot(SCALE_SD, GROWTH_SD * beyond)
    apart = (log_scale[:, None] - expected) / sd
    # Heavy tails: the early readings of a run can be nearly 0.
    return np.asarray(-np.log(sd) - 2 * np.log1p(apart**2 / TAILS), dtype=np.float64)
