"""What a sweep keeps on disk: its journal, and the journals that runs keep themselves."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from raycosttune.core.observation import Observation, Report, TrialRecord
from raycosttune.core.session import Session
from raycosttune.errors import InvalidStateError
from raycosttune.results.journal import Journal, kept_aside, read_journal
from raycosttune.results.replay import merge_rows, read_names, read_run_reports
from raycosttune.results.rows import (
    Row,
    asked_row,
    header_row,
    observation_row,
    renamed_row,
)
from raycosttune.train.keys import FOLDER

logger = logging.getLogger(__name__)


class Ledger:
    """Writes a sweep's journal, and reads it and the runs' own back.

    Attributes:
        experiment: The experiment's folder, None until Tune has named it. Rows wait in
            memory until then.
    """

    def __init__(self) -> None:
        """Has no folder yet."""
        self.experiment: Path | None = None
        self._journal = Journal()

    def open(
        self,
        experiment: Path,
        session: Session,
        *,
        trial_id: str,
        is_restored: bool,
        is_ours: Callable[[TrialRecord], bool] = lambda _: True,
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
        if rows:
            merge_rows(session, rows, is_ours)
            self._journal.append(*waiting)
        else:
            self._journal.append(*_everything(session))
        for known in list(session.records):
            for report in self.run_reports(known, session.goal.metric or ""):
                self.tell(session, known, report)
        return read_names(rows)

    def asked(self, session: Session, trial_id: str) -> None:
        """Writes that a trial was asked for."""
        self._journal.append(asked_row(session.records[trial_id]))

    def renamed(self, trial_id: str, record_id: str) -> None:
        """Writes that Tune knows a trial by a new id."""
        self._journal.append(renamed_row(trial_id, record_id))

    def tell(self, session: Session, trial_id: str, observation: Observation) -> bool:
        """Tells the session, and writes what is new to it."""
        is_new = session.tell(trial_id, observation)
        if is_new:
            record = session.records[trial_id]
            known = record.ended if record.ended is not None else record.reports[-1]
            self._journal.append(observation_row(trial_id, known))
        return is_new

    def run_reports(self, trial_id: str, metric: str) -> list[Report]:
        """Reads the reports that a metered run wrote itself, in order."""
        if self.experiment is None:
            return []
        path = run_journal(self.experiment, trial_id)
        try:
            return read_run_reports(read_journal(path), metric)
        except (InvalidStateError, OSError) as error:
            logger.warning("the run journal %s can't be read: %s", path, error)
            return []


def run_journal(experiment: Path, trial_id: str) -> Path:
    """Returns where a metered run writes its own reports."""
    return experiment / FOLDER / "trials" / f"{trial_id}.jsonl"


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


def _everything(session: Session) -> Iterator[Row]:
    yield header_row(session.goal, session.cost.unit)
    for record in session.records.values():
        yield asked_row(record)
        for report in record.reports:
            yield observation_row(record.trial_id, report)
        if record.ended is not None:
            yield observation_row(record.trial_id, record.ended)
