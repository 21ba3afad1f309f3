"""What an unfinished run says of the epochs that it still needs."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from raycosttune.core.array import Floats

Points = Sequence[tuple[float, float]]

POWERS = np.array([0.0, 0.25, 0.5, 1.0])  # exponents of learning curves, 0 for a logarithm
RATES = np.array([2.0, 4.0])  # of exponential ones, over the epochs to the target
CURVE_SDS = np.array([0.1, 0.2, 0.4])  # how far off a curve may be, in the log of its share
JUDGED = 4  # places of a curve
LEAST_PROGRESS = 0.97
SMOOTHED = 3
LATEST = 9
PER_MEDIAN = 1.4826 / math.sqrt(1.5)  # deviation of one over the median one from two neighbours
AHEAD = np.geomspace(0.01, 20.0, 160)  # log epochs beyond those that were not enough
SCALE_SD = 0.5
GROWTH, GROWTH_SD = 1.0, 0.8
TAILS, PEAK = 3.0, 0.3676  # degrees of freedom of Student's t, and its density at 0
STEPPED = 0.3  # how often the learning rate of a run falls in steps
AT_ONCE, LATER, FALLEN = 1.1, 1.2, 0.5  # a step: a fall of the gap in a tenth of the epochs


def curve_evidence(gaps: Points, log_epochs: Floats) -> Floats:
    """Log likelihood of a learning curve under hypotheses of the epochs to the target.

    The metric follows a power of the epochs, their logarithm or an exponential, exponent and
    rate unknown: epochs done and epochs to the target then tell which share of the first gap is
    left. How the curve is bent so far tells its law, and how far it is off the law tells how far
    it will be.
    The target is reached by a lucky evaluation: the trend is short of it by their noise then.

    Where the learning rate falls in steps, a run stands still before the fall: gaps larger than
    expected, up to the first one, say little. Once a step was seen a curve says nothing: on no
    smooth law does the gap halve within a tenth of the epochs, and the target stays away.

    Args:
        gaps: Epoch and gap to the target of each evaluation, the gap positive.
        log_epochs: Hypothetical log epochs to the target, any shape.

    Returns:
        Of the shape of `log_epochs`.

    References:
        Hestness et al. 2017 (learning curves as powers); Domhan et al. 2015 (curves
        extrapolated by a family of laws, whose fit tells the deviation).
    """
    if len(gaps) <= 1 or gaps[0][1] <= 0 or has_stepped(gaps):
        return np.zeros_like(log_epochs)
    places = _places(gaps)
    noise = evaluation_noise(gaps) / gaps[0][1]
    shares = np.array([_smoothed(gaps, place) for place in places]) / gaps[0][1]
    shares = np.clip(shares - noise, noise, LEAST_PROGRESS)
    if shares.min() <= 0:
        return np.zeros_like(log_epochs)
    first = math.log(gaps[0][0])
    # A restart goes back some epochs: those made before were not enough either.
    least = math.log(max(epoch for epoch, _ in gaps))
    done = np.log([gaps[place][0] for place in places]) - first
    expected = _expected(least + AHEAD - first, done)
    found = _likely(shares, noise, expected)
    ahead = np.maximum(log_epochs - least, AHEAD[0])
    return np.asarray(np.interp(np.log(ahead), np.log(AHEAD), found), dtype=np.float64)


def evaluation_noise(gaps: Points) -> float:
    """Returns the deviation of one evaluation: how far the latest lie off their neighbours."""
    last = np.array([gap for _, gap in gaps[-LATEST:]])
    if len(last) < SMOOTHED + 2:
        return 0.0
    beside = np.abs(last[1:-1] - (last[:-2] + last[2:]) / 2)
    return float(np.median(beside)) * PER_MEDIAN


def has_stepped(gaps: Points) -> bool:
    """Tells whether a curve fell in a step, as it does when its learning rate falls.

    Args:
        gaps: Epoch and gap to the target of each evaluation.
    """
    levels = [_smoothed(gaps, place) for place in range(len(gaps))]
    to = 0
    for place, (epoch, _) in enumerate(gaps):
        to = max(to, place)
        while to + 1 < len(gaps) and gaps[to + 1][0] <= AT_ONCE * epoch:
            to += 1
        # The levels on both sides have no evaluation in common.
        is_apart = to - place >= SMOOTHED - 1
        if is_apart and levels[to] <= FALLEN * levels[place]:
            return gaps[-1][0] >= LATER * gaps[to][0]
    return False


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


def _places(gaps: Points) -> list[int]:
    """Returns the places that a curve is judged by, about evenly apart in log epochs."""
    end = len(gaps) - 1 - (SMOOTHED // 2 if len(gaps) >= SMOOTHED else 0)
    logs = np.log([epoch for epoch, _ in gaps[: end + 1]])
    parts = np.linspace(logs[0], logs[-1], JUDGED + 1)[1:]
    return sorted({int(np.abs(logs - part).argmin()) for part in parts} - {0} | {end})


def _smoothed(gaps: Points, place: int) -> float:
    """Returns the gap at a place, smoothed where there is something on both sides."""
    about = [gap for _, gap in gaps[max(place - 1, 0) : place + 2]]
    return sorted(about)[1] if len(about) == SMOOTHED else gaps[place][1]


def _expected(span: Floats, done: Floats) -> Floats:
    """Log share of the first gap that is left at each place under each law.

    Args:
        span: Log epochs between the first evaluation and the target, shape (h,).
        done: Log epochs between the first evaluation and each place, shape (k,).

    Returns:
        Shape (laws, k, h).
    """
    left = span - done[:, None]
    power = POWERS[1:, None, None]
    gone = np.log(np.expm1(-power * left) / np.expm1(-power * span)) - power * done[:, None]
    rate = RATES[:, None, None]
    fallen = _fallen(rate, np.exp(-left)) - _fallen(rate, np.exp(-span))
    return np.concatenate([np.log(left / span)[None], gone, fallen])


def _fallen(rate: Floats, part: Floats) -> Floats:
    """Log gap of an exponential after a part of its epochs to the target, up to a constant."""
    return np.asarray(np.log(-np.expm1(-rate * (1 - part))) - rate * part, dtype=np.float64)


def _likely(shares: Floats, noise: float, expected: Floats) -> Floats:
    """Log likelihood of the shares left, over all laws, deviations and schedules, shape (h,)."""
    sd = np.hypot(CURVE_SDS[:, None], noise / shares)[:, None, :, None]
    apart = np.log(shares)[:, None] - expected
    smooth = PEAK / sd * (1 + (apart / sd) ** 2 / TAILS) ** (-(TAILS + 1) / 2)
    waiting = np.where(apart > 0, 1 / np.maximum(-expected, sd), 0.0)
    found = np.logaddexp(
        math.log(1 - STEPPED) + np.log(smooth).sum(axis=2),
        math.log(STEPPED) + np.log((smooth + waiting) / 2).sum(axis=2),
    )
    total = logsumexp(found, axis=(0, 1)) - math.log(len(CURVE_SDS) * len(expected))
    return np.asarray(total, dtype=np.float64)
