"""One resource at a time: workers and then the batch, or the batch and then workers."""

from collections.abc import Sequence

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.profile import Profile
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.peers.profiling import (
    PredictingPeer,
    coarse_counts,
    interpolated,
    middle,
    profiles_of,
)


class _OneAtATime(PredictingPeer):
    """Has the two halves: batches by runs at a worker count, workers by profiles at a batch."""

    workers: int | None = None

    def try_batches(self) -> Allocation | None:
        """Returns the next batch to run at `workers`, which grow while none was in time."""
        larger = sorted(n for n in coarse_counts(self.space.cells) if n > (self.workers or 0))
        for workers in [self.workers or larger[0], *larger]:
            self.workers = workers
            cell = self.climb(self.row(workers))
            if cell is not None or self.done:
                return cell
        return None

    def climb(self, cells: Sequence[Allocation]) -> Allocation | None:
        """Returns the next batch to run: from the middle up, then down, while it gets cheaper.

        A side is left at a run that isn't cheaper; all are tried while none was in time.

        Args:
            cells: One cell for each batch, by rising batch.
        """
        tried = [k for k, cell in enumerate(cells) if cell in self.tried]
        if not tried:
            return cells[len(cells) // 2]
        best = min((cell for cell in cells if cell in self.done), key=self._paid, default=None)
        above, below = (tried[-1], tried[0]) if best is None else (cells.index(best),) * 2
        beside = [cells[k] for k in (above + 1, below - 1) if 0 <= k < len(cells)]
        return next((cell for cell in beside if cell not in self.tried), None)

    def _paid(self, cell: Allocation) -> float:
        return self.done[cell].cost

    def seconds_at(self, cell: Allocation) -> float:
        """Predicts a run from epoch times and epochs at the cell's own batch."""
        column = self.column(self.space.user_batch(cell))
        same = {other: self.times[other] for other in column if other in self.times}
        epochs = [trial.epochs for trial in self.reached if trial.allocation in column]
        guess = epochs[-1] if epochs else self.guessed_epochs
        return self.run_seconds(cell, interpolated(same, cell), guess)

    def column(self, batch: int) -> list[Allocation]:
        """Returns the cells with a batch as the user reads it, by rising worker count."""
        return [cell for cell in self.space.cells if self.space.user_batch(cell) == batch]

    def row(self, workers: int) -> list[Allocation]:
        """Returns the cells with a worker count, by rising batch."""
        return [cell for cell in self.space.cells if cell.workers == workers]

    def profile_column(self, batch: int) -> list[Profile]:
        """Returns profiles of a batch at the coarse worker counts that have none."""
        column = self.column(batch)
        counts = coarse_counts(column)
        missing = [c for c in column if c.workers in counts and c not in self.times]
        return profiles_of(missing, "T at the chosen batch")


class WorkersThenBatch(_OneAtATime):
    """Chooses workers at the middle batch of the grid, then the batch at these workers.

    Workers come from profiles and from the epochs of a run at that batch, batches from full
    runs; where none of these was in time the next power of two of workers is taken.

    Given, beside what PredictingPeer lists: no full run is needed for each worker count,
    profiles at powers of two are interpolated, and batches are tried from the middle outwards
    while they get cheaper.
    """

    def __init__(self, space: Space, goal: Goal, cost: CostMetric, seed: int) -> None:
        super().__init__(space, goal, cost, seed)
        self._batch = middle(map(space.user_batch, space.cells))
        self.profiles.extend(self.profile_column(self._batch))

    def propose(self) -> Allocation | None:
        """See PredictingPeer."""
        if self.workers is None:
            column = self.column(self._batch)
            cell = self.learn(column, self.seconds_at)
            if cell is not None:
                return cell
            chosen = self.cheapest(column, self.seconds_at) or min(column, key=self.seconds_at)
            self.workers = chosen.workers
            if chosen not in self.tried:
                return chosen
        return self.try_batches()


class BatchThenWorkers(_OneAtATime):
    """Chooses the batch at the middle worker count of the grid, then workers at this batch.

    Batches come from full runs, workers from profiles at the chosen batch and the epochs that
    its run took; the chosen workers are run, and on a miss the next. Where no batch was in
    time they are tried again at the next power of two of workers.

    Given: as WorkersThenBatch.
    """

    def __init__(self, space: Space, goal: Goal, cost: CostMetric, seed: int) -> None:
        super().__init__(space, goal, cost, seed)
        self.workers = middle(cell.workers for cell in space.cells)
        self._batch: int | None = None

    def propose(self) -> Allocation | Profile | None:
        """See PredictingPeer."""
        if self._batch is None:
            cell = self.try_batches()
            if cell is not None:
                return cell
            closest = min(self.trials, key=lambda trial: trial.shortfall).allocation
            self._batch = self.space.user_batch(self.choose() or closest)
            self.profiles.extend(self.profile_column(self._batch))
            if self.profiles:
                return self.profiles.popleft()
        return self.verify(self.column(self._batch), self.seconds_at)
