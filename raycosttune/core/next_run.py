"""What one more sample of an epoch time may save of the run to make next."""

import math
from copy import copy

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.fresh import Fresh
from raycosttune.core.outlook import Outlook
from raycosttune.core.step_model import Bools

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def worth_before(outlook: Outlook, fresh: Fresh, is_open: Bools) -> Floats:
    """Returns by how much the next run is expected to get cheaper with a sample of each cell.

    Nothing has reached the target, and a run is to begin at the batch where that costs the
    least. A sample moves what a cell is believed to take and makes it surer: the run may begin
    there then, or go on there where it is at risk to be late, or begin at another batch. Times
    are taken as likely before and after: with caution, knowing more would always seem to save.

    Args:
        outlook: What runs may cost.
        fresh: What starting each batch afresh costs.
        is_open: Whether a cell may be timed, shape (cells,).

    Returns:
        Costs of a run, shape (cells,); 0 at other batches, and where no run has much hope.

    References:
        Frazier, Powell & Dayanik 2008 (the knowledge gradient).
    """
    saved = np.zeros(len(outlook.cells))
    if not fresh.has_hope:
        return saved
    penalty, noise = fresh.loss * outlook.whole, outlook.time.noise

    def cost(of: Outlook, batch_size: int) -> float:
        return of.step(batch_size, penalty=penalty, seconds_left=of.limit)[0]

    likely = copy(outlook)
    likely.caution = 0.0
    costs = [cost(likely, batch) for batch in outlook.batches]
    least, second = sorted([*costs, math.inf])[:2]
    batch = outlook.batches[costs.index(least)]
    for place in outlook.places(batch)[is_open[outlook.places(batch)]].tolist():
        sd = float(outlook.sd[place])
        total = math.hypot(sd, noise)
        moved = outlook.log_seconds[place] + NODES * sd**2 / total
        moved = np.maximum(moved, outlook.time.log_least[outlook.known.places[place]])
        after = [cost(_timed(likely, place, at, sd * noise / total), batch) for at in moved]
        saved[place] = max(least - float(np.minimum(after, second) @ WEIGHTS), 0.0)
    return saved


def _timed(outlook: Outlook, place: int, log_seconds: float, sd: float) -> Outlook:
    """Returns the same outlook with another epoch time of a cell; a failure costs what it did."""
    other = copy(outlook)
    other.log_seconds, other.sd = outlook.log_seconds.copy(), outlook.sd.copy()
    other.log_seconds[place], other.sd[place] = log_seconds, sd
    return other
