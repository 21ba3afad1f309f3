"""What one trial says, summed up, and read again only where the trial went on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from raycosttune.core.epochs import EARLIEST, Epochs
from raycosttune.core.goal import Goal
from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.timed import ByWorkers, FirstEpoch, first_epochs, timed

Points = tuple[tuple[float, float], ...]


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
