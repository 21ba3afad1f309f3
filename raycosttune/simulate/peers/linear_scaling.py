"""The practitioner's rule: more workers, each with the batch it had."""

import math

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.peers.profiling import (
    PredictingPeer,
    coarse_counts,
    interpolated,
    profiles_of,
)


class LinearScaling(PredictingPeer):
    """Keeps the smallest batch per worker and supposes that epochs stay as they are.

    Its line holds, for each worker count, the legal batch that is nearest to count x base
    batch. Profiles along it give T, one run at its smallest worker count the epochs; then the
    cheapest cell that is predicted in time is run, and on a miss the next.

    Given, beside what PredictingPeer lists: profiles at powers of two, interpolated to the
    other worker counts.

    References:
        Goyal et al. 2017 (the batch grows with the workers, epochs stay).
    """

    def __init__(self, space: Space, goal: Goal, cost: CostMetric, seed: int) -> None:
        super().__init__(space, goal, cost, seed)
        self.line = scaling_line(space)
        counts = coarse_counts(self.line)
        coarse = [cell for cell in self.line if cell.workers in counts]
        self.profiles.extend(profiles_of(coarse, "T along the line"))

    def propose(self) -> Allocation | None:
        """See PredictingPeer."""
        return self.line[0] if not self.trials else self.verify(self.line, self._seconds)

    def _seconds(self, cell: Allocation) -> float:
        epochs = self.reached[-1].epochs if self.reached else self.guessed_epochs
        return self.run_seconds(cell, interpolated(self.times, cell), epochs)


def scaling_line(space: Space) -> list[Allocation]:
    """Returns one cell for each worker count, with the base's batch per worker."""
    base = min(space.cells)
    nearest: dict[int, Allocation] = {}
    for cell in space.cells:
        best = nearest.setdefault(cell.workers, cell)
        if _distance(cell, base) < _distance(best, base):
            nearest[cell.workers] = cell
    return list(nearest.values())


def _distance(cell: Allocation, base: Allocation) -> float:
    """Returns how far the batch per worker is from the base's, in logs."""
    return abs(math.log(cell.batch_size / cell.workers * base.workers / base.batch_size))
