"""What a sweep keeps on disk: its journal, and the journals that runs keep themselves."""

import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from raycosttune.core.figure import counted
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Observation, Report, TrialRecord
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.session import Session
from raycosttune.errors import InvalidStateError
from raycosttune.results.header import SAMPLES, header_row, read_samples
from raycosttune.results.journal import Journal, kept_aside, read_journal
from raycosttune.results.known import known_row
from raycosttune.results.replay import (
    is_starting,
    merge_rows,
    read_names,
    read_requested,
    read_run_profile,
    read_run_reports,
    why_started,
)
from raycosttune.results.rows import (
    ELAPSED,
    Row,
    asked_row,
    failed_cells,
    observation_row,
    over_row,
    profile_row,
    profiled_row,
    read_profiled,
    renamed_row,
)
from raycosttune.train.keys import FOLDER
from raycosttune.tune.folder import run_journal

logger = logging.getLogger(__name__)


class Ledger:
    """Writes a sweep's journal, and reads it and the runs' own back.

    Args:
        about: What the journal's header says beside the goal and the cost's unit.

    Attributes:
        experiment: The experiment's folder, None until Tune has named it. Rows wait in
            memory until then.
    """

    def __init__(self, about: Row | None = None) -> None:
        """Has no folder yet."""
        self.experiment: Path | None = None
        self._about = about or {}
        self._journal = Journal()
        self._unread = set[Path]()
        self._newest: dict[str, str] = {}  # by record, the id under which Tune knows it

    def open(
        self,
        experiment: Path,
        session: Session,
        *,
        trial_id: str,
        is_restored: bool,
        is_ours: Callable[[TrialRecord | ProfileRecord], bool] = lambda _: True,
    ) -> dict[str, str]:
        """Opens the journal of an experiment, once, and tells the session what it holds.

        A journal that an earlier sweep has left in the same folder is kept under another
        name: Tune lets a new experiment take an old one's folder.

        A journal that this release can't read is kept under another name, with an error in
        the log; a new one is begun with everything that the session knows.

        Args:
            experiment: The experiment's folder.
            session: The session.
            trial_id: A trial that Tune has added; a journal that knows it is this sweep's.
            is_restored: Whether Tune goes on with a sweep that was broken off.
            is_ours: Whether a trial of the journal can be of this sweep.

        Returns:
            The ids of records by the new ids that Tune knows them by.
        """
        if self.experiment == experiment:
            return {}
        waiting = self._journal.waiting if self.experiment is None else ()
        self.experiment = experiment
        path = experiment / FOLDER / "journal.jsonl"
        self._journal = Journal(path)
        rows = _read_or_keep_aside(path)
        if rows and not is_restored and all(row.get("trial_id") != trial_id for row in rows):
            logger.warning("%s is of an earlier sweep; it is kept as %s.", path, kept_aside(path))
            rows = []
        if told := _other_metric(rows, session.goal):
            logger.warning("%s has values of %s; it is kept as %s.", path, told, kept_aside(path))
            rows = []
        if rows:
            merge_rows(session, rows, is_ours)
            self._journal.append(*waiting)
            if read_samples(rows) != session.num_samples:
                self._write(session, _header(session, self._about))
        else:
            self._write(session, *_everything(session, self._about))
        for known in list(session.records):
            for report in self.run_reports(known, session.goal.metric or "", session.goal):
                self.tell(session, known, report)
        for known in [record.trial_id for record in session.live_profiles]:
            if (row := self.run_profile(known)) is not None:
                self.tell_profile(session, known, row)
        names = read_names(rows)
        self._newest |= {record: trial for trial, record in names.items()}
        return names

    def asked(self, session: Session, trial_id: str) -> None:
        """Writes that a trial was asked for, or a profile."""
        if trial_id in session.profiles:
            self._write(session, profile_row(session.profiles[trial_id]))
        else:
            why = why_started(session, trial_id)
            self._write(session, asked_row(session.records[trial_id], why))

    def renamed(self, trial_id: str, record_id: str) -> None:
        """Writes that Tune knows a trial by a new id."""
        self._newest[record_id] = trial_id
        self._journal.append(renamed_row(trial_id, record_id))

    def over(self, session: Session, why: str) -> None:
        """Writes that the search gives no further trial."""
        self._write(session, over_row(why))

    def tell(self, session: Session, trial_id: str, observation: Observation) -> bool:
        """Tells the session, and writes what is new to it.

        An end is told with whether the workers were still starting.
        """
        if isinstance(observation, Ended) and is_starting(self._newest_rows(trial_id)):
            observation = replace(observation, is_starting=True)
        is_new = session.tell(trial_id, observation)
        if is_new:
            self._write(session, observation_row(trial_id, observation.cleaned()))
        return is_new

    def tell_profile(self, session: Session, trial_id: str, row: Row) -> bool:
        """Tells the session what a profile showed, and writes it if it is new.

        A profile without a single timed cell is told as one that failed.

        Args:
            session: The session.
            trial_id: The trial.
            row: The `profiled` row of its run.

        Raises:
            KeyError: If the row lacks a key.
            ValueError: If a value is of the wrong kind.
        """
        shown, failed = read_profiled(row), failed_cells(row)
        if not shown.epoch_seconds and not shown.out_of_memory:
            reason = failed[0]["reason"] if failed else "no step was timed"
            return self.tell(session, trial_id, Ended(EndCause.FAILED, reason, shown.seconds))
        is_new = session.tell_profile(trial_id, shown)
        if is_new:
            self._write(session, {**row, "trial_id": trial_id})
            for cell in failed:
                logger.warning("%s can't be timed in a profile: %s", _name(cell), cell["reason"])
        return is_new

    def run_reports(self, trial_id: str, metric: str, goal: Goal | None = None) -> list[Report]:
        """Reads the reports that a metered run wrote itself, in order."""
        return read_run_reports(self._run_rows(trial_id), metric, goal)

    def run_profile(self, trial_id: str) -> Row | None:
        """Reads the result that a profile wrote itself, None where it has none."""
        return read_run_profile(self._run_rows(trial_id))

    def request_age(self, trial_id: str) -> float | None:
        """Returns the seconds since a run last asked for its workers, None if it isn't known."""
        at = read_requested(self._newest_rows(trial_id))
        return None if at is None else time.time() - at

    def _write(self, session: Session, *rows: Row) -> None:
        elapsed = round(session.elapsed_seconds, 3)
        self._journal.append(*({**row, ELAPSED: elapsed} for row in rows))

    def _newest_rows(self, record_id: str) -> list[Row]:
        return self._run_rows(self._newest.get(record_id, record_id))

    def _run_rows(self, trial_id: str) -> list[Row]:
        if self.experiment is None:
            return []
        path = run_journal(self.experiment, trial_id)
        try:
            return read_journal(path)
        except (InvalidStateError, OSError) as error:
            if path not in self._unread:
                logger.warning("the run journal %s can't be read: %s", path, error)
            self._unread.add(path)
            return []


def _name(cell: Row) -> str:
    return f"{counted(cell['workers'], 'worker')} at batch {cell['batch_size']}"


def _read_or_keep_aside(path: Path) -> list[Row]:
    try:
        return read_journal(path)
    except (InvalidStateError, OSError) as error:
        aside = kept_aside(path)
        logger.error(  # noqa: TRY400 - the message says all, a traceback adds nothing
            "the journal can't be read: %s It is kept as %s; the sweep goes on from its "
            "last saved state, and trials that only the journal held will run again.",
            error,
            aside,
        )
        return []


def _other_metric(rows: Sequence[Row], goal: Goal) -> str:
    """Names the metric of a journal's values where it isn't the goal's, else says nothing."""
    told = next((row.get("goal") for row in rows if row["row"] == "header"), None)
    metric = told.get("metric") if isinstance(told, dict) else None
    return "" if metric in (None, goal.metric) else str(metric)


def _header(session: Session, about: Row) -> Row:
    told = session.goal, session.cost.unit, session.space, session.learning_rate
    most = session.num_samples
    row = header_row(*told, session.cost)
    return {**row, **({} if math.isinf(most) else {SAMPLES: int(most)}), **about}


def _everything(session: Session, about: Row) -> Iterator[Row]:
    yield _header(session, about)
    if session.prior is not None:
        yield known_row(session.prior)
    for profile in session.profiles.values():
        yield profile_row(profile)
        if profile.shown is not None:
            yield profiled_row(profile.trial_id, profile.shown)
        if profile.ended is not None:
            yield observation_row(profile.trial_id, profile.ended)
    for record in session.records.values():
        yield asked_row(record, why_started(session, record.trial_id))
        for report in record.reports:
            yield observation_row(record.trial_id, report)
        if record.ended is not None:
            yield observation_row(record.trial_id, record.ended)
