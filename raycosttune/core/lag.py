"""What the learning curve of one batch says of the epochs that another one needs."""

import math

import numpy as np
from scipy.special import logsumexp

from raycosttune.core.array import Floats
from raycosttune.core.learning_curve import TAILS, Points, evaluation_noise

GROWTHS = (0.5, 1.0)  # powers of the epochs with which a lag may grow
LAG_SD = 0.2  # how far off a lag may be, in the log of the epochs that it tells


def lag_evidence(gaps: Points, other: Points, ends: Floats, log_epochs: Floats) -> Floats | None:
    """Log likelihood of a learning curve beside one at another batch that came nearer.

    A larger batch comes to each level later. Were the gradient noise scale the same all along,
    its lag would grow with the epochs; as it grows in training, more of the lag comes early, and
    where it grows with the root of the epochs, so does the lag. By either law the lag at a level
    that both have seen tells the one at the target. Where levels are as near to each other as
    evaluations are noisy, it is as uncertain as they are.

    Args:
        gaps: Epoch and gap to the target of each evaluation.
        other: The same of a run at another batch, up to the target if it came so far.
        ends: Hypothetical epochs to the target of the other run.
        log_epochs: Hypothetical log epochs to the target, of a shape that `ends` fits.

    Returns:
        Of the shape of `log_epochs`; None where no level was seen by both.

    References:
        McCandlish et al. 2018 (1 + b / B_noise, and the noise scale grows in training).
    """
    if not gaps or not other:
        return None
    nearest, done = min(gap for _, gap in gaps), max(epoch for epoch, _ in gaps)
    epochs, levels = np.array(other).T
    levels = np.minimum.accumulate(levels)
    if nearest <= 0 or not levels[-1] <= nearest < levels[0]:
        return None
    noise = max(evaluation_noise(gaps), evaluation_noise(other))
    early, then, late = (_first(epochs, levels, nearest + k * noise) for k in (1, 0, -1))
    ends = np.maximum(ends, then)
    found = []
    for growth in GROWTHS:
        grown = (then / ends) ** growth
        whole = np.maximum(ends + (done - then) / grown, done)
        sd = np.hypot(LAG_SD, (late - early) / 2 / grown / whole)
        apart = (log_epochs - np.log(whole)) / sd
        # Heavy tails: a learning rate that falls at set epochs moves levels at will.
        found.append(-np.log(sd) - (TAILS + 1) / 2 * np.log1p(apart**2 / TAILS))
    return np.asarray(logsumexp(found, axis=0) - math.log(len(GROWTHS)), dtype=np.float64)


def _first(epochs: Floats, levels: Floats, level: float) -> float:
    """Returns the epoch at which falling levels come down to one, or to the last of them."""
    level = max(level, float(levels[-1]))
    at = int(np.argmax(levels <= level))
    if at == 0:
        return float(epochs[0])
    part = (levels[at - 1] - level) / (levels[at - 1] - levels[at])
    return float(epochs[at - 1] + part * (epochs[at] - epochs[at - 1]))
