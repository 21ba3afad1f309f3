"""What the peers that predict share: profiles on a coarse grid, and runs that verify."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.profile import Profile
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.peer import Peer, PeerTrial

GUESSED_EPOCHS = 20.0
GROWTH = 1.5
MOST_IN_VAIN = 3
Predict = Callable[[Allocation], float]


class PredictingPeer(Peer):
    """Profiles first and then runs what its predictions say; a child has `propose`.

    Given to every child: start-up seconds as seen; epoch times of its runs, which replace
    those of profiles; that a batch whose run came to its own end short of the target is
    dropped; and, while no run has reached it, a guess of 20 epochs, or of half as many again
    as any run did in vain, so that a deadline is approached from below.

    Args:
        space: The cells.
        goal: Target and limits.
        cost: The cost metric.
        seed: Has no effect: nothing is drawn.
        profiles: What to profile before the first run.
    """

    def __init__(
        self,
        space: Space,
        goal: Goal,
        cost: CostMetric,
        seed: int,
        profiles: Iterable[Profile] = (),
    ) -> None:
        super().__init__(space, goal, cost, seed)
        self.profiles = deque(profiles)
        self.limit = goal.deadline_seconds or math.inf
        self._verified: Allocation | None = None

    def ask(self) -> Allocation | Profile | None:
        """See Peer."""
        return self.profiles.popleft() if self.profiles else self.propose()

    def propose(self) -> Allocation | Profile | None:
        """Returns the next run, None when it has finished."""
        raise NotImplementedError

    def tell(self, trial: PeerTrial) -> None:
        """See Peer."""
        if trial.epochs:
            self.times[trial.allocation] = trial.epoch_seconds

    @property
    def done(self) -> dict[Allocation, PeerTrial]:
        """The runs that reached the target in time, by cell."""
        return {trial.allocation: trial for trial in self.reached}

    @property
    def tried(self) -> set[Allocation]:
        """The cells that were run."""
        return {trial.allocation for trial in self.trials}

    @property
    def failed(self) -> set[Allocation]:
        """The cells that are out: run in vain, or of a batch that never reaches the target."""
        vain = [trial for trial in self.trials if trial.allocation not in self.done]
        dropped = {t.allocation.batch_size for t in vain if not t.is_reached and self._ran_out(t)}
        batches = {cell for cell in self.space.cells if cell.batch_size in dropped}
        return batches.union(trial.allocation for trial in vain)

    def _ran_out(self, trial: PeerTrial) -> bool:
        """Tells whether a run ended although neither the deadline nor its cost cut it."""
        following = trial.reports[-1].training_seconds if trial.reports else 0.0
        return trial.seconds + following <= self.limit and trial.cost < self.incumbent_cost

    @property
    def guessed_epochs(self) -> float:
        """Epochs to the target while no run has shown them."""
        return max([GUESSED_EPOCHS, *(GROWTH * trial.epochs for trial in self.trials)])

    def run_seconds(self, cell: Allocation, epoch_seconds: float, epochs: float) -> float:
        """Returns the seconds of a run, as measured where it was made."""
        if cell in self.done:
            return self.done[cell].seconds
        return self.startup(cell.workers) + epoch_seconds * epochs

    def cheapest(self, cells: Iterable[Allocation], seconds: Predict) -> Allocation | None:
        """Returns the cheapest cell that is predicted in time and has not failed."""
        failed = self.failed
        in_time = [c for c in cells if c not in failed and seconds(c) <= self.limit]
        return min(in_time, key=lambda c: self.cost_of(c, seconds(c)), default=None)

    def learn(self, cells: Sequence[Allocation], seconds: Predict) -> Allocation | None:
        """Returns a run that may show the epochs of some cells, None once that is settled.

        It is settled when one of them reached the target, or the fastest or three did not.
        """
        fastest = min(cells, key=seconds)
        tried = self.tried.intersection(cells)
        if fastest in tried or tried & self.done.keys() or len(tried) >= MOST_IN_VAIN:
            return None
        return self.cheapest(cells, seconds) or fastest

    def verify(self, cells: Sequence[Allocation], seconds: Predict) -> Allocation | None:
        """Returns the cheapest cell to run; None once such a choice has reached the target.

        Where none is predicted in time and no run was, the fastest untried one is returned.
        """
        if self._verified in self.done:
            return None
        best = self.cheapest(cells, seconds)
        if best in self.done:
            return None
        if best is None and not self.done:
            failed = self.failed
            return min((c for c in cells if c not in failed), key=seconds, default=None)
        self._verified = best if self.done else None
        return best


def middle(values: Iterable[int]) -> int:
    """Returns the middle of some distinct values, the larger one of two."""
    ordered = sorted(set(values))
    return ordered[len(ordered) // 2]


def coarse_counts(cells: Iterable[Allocation]) -> set[int]:
    """Returns the least and the largest worker count, and the powers of two between."""
    counts = {cell.workers for cell in cells}
    return {n for n in counts if n in (min(counts), max(counts)) or n.bit_count() == 1}


def profiles_of(cells: Iterable[Allocation], why: str) -> list[Profile]:
    """Returns a profile for each worker count, so that no worker is paid for idling."""
    by_count: dict[int, list[Allocation]] = {}
    for cell in sorted(cells):
        by_count.setdefault(cell.workers, []).append(cell)
    return [Profile(tuple(group), why=why) for group in by_count.values()]


def coarse_grid(space: Space) -> list[Allocation]:
    """Returns the smallest, middle and largest batch at each coarse worker count."""
    grid = set()
    for count in coarse_counts(space.cells):
        row = sorted(cell for cell in space.cells if cell.workers == count)
        grid |= {row[0], row[len(row) // 2], row[-1]}
    return sorted(grid)


def interpolated(times: dict[Allocation, float], cell: Allocation) -> float:
    """Returns the epoch time at a worker count, linear in log-log between the nearest counts.

    Args:
        times: Measured epoch times, not empty, with one batch for each worker count.
        cell: Where to predict.
    """
    known = sorted(times, key=lambda measured: measured.workers)
    counts = np.log([measured.workers for measured in known])
    seconds = np.log([times[measured] for measured in known])
    return float(np.exp(np.interp(math.log(cell.workers), counts, seconds)))
