"""What one trial says, summed up, and read again only where the trial went on."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from raycosttune.core.epochs import EARLIEST, Epochs
from raycosttune.core.goal import Goal
from raycosttune.core.observation import Report, TrialRecord

LEAST_EXTRA = 0.1  # of an epoch: as much is noise

ByWorkers = Mapping[int, tuple[float, ...]]
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class FirstEpoch:
    """Is the first report of an attempt that made no other one on as many workers.

    Attributes:
        seconds: Of training, one-off work included.
        epochs: Made in them.
        startup_seconds: Before them.
    """

    seconds: float
    epochs: float
    startup_seconds: float


@dataclass(frozen=True)
class Digest:
    """Is what the surrogates take from one trial.

    Attributes:
        record: The trial.
        recipe: Key of its recipe.
        epoch_seconds: Seconds of single epochs by worker count.
        startup_seconds: Start-up of each attempt that reported, one-off work included, by
            worker count.
        firsts: The first epochs that these rest on where an attempt made no other one, by
            worker count.
        extras: What the first epochs of the other attempts took beyond later ones, in seconds.
        epochs: Interval of epochs in which the target was reached, None before a report.
        reached: The first report at the target, or None.
        seconds_to_target: Wall time up to the target, or up to the last report.
        gaps: Epoch and gap to the target of each evaluation of the run.
        scales: Epoch and gradient noise scale of each report that has one.
        is_resized: Whether it ran on other workers than those it started on.
        period: Epochs between evaluations of the run, infinite before the first.
    """

    record: TrialRecord
    recipe: str
    epoch_seconds: ByWorkers
    startup_seconds: ByWorkers
    firsts: Mapping[int, tuple[FirstEpoch, ...]]
    extras: tuple[float, ...]
    epochs: Epochs | None
    reached: Report | None
    seconds_to_target: float
    gaps: Points
    scales: Points
    is_resized: bool
    period: float


class Digests:
    """Sums up trials; one that has not changed since is not read again.

    Args:
        goal: Target by which trials are read.
    """

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._kept: dict[str, tuple[TrialRecord, int, Digest]] = {}

    def __call__(self, record: TrialRecord) -> Digest:
        """Returns a trial's digest."""
        kept = self._kept.get(record.trial_id)
        if kept is not None:
            same, reports, digest = kept
            if same is record and reports == len(record.reports):
                return digest
        digest = summed_up(record, self._goal)
        self._kept[record.trial_id] = record, len(record.reports), digest
        return digest


def summed_up(record: TrialRecord, goal: Goal) -> Digest:
    """Reads a trial."""
    recipe, run = record.key, record.run
    hit = next((k for k, report in enumerate(run) if goal.is_met(report)), None)
    batch, until = record.allocation.batch_size, run if hit is None else run[: hit + 1]
    seconds, startups = timed(record)
    firsts, extras = first_epochs(record)
    own = (None, record.allocation.workers)
    return Digest(
        record=record,
        recipe=recipe,
        epoch_seconds=seconds,
        startup_seconds=startups,
        firsts=firsts,
        extras=extras,
        epochs=Epochs(batch, recipe, *interval(run, hit)) if run else None,
        reached=None if hit is None else run[hit],
        seconds_to_target=sum(report.seconds for report in until),
        gaps=gaps(run, goal),
        scales=scales(run),
        is_resized=any(report.workers not in own for report in record.reports),
        period=record.epoch / len(run) if record.epoch > 0 else math.inf,
    )


def seconds_to_target(record: TrialRecord, goal: Goal) -> float:
    """Returns the wall time of a trial's run up to the target, or up to its last report."""
    return summed_up(record, goal).seconds_to_target


def interval(run: Sequence[Report], hit: int | None) -> tuple[float, float]:
    """Returns the interval of epochs in which a run reached the target.

    Args:
        run: Its reports.
        hit: Place of the first one at the target, None where there is none.
    """
    if hit is None:
        return max((report.epoch for report in run), default=0.0), math.inf
    high = max(run[hit].epoch, EARLIEST)
    # A restart goes back some epochs: what lay above the target then says nothing.
    return max((r.epoch for r in run[:hit] if r.epoch < high), default=0.0), high


def gaps(run: Sequence[Report], goal: Goal) -> Points:
    """Returns epoch and gap to the target of each evaluation of a run."""
    return tuple(
        (report.epoch, max(goal.sign * (goal.target - report.value), 0.0))
        for report in run
        if report.value is not None and report.epoch > 0
    )


def nearer(trial: Digest, goal: Goal) -> Points:
    """Returns the evaluations that came nearer to the target than any before in their run.

    Left out are those at the target, and those that break a bound on another metric.
    """
    allowed = {report.epoch for report in trial.record.run if goal.allows(report)}
    found, nearest = list[tuple[float, float]](), math.inf
    for epoch, gap in trial.gaps:
        if 0 < gap < nearest and epoch in allowed:
            nearest = gap
            found.append((epoch, gap))
    return tuple(found)


def scales(run: Sequence[Report]) -> Points:
    """Returns epoch and gradient noise scale of each report of a run that has one."""
    return tuple(
        (report.epoch, report.noise_scale)
        for report in run
        if report.noise_scale is not None and report.noise_scale > 0 and report.epoch > 0
    )


def timed(record: TrialRecord) -> tuple[ByWorkers, ByWorkers]:
    """Returns the seconds of single epochs, and of the start-ups, by worker count.

    The first epoch of an attempt counts only where no other was made on as many workers. What
    it took beyond the slowest of these is one-off work, loading and compiling, and counts as
    start-up; there is one for each attempt that reported.
    """
    first, later, begun = _paces(record)
    starts = defaultdict[int, list[float]](list)
    for workers, done, report in begun:
        usual = max(later[workers]) * done if workers in later else report.training_seconds
        extra = max(report.training_seconds - usual, 0.0)
        starts[workers].append(report.startup_seconds + extra)
    return _tuples({**first, **later}), _tuples(starts)


def first_epochs(
    record: TrialRecord,
) -> tuple[dict[int, tuple[FirstEpoch, ...]], tuple[float, ...]]:
    """Returns the first epochs that stand alone, by worker count, and what others had beside.

    That is the one-off work which `timed` counts as start-up, 0 where it is no more than noise.
    """
    _, later, begun = _paces(record)
    alone = defaultdict[int, list[FirstEpoch]](list)
    extras = list[float]()
    for workers, done, report in begun:
        if workers in later:
            usual = max(later[workers]) * done
            extra = report.training_seconds - usual
            extras.append(extra if extra > LEAST_EXTRA * usual else 0.0)
        else:
            shown = FirstEpoch(report.training_seconds, done, report.startup_seconds)
            alone[workers].append(shown)
    return {workers: tuple(shown) for workers, shown in alone.items()}, tuple(extras)


Paces = Mapping[int, Sequence[float]]
Begun = Sequence[tuple[int, float, Report]]


def _paces(record: TrialRecord) -> tuple[Paces, Paces, Begun]:
    """Returns the seconds of first and of later epochs by worker count, and first reports.

    Of the first report of each attempt it returns workers and epochs, too.
    """
    first, later = defaultdict[int, list[float]](list), defaultdict[int, list[float]](list)
    begun: dict[int, tuple[int, float, Report]] = {}
    before, attempt = 0.0, 0
    for report in record.reports:
        workers = report.workers or record.allocation.workers
        done = report.epoch - before
        pace = report.training_seconds / done if done > 0 else 0.0
        if pace > 0:
            (later if report.attempt == attempt else first)[workers].append(pace)
        if report.attempt not in begun:
            begun[report.attempt] = workers, max(done, 0.0), report
        before, attempt = report.epoch, report.attempt
    return first, later, tuple(begun.values())


def _tuples(found: Mapping[int, Sequence[float]]) -> dict[int, tuple[float, ...]]:
    return {workers: tuple(seconds) for workers, seconds in found.items()}
