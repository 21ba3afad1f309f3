"""Merges a journal's rows into a session."""

import logging
from collections.abc import Iterable

from raycosttune.core.observation import Ended, Observation, TrialRecord
from raycosttune.core.session import Session
from raycosttune.results.rows import Row, read_observation, read_record

logger = logging.getLogger(__name__)


def merge_rows(session: Session, rows: Iterable[Row]) -> int:
    """Tells a session what a journal knows and the session doesn't.

    Rows that the session has already heard change nothing, so that a journal may be merged
    again and again. A row that can't be read is left out with a warning.

    Args:
        session: The session.
        rows: Rows in the order written.

    Returns:
        How many reports and ends were new.
    """
    new = 0
    for row in rows:
        try:
            if row["row"] == "asked":
                session.adopt(read_record(row))
            elif row["row"] in ("report", "ended"):
                new += session.tell(str(row["trial_id"]), read_observation(row))
        except (KeyError, TypeError, ValueError) as error:
            logger.warning(
                "a journal row is left out (%s: %s): %r", type(error).__name__, error, row
            )
    return new


def read_names(rows: Iterable[Row]) -> dict[str, str]:
    """Returns the ids of records by the new ids that Tune knows them by."""
    return {str(row["trial_id"]): str(row["record"]) for row in rows if row["row"] == "renamed"}


def read_trials(rows: Iterable[Row]) -> dict[str, TrialRecord]:
    """Builds the trial records that a journal holds, without a session.

    Raises:
        KeyError: If a row lacks a key.
        ValueError: If a value is of the wrong kind.
    """
    records: dict[str, TrialRecord] = {}
    for row in rows:
        if row["row"] == "asked":
            records.setdefault(str(row["trial_id"]), read_record(row))
        elif row["row"] in ("report", "ended"):
            record = records.get(str(row["trial_id"]))
            if record is not None:
                _add(record, read_observation(row))
    return records


def _add(record: TrialRecord, observation: Observation) -> None:
    if isinstance(observation, Ended):
        record.ended = record.ended or observation
    elif not any(
        (known.attempt, known.epoch) == (observation.attempt, observation.epoch)
        for known in record.reports
    ):
        record.reports.append(observation)
