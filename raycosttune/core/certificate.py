"""How much an untried configuration could still save."""

import math
from dataclasses import dataclass

from raycosttune.core.knowledge import Incumbent, Knowledge


@dataclass(frozen=True)
class Certificate:
    """Bounds what any untried choice of workers and batch could save.

    It holds among the offered workers and batches, with the recipes tried, under these
    assumptions with their slack: epoch time falls with the batch and with the workers of
    a node, worker-seconds rise with the workers; epochs to the target rise with the batch
    by at most the batch's own factor; recipes differ by a factor.

    Attributes:
        gap: Largest fraction of the plan's cost that could be saved, in [0, 1].
        untried: Cells that could still be cheaper, as far as is known.
        time_slack: Relative slack of the bounds on epoch time.
        epochs_slack: Relative slack of the bounds on epochs.
    """

    gap: float
    untried: int
    time_slack: float
    epochs_slack: float

    @property
    def saving(self) -> str:
        """The most that could be saved, in words."""
        if self.untried == 0:
            return "nothing untried can be cheaper"
        return f"nothing untried can save more than {math.ceil(self.gap * 100)}%"

    def __str__(self) -> str:
        """Says the certificate in a sentence."""
        return (
            f"among these workers and batches, with the recipes tried, {self.saving} (slack "
            f"{self.time_slack:.0%} on epoch time, {self.epochs_slack:.0%} on epochs)"
        )


def certify(known: Knowledge, incumbent: Incumbent) -> Certificate:
    """Bounds the saving of every cell that was not measured through."""
    limit = known.goal.deadline_seconds or math.inf
    tried = {other.allocation for other in known.measured if other.recipe == incumbent.recipe}
    gap, untried = 0.0, 0
    for cell in known.cells:
        if cell in tried:
            continue
        epochs = known.accuracy.floor(cell.batch_size, incumbent.recipe)
        seconds = known.least_seconds(cell, epochs)
        if seconds > limit:
            continue
        least = known.cost_of(cell, seconds)
        if least < incumbent.cost.mid:
            untried += 1
            gap = max(gap, 1 - least / incumbent.cost.mid)
    return Certificate(gap, untried, math.expm1(known.time.slack), math.expm1(known.accuracy.slack))
