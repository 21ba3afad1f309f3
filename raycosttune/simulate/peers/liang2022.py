"""The first joint choice of workers and batch for a target accuracy, read plainly."""

import math
from collections.abc import Sequence

import numpy as np

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation, BatchReading, Space
from raycosttune.simulate.peers.profiling import (
    GROWTH,
    PredictingPeer,
    coarse_grid,
    middle,
    profiles_of,
)
from raycosttune.simulate.peers.surface import Surface


class Liang2022(PredictingPeer):
    """Fits isotonic T(n, b) and A(b, e), minimises the cost, and runs what it chose.

    Only the abstract is public: two isotonic models, of an epoch's time over resources and
    batch and of accuracy over batch and epochs, then the least cost at the accuracy. All else
    is inferred: T comes from profiles at three batches of each power-of-two worker count, A
    from runs at the middle, smallest and largest batch, at the cheapest worker count that T
    says is in time; T is fitted in logs and predicted as the middle of its bounds; epochs to
    the target are read off the fitted A and interpolated between its batches. The cheapest
    predicted cell is run, the next one where it fails.

    Given, beside what PredictingPeer lists: that interpolation, and refits after every run.

    Args:
        space: The cells.
        goal: Target and limits.
        cost: The cost metric.
        seed: Has no effect.
        reading: Whose batch b is: "global" the sum over workers; "local" one worker's own, as
            the abstract words it, with the worker count held while A is learnt.

    References:
        Liang et al. 2022, abstract.
    """

    def __init__(
        self,
        space: Space,
        goal: Goal,
        cost: CostMetric,
        seed: int,
        *,
        reading: BatchReading = "global",
    ) -> None:
        profiles = profiles_of(coarse_grid(space), "T(n, b)")
        super().__init__(space, goal, cost, seed, profiles)
        self._reading = reading
        self._centre = middle(cell.batch_size for cell in space.cells)
        self._ends: list[int] | None = None
        self._epoch_seconds: dict[Allocation, float] = {}
        self._epochs_at: dict[int, float] = {}

    def propose(self) -> Allocation | None:
        """See PredictingPeer."""
        self._fit()
        return self._learn() or self.verify(self.space.cells, self._seconds)

    def _learn(self) -> Allocation | None:
        """Returns the next run for A: the middle batch until it is settled, then the ends."""
        if self._ends is None:
            centre = [cell for cell in self.space.cells if cell.batch_size == self._centre]
            cell = self.learn(centre, self._seconds)
            if cell is not None:
                return cell
            keys = sorted({self._key(cell) for cell in self._learnable()})
            self._ends = [keys[-1], keys[0]]
        while self._ends:
            key = self._ends.pop()
            cells = [cell for cell in self._learnable() if self._key(cell) == key]
            if self.tried.isdisjoint(cells):
                return self.cheapest(cells, self._seconds) or min(cells, key=self._seconds)
        return None

    def _learnable(self) -> Sequence[Allocation]:
        """Returns the cells that A may be learnt in."""
        if self._reading == "global":
            return self.space.cells
        count = self.trials[-1].allocation.workers if self.trials else self.space.workers[0]
        if self.reached:
            count = self.reached[0].allocation.workers
        return [cell for cell in self.space.cells if cell.workers == count]

    def _key(self, cell: Allocation) -> int:
        return cell.batch_size if self._reading == "global" else cell.local_batch

    def _fit(self) -> None:
        """Fits both surfaces to all that was seen."""
        times = Surface.fit(
            [self._point(cell) for cell in self.times],
            [math.log(seconds) for seconds in self.times.values()],
        )
        self._epoch_seconds = {
            cell: math.exp(times.predict(self._point(cell))) for cell in self.space.cells
        }
        self._fit_epochs()

    def _point(self, cell: Allocation) -> tuple[float, float]:
        """Returns the coordinates along which T rises: fewer workers, a smaller batch."""
        return -float(cell.workers), -float(self._key(cell))

    def _fit_epochs(self) -> None:
        """Reads epochs to the target off the fitted A."""
        points = [
            ((-float(self._key(trial.allocation)), report.epoch), self.goal.sign * report.value)
            for trial in self.trials
            for report in trial.reports
            if report.value is not None and math.isfinite(report.value)
        ]
        if not points:
            return
        accuracy = Surface.fit(*zip(*points, strict=True))
        for trial in self.trials:
            if trial.is_reached:
                key = self._key(trial.allocation)
                seen = _first(accuracy, -float(key), self.goal.sign * self.goal.target)
                self._epochs_at[key] = min(seen, trial.epochs)

    def _seconds(self, cell: Allocation) -> float:
        return self.run_seconds(cell, self._epoch_seconds[cell], self._epochs(self._key(cell)))

    def _epochs(self, key: int) -> float:
        """Returns the epochs at a batch.

        Beyond the batches that reached the target they are half as many again as were run in
        vain, at least: A does not rise with the batch.
        """
        if not self._epochs_at:
            return self.guessed_epochs
        batches, largest = sorted(self._epochs_at), max(self._epochs_at)
        rising = np.maximum.accumulate([self._epochs_at[batch] for batch in batches])
        vain = [
            GROWTH * trial.epochs
            for trial in self.trials
            if largest < self._key(trial.allocation) <= key
        ]
        return max([float(np.interp(math.log(key), np.log(batches), rising)), *vain])


def _first(accuracy: Surface, x: float, target: float) -> float:
    """Returns the first epoch of a column at which the fit reaches the target."""
    column = (accuracy.points[:, 0] == x) & (accuracy.values >= target)
    return float(accuracy.points[column, 1].min(initial=math.inf))
