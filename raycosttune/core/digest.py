"""What one trial says, summed up, and read again only where the trial went on."""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from raycosttune.core.accuracy_surrogate import EARLIEST, Epochs
from raycosttune.core.goal import Goal
from raycosttune.core.observation import Ended, Report, TrialRecord
from raycosttune.core.proposer import recipe_key


@dataclass(frozen=True)
class Digest:
    """Is what the surrogates take from one trial.

    Attributes:
        record: The trial.
        recipe: Key of its recipe.
        epoch_seconds: Seconds of single epochs by worker count.
        startup_seconds: Start-up of each attempt that reported, one-off work included, by
            worker count.
        epochs: Interval of epochs in which the target was reached, None before a report.
        reached: The first report at the target, or None.
        seconds_to_target: Wall time up to the target, or up to the last report.
        gaps: Epoch and gap to the target of each evaluation of the run.
        scales: Epoch and gradient noise scale of each report that has one.
    """

    record: TrialRecord
    recipe: str
    epoch_seconds: Mapping[int, tuple[float, ...]]
    startup_seconds: Mapping[int, tuple[float, ...]]
    epochs: Epochs | None
    reached: Report | None
    seconds_to_target: float
    gaps: tuple[tuple[float, float], ...]
    scales: tuple[tuple[float, float], ...]


class Digests:
    """Sums up trials; one that has not changed since is not read again.

    Args:
        goal: Target by which trials are read.
    """

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._kept: dict[str, tuple[TrialRecord, int, Ended | None, Digest]] = {}

    def __call__(self, record: TrialRecord) -> Digest:
        """Returns a trial's digest."""
        kept = self._kept.get(record.trial_id)
        if kept is not None:
            same, reports, ended, digest = kept
            if same is record and reports == len(record.reports) and ended is record.ended:
                return digest
        digest = summed_up(record, self._goal)
        self._kept[record.trial_id] = record, len(record.reports), record.ended, digest
        return digest


def summed_up(record: TrialRecord, goal: Goal) -> Digest:
    """Reads a trial."""
    return Digest(
        record=record,
        recipe=recipe_key(record.recipe),
        epoch_seconds=epoch_seconds(record),
        startup_seconds=startups(record),
        epochs=epochs_seen(record, goal) if record.reports else None,
        reached=reaching_report(record, goal),
        seconds_to_target=seconds_to_target(record, goal),
        gaps=gaps(record, goal),
        scales=scales(record),
    )


def startups(record: TrialRecord) -> dict[int, tuple[float, ...]]:
    """Returns the start-up of each attempt that reported, by worker count.

    What the first report of an attempt took beyond the slowest epoch after it is one-off work,
    loading and compiling, and counts as start-up too.
    """
    slowest = {n: max(seconds) for n, seconds in later_epochs(record).items()}
    starts: dict[int, tuple[int, float]] = {}
    before = 0.0
    for report in record.reports:
        if report.attempt not in starts:
            workers, extra = workers_of(record, report), 0.0
            if workers in slowest:
                done = max(report.epoch - before, 0.0)
                extra = max(report.training_seconds - slowest[workers] * done, 0.0)
            starts[report.attempt] = workers, report.startup_seconds + extra
        before = report.epoch
    return _by_workers(starts.values())


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


def gaps(record: TrialRecord, goal: Goal) -> tuple[tuple[float, float], ...]:
    """Returns epoch and gap to the target of each evaluation of a trial's run."""
    return tuple(
        (report.epoch, max(goal.sign * (goal.target - report.value), 0.0))
        for report in record.run
        if report.value is not None and report.epoch > 0
    )


def scales(record: TrialRecord) -> tuple[tuple[float, float], ...]:
    """Returns epoch and gradient noise scale of each report that has one."""
    return tuple(
        (report.epoch, report.noise_scale)
        for report in record.run
        if report.noise_scale is not None and report.noise_scale > 0 and report.epoch > 0
    )


def workers_of(record: TrialRecord, report: Report) -> int:
    """Returns the workers that a report was made on."""
    return report.workers or record.allocation.workers


def epoch_seconds(record: TrialRecord) -> dict[int, tuple[float, ...]]:
    """Returns the seconds of single epochs by worker count.

    The first of an attempt counts only where no other was made on as many workers.
    """
    return _epochs(record, first=True) | later_epochs(record)


def later_epochs(record: TrialRecord) -> dict[int, tuple[float, ...]]:
    """Returns the seconds of single epochs without the first of each attempt."""
    return _epochs(record, first=False)


def _epochs(record: TrialRecord, *, first: bool) -> dict[int, tuple[float, ...]]:
    seconds: list[tuple[int, float]] = []
    before, attempt = 0.0, 0
    for report in record.reports:
        done = report.epoch - before
        is_first = report.attempt != attempt
        if done > 0 and report.training_seconds > 0 and is_first is first:
            seconds.append((workers_of(record, report), report.training_seconds / done))
        before, attempt = report.epoch, report.attempt
    return _by_workers(seconds)


def _by_workers(pairs: Iterable[tuple[int, float]]) -> dict[int, tuple[float, ...]]:
    found: dict[int, tuple[float, ...]] = {}
    for workers, seconds in pairs:
        found[workers] = (*found.get(workers, ()), seconds)
    return found
