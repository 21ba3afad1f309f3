"""Tune's results read as reports."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ray.tune.result import AUTO_RESULT_KEYS

from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.value import read_amount, read_count, read_number
from raycosttune.train import keys

Result = Mapping[str, Any]
TRAINING_ITERATION = "training_iteration"
TIME_THIS_ITER_S = "time_this_iter_s"
ITERATIONS_SINCE_RESTORE = "iterations_since_restore"
METERED = (
    *(keys.SECONDS, keys.ITERATION_SECONDS, keys.STARTUP_SECONDS),
    *(keys.ATTEMPT, keys.INDEX, keys.CHECKPOINT, keys.WORKERS),
    *keys.OF_WORKERS,
)


@dataclass
class Attempt:
    """Follows one start of a trial.

    Attributes:
        number: Start number that the next report gets, where the run is not metered.
        iteration: Tune's number of the last result of this start, 0 before the first.
        heard_at: Clock reading at the last sign of the trial, None while it isn't running.
        unpaid_seconds: Wall time that no report has covered yet.
        index: Number of the last metered report of this start.
        offset: What to add to the run's own attempt number, None before the first report.
        before: Results of earlier starts that Tune counts too, None before the first report.
        is_moved: Whether it was begun to go on with other workers.
        is_requested: Whether it is known when it asked for its workers.
    """

    number: int = 1
    iteration: int = 0
    heard_at: float | None = None
    unpaid_seconds: float = 0.0
    index: int = 0
    offset: int | None = None
    before: int | None = None
    is_moved: bool = False
    is_requested: bool = False


class ResultReader:
    """Turns a trial's results into reports, across restarts.

    Tune numbers results from 1 again after a restart, so the start number is kept here; a
    metered run brings its own.

    Args:
        request_age: Returns the seconds since a trial last asked for its workers, None where
            that isn't known. A start is paid from then on, or else from when Tune was given it.
    """

    def __init__(self, request_age: Callable[[str], float | None] = lambda _: None) -> None:
        """Knows no trial yet."""
        self._attempts: dict[str, Attempt] = {}
        self._request_age = request_age

    def begin(self, record: TrialRecord | ProfileRecord, now: float) -> None:
        """Opens a start of a trial: its next report belongs to a new attempt."""
        reports = record.reports if isinstance(record, TrialRecord) else []
        number = reports[-1].attempt + 1 if reports else 1
        unpaid = self.unpaid_seconds(record.trial_id, now)
        self._attempts[record.trial_id] = Attempt(number, heard_at=now, unpaid_seconds=unpaid)

    def move(self, record: TrialRecord, now: float, told: float) -> None:
        """Opens a start on other workers: what passed since the last report is its start-up.

        Args:
            record: The trial.
            now: Clock reading.
            told: Seconds of it that late reports have told of.
        """
        self.begin(record, now)
        moved = self._attempt(record.trial_id)
        moved.is_moved, moved.unpaid_seconds = True, max(moved.unpaid_seconds - told, 0.0)

    def wait(self, trial_id: str, now: float) -> None:
        """Notes that a trial is not running yet, as others hold its workers."""
        known = self._attempt(trial_id)
        if known.iteration == 0 and known.heard_at is not None:
            known.heard_at = now

    def pause(self, trial_id: str, now: float) -> None:
        """Notes that a trial has stopped running; time stops counting."""
        attempt = self._attempt(trial_id)
        attempt.unpaid_seconds = self.unpaid_seconds(trial_id, now)
        attempt.heard_at = None

    def seconds_since(self, trial_id: str, now: float) -> float:
        """Returns the wall time since the last sign of a running trial."""
        heard_at = self._attempt(trial_id).heard_at
        return 0.0 if heard_at is None else max(now - heard_at, 0.0)

    def unpaid_seconds(self, trial_id: str, now: float) -> float:
        """Returns the wall time that no report has covered."""
        self._place_start(trial_id, now)
        return self._attempt(trial_id).unpaid_seconds + self.seconds_since(trial_id, now)

    def is_repeated(self, record: TrialRecord, result: Result) -> bool:
        """Tells whether a result was read before: scheduler and search both get each.

        At the end Tune hands out the last result again, even one of an earlier start.
        """
        iteration = _iteration(result)
        known = self._attempt(record.trial_id)
        if known.iteration == 0 and record.reports and result.get("done"):
            return record.reports[-1].epoch == self._epoch(result)
        return iteration == known.iteration

    def missed(self, trial_id: str, result: Result) -> bool:
        """Tells whether reports of a metered run were lost before this one."""
        index = _whole(result.get(keys.INDEX))
        return index > self._attempt(trial_id).index + 1

    def numbered(self, trial_id: str, report: Report) -> Report:
        """Returns a report of a run's own journal with the attempt number that counts here."""
        return replace(report, attempt=report.attempt + (self._attempt(trial_id).offset or 0))

    def read(
        self, trial_id: str, result: Result, metric: str, checkpoint: str | None, now: float
    ) -> Report:
        """Reads one result.

        Args:
            trial_id: The trial.
            result: Tune's result, flattened with "/".
            metric: The goal's metric.
            checkpoint: Where this result's checkpoint lies, if the caller knows.
            now: Clock reading.

        Returns:
            The report; its value is None where the metric is missing or no number, its
            epoch is Tune's iteration where none was reported. The first report of a start
            that isn't metered, or goes on with other workers, is charged from the request for
            its workers: what the function itself did not take is start-up.
        """
        known = self._attempt(trial_id)
        iteration, waited = _iteration(result), 0.0
        seconds = max(read_amount(_seconds(result)) or 0.0, 0.0)
        is_metered = keys.ATTEMPT in result
        if is_metered:
            own = max(_whole(result[keys.ATTEMPT]), 1)
            if known.offset is None:
                known.offset = max(known.number - own, 0)
            number = own + known.offset
            known.index = _whole(result.get(keys.INDEX))
        else:
            if iteration < known.iteration:
                known.number, known.before = known.number + 1, None
            number = known.number
        if known.iteration == 0 and (known.is_moved or not is_metered):
            waited = max(self.seconds_since(trial_id, now) - seconds, 0.0)
            if known.is_moved:
                waited, known.unpaid_seconds = waited + known.unpaid_seconds, 0.0
        known.iteration = iteration
        if known.before is None:
            counted = _whole(result.get(TRAINING_ITERATION)) - iteration
            known.before = max(counted, 0) if number > 1 else 0
        unpaid, known.unpaid_seconds, known.heard_at = known.unpaid_seconds, 0.0, now
        path = result.get(keys.CHECKPOINT)
        return Report(
            epoch=self._epoch(result, known.before),
            value=read_number(result.get(metric)),
            seconds=seconds + waited + unpaid,
            startup_seconds=waited + (read_number(result.get(keys.STARTUP_SECONDS)) or 0.0),
            attempt=number,
            checkpoint=path if isinstance(path, str) else checkpoint,
            workers=read_count(result.get(keys.WORKERS)),
            noise_scale=read_number(result.get(keys.NOISE_SCALE)),
        )

    def forget(self, trial_id: str) -> None:
        """Drops what is unpaid: the trial did not run."""
        self._attempts.pop(trial_id, None)

    def hold(self, trial_id: str, seconds: float) -> None:
        """Keeps the seconds of a report that repeats an epoch for the next one."""
        self._attempt(trial_id).unpaid_seconds += seconds

    def _place_start(self, trial_id: str, now: float) -> None:
        """Counts a start from the request for its workers; one on others, from its last report."""
        known = self._attempt(trial_id)
        if known.iteration or known.is_moved or known.is_requested or known.heard_at is None:
            return
        age = self._request_age(trial_id)
        # Others are of an earlier start, or of a clock that was set.
        if age is not None and 0 <= age <= now - known.heard_at:
            known.heard_at, known.is_requested = now - age, True

    def _epoch(self, result: Result, before: int | None = None) -> float:
        epoch = read_amount(result.get("epoch"))
        if epoch is not None:
            return epoch
        if before is None or ITERATIONS_SINCE_RESTORE not in result:
            return float(_whole(result.get(TRAINING_ITERATION)))
        return float(before + _iteration(result))

    def _attempt(self, trial_id: str) -> Attempt:
        return self._attempts.setdefault(trial_id, Attempt())


def last_result(record: TrialRecord, metric: str) -> dict[str, Any]:
    """Returns the last report of a trial as a result for Tune, empty before the first."""
    if not record.reports:
        return {}
    last = record.reports[-1]
    result = {
        "epoch": last.epoch,
        metric: last.value,
        keys.CHECKPOINT: last.checkpoint,
        TRAINING_ITERATION: len(record.run),
    }
    return {key: value for key, value in result.items() if value is not None}


def reported_names(result: Result) -> list[str]:
    """Lists what the loop itself reported, without what Tune and the metering add."""
    added = {*AUTO_RESULT_KEYS, *METERED, "done", "trial_id", "experiment_tag"}
    return sorted(name for name in result if name not in added and not name.startswith("config/"))


def _iteration(result: Result) -> int:
    """Returns Tune's own number of a result: a loop may report a training_iteration itself."""
    return _whole(result.get(ITERATIONS_SINCE_RESTORE, result.get(TRAINING_ITERATION)))


def _seconds(result: Result) -> object:
    names = (keys.SECONDS, keys.ITERATION_SECONDS, TIME_THIS_ITER_S)
    return next((result[name] for name in names if name in result), None)


def _whole(value: object) -> int:
    return int(read_amount(value) or 0)
