"""What the reports of one trial say of the seconds of epochs and start-ups."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from raycosttune.core.observation import Report, TrialRecord

ByWorkers = Mapping[int, tuple[float, ...]]
Paces = Mapping[int, Sequence[float]]
Begun = Sequence[tuple[int, float, Report]]

LEAST_EXTRA = 0.1  # of an epoch: as much is noise


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
