"""What starting each batch afresh would cost, and what a failure is taken to cost by that."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.outlook import Outlook

LOSS = 2.0  # a failure's least cost, in whole runs
LOSSES = tuple(np.geomspace(LOSS, 16 * LOSS, 65).tolist())
HOPEFUL = 0.95  # a fresh run that costs a larger part of a failure has little hope


@dataclass(frozen=True)
class Fresh:
    """Is what starting each batch afresh would cost.

    Attributes:
        costs: Expected cost by batch, shape (b,).
        places: Places of the cells to start in.
        loss: What a failure was taken to cost at least, in whole runs.
        has_hope: Whether the cheapest costs less than a failure.
    """

    costs: Floats
    places: tuple[int, ...]
    loss: float
    has_hope: bool


def valued(outlook: Outlook) -> Fresh:
    """Values a fresh run at each batch; the worse the prospects, the dearer a failure.

    A failure costs another fresh run: the least loss at which one costs less than it.
    """

    def at(loss: float) -> Fresh:
        return _at_loss(outlook, loss)

    found = at(LOSS)
    if found.has_hope:
        return found
    # What a fresh run costs grows ever slower with the loss: hope once found stays.
    place = bisect_left(LOSSES, 1, lo=1, hi=len(LOSSES) - 1, key=lambda loss: at(loss).has_hope)
    return at(LOSSES[place])


def _at_loss(outlook: Outlook, loss: float) -> Fresh:
    penalty = loss * outlook.whole
    steps = [
        outlook.step(batch, penalty=penalty, seconds_left=outlook.limit)
        for batch in outlook.batches
    ]
    costs = np.array([cost for cost, _ in steps])
    has_hope = bool(costs.min() < HOPEFUL * penalty)
    return Fresh(costs, tuple(place for _, place in steps), loss, has_hope)
