"""Everything that the records of a sweep say, at one moment."""

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from raycosttune.core.accuracy_surrogate import EARLIEST, AccuracySurrogate, Epochs
from raycosttune.core.cost import CostMetric, checked_cost
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Recipe, Report, TrialRecord
from raycosttune.core.prediction import Prediction
from raycosttune.core.proposer import recipe_key
from raycosttune.core.space import Allocation, Space
from raycosttune.core.startup import Startup
from raycosttune.core.time_surrogate import TimeSurrogate

FAILURES_PER_CELL = 2


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
    """

    def __init__(
        self, records: Sequence[TrialRecord], space: Space, goal: Goal, cost: CostMetric
    ) -> None:
        self.records = records
        self.space = space
        self.goal = goal
        self.cost = cost

    @cached_property
    def time(self) -> TimeSurrogate:
        """Epoch time by cell."""
        samples: dict[Allocation, list[float]] = defaultdict(list)
        for record in self.records:
            samples[record.allocation].extend(epoch_seconds(record))
        return TimeSurrogate(self.space, {cell: times for cell, times in samples.items() if times})

    @cached_property
    def startup(self) -> Startup:
        """Start-up by worker count."""
        samples: dict[int, list[float]] = defaultdict(list)
        for record in self.records:
            starts: dict[int, float] = {}
            for report in record.reports:
                starts.setdefault(report.attempt, report.startup_seconds)
            if starts:
                samples[record.allocation.workers].extend(starts.values())
        return Startup(samples)

    @cached_property
    def accuracy(self) -> AccuracySurrogate:
        """Epochs to the target by batch and recipe."""
        batches = sorted({cell.batch_size for cell in self.space.cells})
        seen = [epochs_seen(record, self.goal) for record in self.records if record.reports]
        return AccuracySurrogate(batches, seen)

    @cached_property
    def recipes(self) -> dict[str, Recipe]:
        """The recipes tried, by key."""
        return {recipe_key(record.recipe): record.recipe for record in self.records}

    @cached_property
    def cells(self) -> tuple[Allocation, ...]:
        """The cells that may still be tried: those that fail again and again are dropped."""
        return tuple(cell for cell in self.space.cells if not self._is_broken(cell))

    @cached_property
    def incumbent(self) -> Incumbent | None:
        """The cheapest configuration measured to reach the target by the deadline."""
        return min(self.measured, key=lambda known: known.cost.mid, default=None)

    @cached_property
    def measured(self) -> tuple[Incumbent, ...]:
        """Every configuration with known epochs and known epoch time that meets the deadline."""
        limit = self.goal.deadline_seconds or math.inf
        known = []
        reached = {
            (record.allocation.batch_size, recipe_key(record.recipe)): record
            for record in self.records
            if reaching_report(record, self.goal)
        }
        for (batch, recipe), record in reached.items():
            for cell in self.cells:
                if cell.batch_size == batch and self.time.is_measured(cell):
                    incumbent = self._incumbent(cell, recipe, record)
                    if incumbent.seconds.mid <= limit or self._met_deadline(cell, recipe):
                        known.append(incumbent)
        return tuple(known)

    @cached_property
    def remaining_runs(self) -> int:
        """Runs still to be paid for after the search: one model may already be in hand."""
        return self.goal.planned_runs - (self.incumbent is not None)

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
        return self.startup.predict(cell.workers).low + self.time.predict(cell).low * epochs

    def _incumbent(self, cell: Allocation, recipe: str, record: TrialRecord) -> Incumbent:
        seen = [
            epochs_seen(other, self.goal)
            for other in self.records
            if other.allocation.batch_size == cell.batch_size
            and recipe_key(other.recipe) == recipe
            and reaching_report(other, self.goal)
        ]
        logs = [math.log(run.high) for run in seen]
        mid = math.exp(sum(logs) / len(logs))
        epochs = Prediction(min(run.low for run in seen), mid, max(run.high for run in seen))
        start, epoch = self.startup.predict(cell.workers), self.time.predict(cell)
        seconds = Prediction(
            start.low + epoch.low * epochs.low,
            start.mid + epoch.mid * epochs.mid,
            start.high + epoch.high * epochs.high,
        )
        cost = self.bounded_cost(cell, seconds)
        return Incumbent(cell, recipe, record, epochs, seconds, cost)

    def _met_deadline(self, cell: Allocation, recipe: str) -> bool:
        limit = self.goal.deadline_seconds or math.inf
        return any(
            record.allocation == cell
            and recipe_key(record.recipe) == recipe
            and reaching_report(record, self.goal) is not None
            and seconds_to_target(record, self.goal) <= limit
            for record in self.records
        )

    def _is_broken(self, cell: Allocation) -> bool:
        failed = 0
        for record in self.records:
            cause = record.ended.cause if record.ended else None
            if record.allocation == cell and cause is EndCause.FAILED and not record.reports:
                failed += 1
        return failed >= FAILURES_PER_CELL or self._is_out_of_memory(cell)

    def _is_out_of_memory(self, cell: Allocation) -> bool:
        out = [
            record.allocation
            for record in self.records
            if record.ended and record.ended.cause is EndCause.OUT_OF_MEMORY
        ]
        larger = sum(other.local_batch <= cell.local_batch for other in out)
        return cell in out or larger >= FAILURES_PER_CELL


def reaching_report(record: TrialRecord, goal: Goal) -> Report | None:
    """Returns the first report of a trial that reached the target."""
    return next((r for r in record.run if goal.is_reached(r.value)), None)


def seconds_to_target(record: TrialRecord, goal: Goal) -> float:
    """Returns the wall time of a trial's run up to the target, or up to its last report."""
    total = 0.0
    for report in record.run:
        total += report.seconds
        if goal.is_reached(report.value):
            break
    return total


def epochs_seen(record: TrialRecord, goal: Goal) -> Epochs:
    """Returns the interval of epochs in which a trial's run reached the target."""
    batch, recipe = record.allocation.batch_size, recipe_key(record.recipe)
    hit = reaching_report(record, goal)
    high = math.inf if hit is None else max(hit.epoch, EARLIEST)
    missed = itertools.takewhile(lambda report: report is not hit, record.run)
    # A restart goes back some epochs: what lay above the target then says nothing.
    low = max((report.epoch for report in missed if report.epoch < high), default=0.0)
    return Epochs(batch, recipe, low, high)


def epoch_seconds(record: TrialRecord) -> list[float]:
    """Returns the seconds of single epochs, the first of an attempt only where it is alone."""
    first: list[float] = []
    later: list[float] = []
    before, attempt = 0.0, 0
    for report in record.reports:
        done = report.epoch - before
        if done > 0 and report.training_seconds > 0:
            (later if report.attempt == attempt else first).append(report.training_seconds / done)
        before, attempt = report.epoch, report.attempt
    return later or first
