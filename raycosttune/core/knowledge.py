"""Everything that the records of a sweep say, at one moment."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import geometric_mean

from raycosttune.core.accuracy_surrogate import AccuracySurrogate
from raycosttune.core.cost import CostMetric, checked_cost
from raycosttune.core.digest import Digest, Digests
from raycosttune.core.goal import Goal
from raycosttune.core.held import resized, was_resized
from raycosttune.core.observation import EndCause, Recipe, TrialRecord
from raycosttune.core.prediction import Prediction
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.space import Allocation, Space
from raycosttune.core.startup import Startup, fitted_startup
from raycosttune.core.time_surrogate import TimeSurrogate, fitted_time

FAILURES_PER_CELL = 2
HOUR = 3600.0
CAUTION, LEAST_CAUTION = 1.3, 0.02  # in deviations of an epoch time, and at least


@dataclass(frozen=True)
class Incumbent:
    """Is a configuration whose time and epochs are both measured.

    Attributes:
        allocation: Workers and batch.
        recipe: Key of the recipe.
        record: The trial that reached the target with this batch and recipe.
        epochs: Epochs to the target.
        seconds: Start-up and training to the target.
        cost: What that costs.
    """

    allocation: Allocation
    recipe: str
    record: TrialRecord
    epochs: Prediction
    seconds: Prediction
    cost: Prediction


class Knowledge:
    """Reads the records once and holds the surrogates fitted to them.

    Args:
        records: Every trial, in the order of their start.
        space: The legal cells.
        goal: Target and limits.
        cost: The cost metric.
        digests: Sums the records up, kept from one moment to the next; fresh by default.
        profiles: Every profile, likewise.
    """

    def __init__(
        self,
        records: Sequence[TrialRecord],
        space: Space,
        goal: Goal,
        cost: CostMetric,
        digests: Digests | None = None,
        profiles: Sequence[ProfileRecord] = (),
    ) -> None:
        self.records = records
        self.space = space
        self.goal = goal
        self.cost = cost
        self.profiles = profiles
        self.digests = tuple(map(digests or Digests(goal), records))

    @cached_property
    def time(self) -> TimeSurrogate:
        """Epoch time by cell."""
        samples: dict[Allocation, tuple[float, ...]] = {}
        for digest in self.digests:
            for workers, seconds in digest.epoch_seconds.items():
                cell = resized(self.space, digest.record.allocation, workers)
                samples[cell] = samples.get(cell, ()) + seconds
        for record in self.profiles:
            for cell, second in record.epoch_seconds.items():
                samples[cell] = (*samples.get(cell, ()), second)
        return fitted_time(self.space, tuple(samples.items()))

    @cached_property
    def startup(self) -> Startup:
        """Start-up by worker count."""
        samples: dict[int, tuple[float, ...]] = {}
        for digest in self.digests:
            for workers, seconds in digest.startup_seconds.items():
                samples[workers] = samples.get(workers, ()) + seconds
        for record in self.profiles:
            if record.shown is not None and record.epoch_seconds:
                workers = record.profile.held.workers
                samples[workers] = (*samples.get(workers, ()), record.shown.startup_seconds)
        return fitted_startup(tuple(samples.items()))

    @cached_property
    def samples_per_epoch(self) -> float | None:
        """Samples of an epoch as profiles show them, None before the first."""
        found = (record.samples_per_epoch for record in self.profiles)
        return next((samples for samples in found if samples is not None), None)

    @cached_property
    def unprofiled(self) -> frozenset[Allocation]:
        """Cells that a profile left out which timed others."""
        timed = (record for record in self.profiles if record.epoch_seconds)
        return frozenset(
            cell
            for record in timed
            for cell in record.profile.cells
            if cell not in record.epoch_seconds
        )

    @cached_property
    def period(self) -> float:
        """Epochs between evaluations, 1 before the first."""
        periods = (
            run.record.epoch / len(run.record.run)
            for run in self.digests
            if run.record.reports and run.record.epoch > 0
        )
        return min(periods, default=1.0)

    @cached_property
    def is_delivered(self) -> bool:
        """Whether a run has reached the target by the deadline, on whatever workers."""
        limit = self.goal.deadline_seconds or math.inf
        return any(d.reached is not None and d.seconds_to_target <= limit for d in self.digests)

    def rate(self, cell: Allocation) -> float:
        """Returns what a second in a cell costs, where it is held for an hour."""
        return self.cost_of(cell, HOUR) / HOUR

    @cached_property
    def accuracy(self) -> AccuracySurrogate:
        """Epochs to the target by batch and recipe."""
        batches = sorted({cell.batch_size for cell in self.space.cells})
        return AccuracySurrogate(batches, [d.epochs for d in self.digests if d.epochs is not None])

    @cached_property
    def recipes(self) -> dict[str, Recipe]:
        """The recipes tried, by key."""
        return {digest.recipe: digest.record.recipe for digest in self.digests}

    @cached_property
    def cells(self) -> tuple[Allocation, ...]:
        """The cells that may still be tried: those that fail again and again are dropped."""
        if not self._failures and not self._out_of_memory:
            return self.space.cells
        return tuple(cell for cell in self.space.cells if not self._is_broken(cell))

    @cached_property
    def incumbent(self) -> Incumbent | None:
        """The cheapest configuration measured to reach the target by the deadline."""
        if self.measured:
            return min(self.measured, key=lambda known: known.cost.mid)
        return min(self._delivered, key=lambda known: known.seconds.mid, default=None)

    @cached_property
    def measured(self) -> tuple[Incumbent, ...]:
        """Every configuration with known epochs and known epoch time that meets the deadline."""
        limit = self.goal.deadline_seconds or math.inf
        return tuple(known for known, deadline in self.demonstrated if deadline <= limit)

    @cached_property
    def demonstrated(self) -> tuple[tuple[Incumbent, float], ...]:
        """Every configuration with known epochs and epoch time, and the least deadline it meets."""
        found = []
        for incumbent, runs in self._candidates():
            cell = incumbent.allocation
            own = (
                run.seconds_to_target
                for run in runs
                if run.record.allocation == cell and not was_resized(run.record)
            )
            found.append((incumbent, min([*own, self.cautious(cell, incumbent.seconds.mid)])))
        return tuple(found)

    def cautious(self, cell: Allocation, seconds: float) -> float:
        """Returns the deadline that a run expected to take so long in a cell counts as meeting."""
        return seconds * math.exp(max(LEAST_CAUTION, CAUTION * self.time.sd(cell)))

    @property
    def _delivered(self) -> Iterator[Incumbent]:
        """Configurations of which a run that changed its workers met the deadline."""
        limit = self.goal.deadline_seconds or math.inf
        for incumbent, runs in self._candidates():
            if any(run.seconds_to_target <= limit for run in runs):
                yield incumbent

    def _candidates(self) -> Iterator[tuple[Incumbent, list[Digest]]]:
        """Yields every configuration with known epochs and epoch time, and its runs."""
        timed = [cell for cell in self.cells if self.time.is_measured(cell)]
        for (batch, recipe), runs in self._reached.items():
            for cell in (cell for cell in timed if cell.batch_size == batch):
                yield self._incumbent(cell, recipe, runs), runs

    @cached_property
    def _reached(self) -> dict[tuple[int, str], list[Digest]]:
        """The trials that reached the target, by batch and recipe."""
        reached: dict[tuple[int, str], list[Digest]] = defaultdict(list)
        for digest in self.digests:
            if digest.reached is not None:
                reached[digest.record.allocation.batch_size, digest.recipe].append(digest)
        return reached

    @cached_property
    def remaining_runs(self) -> int:
        """Runs still to be paid for after the search: one model may already be in hand."""
        return self.goal.planned_runs - self.is_delivered

    @cached_property
    def own_ends(self) -> tuple[float, ...]:
        """Epochs at which runs ended by themselves before the target."""
        return tuple(
            record.epoch
            for record in self.records
            if record.ended
            and record.ended.cause is EndCause.FINISHED
            and record.reports
            and record.reports[-1].value is not None
        )

    @cached_property
    def misses(self) -> Counter[Allocation]:
        """How often runs in a cell ended before the target."""
        return Counter(
            digest.record.allocation
            for digest in self.digests
            if digest.record.ended and digest.reached is None and digest.record.reports
        )

    @cached_property
    def guessed_scale(self) -> float:
        """Seconds behind a relative epoch time while none is measured.

        The fastest cell is guessed to need half the deadline.
        """
        if self.goal.deadline_seconds is None:
            return 1.0
        fastest = min(
            self.time.predict(cell).mid * self.accuracy.samples(None, cell.batch_size).mean
            for cell in self.cells
        )
        return self.goal.deadline_seconds / 2 / fastest

    def cost_of(self, cell: Allocation, seconds: float) -> float:
        """Returns the cost of holding a cell for so many seconds, checked."""
        return checked_cost(self.cost, cell, seconds)

    def bounded_cost(self, cell: Allocation, seconds: Prediction) -> Prediction:
        """Returns the cost of a predicted time."""
        high = self.cost_of(cell, seconds.high) if math.isfinite(seconds.high) else math.inf
        return Prediction(self.cost_of(cell, seconds.low), self.cost_of(cell, seconds.mid), high)

    def least_seconds(self, cell: Allocation, epochs: float) -> float:
        """Bounds the time to so many epochs in a cell from below."""
        return self.startup.predict(cell.workers).low + self.time.least(cell) * epochs

    def _incumbent(self, cell: Allocation, recipe: str, runs: Sequence[Digest]) -> Incumbent:
        seen = [run.epochs for run in runs if run.epochs is not None]
        mid = round(geometric_mean(epochs.high for epochs in seen), 6)
        epochs = Prediction(min(e.low for e in seen), mid, max(e.high for e in seen))
        start, epoch = self.startup.predict(cell.workers), self.time.predict(cell)
        seconds = Prediction(
            start.low + epoch.low * epochs.low,
            start.mid + epoch.mid * epochs.mid,
            start.high + epoch.high * epochs.high,
        )
        cost = self.bounded_cost(cell, seconds)
        return Incumbent(cell, recipe, runs[-1].record, epochs, seconds, cost)

    def _is_broken(self, cell: Allocation) -> bool:
        out = self._out_of_memory
        larger = sum(other.local_batch <= cell.local_batch for other in out)
        failed = self._failures[cell] >= FAILURES_PER_CELL
        return failed or cell in out or larger >= FAILURES_PER_CELL

    @cached_property
    def _failures(self) -> Counter[Allocation]:
        """How often each cell failed before a report."""
        return Counter(
            record.allocation
            for record in self.records
            if record.ended and record.ended.cause is EndCause.FAILED and not record.reports
        )

    @cached_property
    def _out_of_memory(self) -> list[Allocation]:
        ended = ((record.allocation, record.ended) for record in self.records)
        runs = [cell for cell, end in ended if end and end.cause is EndCause.OUT_OF_MEMORY]
        shown = (record.shown for record in self.profiles if record.shown)
        return runs + [cell for profiled in shown for cell in profiled.out_of_memory]
