"""Whether a run has turned: its metric has got worse, and stays so."""

import math
from collections.abc import Sequence

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.learning_curve import PER_MEDIAN

LATE = 4.0  # times the epochs of the best evaluation, after which a run counts as turned
LATER = 10  # evaluations after the best one at least
FIRM = 4.0  # deviations of an evaluation, or steps between its values, that it has got worse
PART = 0.05  # of all that it had got better


def turned(gaps: Sequence[tuple[float, float]]) -> float | None:
    """Returns the epoch since when a run has been getting worse, None for one that has not.

    A metric that waits for its learning rate to fall stands still, and one that is noisy comes
    back. A run turns where it is worse than it was by more than its noise, at every evaluation
    of the later half of what it made since: one whose loss rises by overfitting comes back to
    its best rarely, and beyond it, to the target, more rarely still. Learning rates that restart
    make a metric worse for up to twice the epochs before; four times are awaited.

    Args:
        gaps: Epoch and gap to the target of each evaluation, in turn.

    References:
        Prechelt 1998 (when to stop a run whose validation error rises).
    """
    if len(gaps) < LATER + 2:
        return None
    epochs, single = np.array(gaps, dtype=np.float64).T
    levels = np.median(np.stack([single[:-2], single[1:-1], single[2:]]), axis=0)
    epochs = epochs[1:-1]
    best = int(levels.argmin())
    since, after = float(epochs[best]), single[best + 1 :]
    if single.min() <= 0 or len(after) <= LATER or epochs[-1] < LATE * since:
        return None
    rise = levels[epochs >= (since + epochs[-1]) / 2].min() - levels[best]
    least = max(FIRM * _noise(after), PART * (levels[0] - levels[best]))
    return since if rise > least else None


def _noise(single: Floats) -> float:
    """Returns the deviation of an evaluation, or the least step of its values if that is more."""
    beside = np.abs(single[1:-1] - (single[:-2] + single[2:]) / 2)
    steps = np.diff(np.unique(single))
    return max(float(np.median(beside)) * PER_MEDIAN, float(steps.min(initial=math.inf)))
