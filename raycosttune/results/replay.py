"""Merges a journal's rows into a session."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from raycosttune.core.decision import FOUND, Run
from raycosttune.core.goal import Goal
from raycosttune.core.observation import Ended, Observation, Report, Resized, TrialRecord
from raycosttune.core.profile import Profiled, ProfileRecord
from raycosttune.core.value import checked, clean_amount, read_name, read_number, read_text
from raycosttune.errors import InvalidStateError
from raycosttune.results.journal import read_journal
from raycosttune.results.rows import (
    ELAPSED,
    Row,
    read_observation,
    read_profile,
    read_profiled,
    read_record,
    read_run_report,
)

if TYPE_CHECKING:
    from raycosttune.core.session import Session

logger = logging.getLogger(__name__)
Told = TypeVar("Told")
Readers = Mapping[str, Callable[[Row], Told]]
READERS: Readers[TrialRecord | Observation | ProfileRecord | Profiled] = {
    "asked": read_record,
    "report": read_observation,
    "resized": read_observation,
    "ended": read_observation,
    "profile": read_profile,
    "profiled": read_profiled,
}


def merge_rows(
    session: "Session",
    rows: Iterable[Row],
    is_ours: Callable[[TrialRecord | ProfileRecord], bool] = lambda _: True,
) -> int:
    """Tells a session what a journal knows and the session doesn't.

    Rows that the session has already heard change nothing, so that a journal may be merged
    again and again. A row that can't be read is left out with a warning.

    Args:
        session: The session.
        rows: Rows in the order written.
        is_ours: Whether a trial can be of this sweep; one that can't is left out, too.

    Returns:
        How many reports, results and ends were new.
    """
    new, rows = 0, list(rows)
    why = read_why(rows)
    session.advance(max((clean_amount(row.get(ELAPSED)) for row in rows), default=0.0))
    for trial_id, told in _read(rows, READERS):
        match told:
            case TrialRecord() | ProfileRecord() if not is_ours(told):
                logger.warning("a trial is left out: it isn't of this search space: %.300r", told)
            case TrialRecord():
                session.adopt(told, why.get(trial_id, FOUND))
            case ProfileRecord():
                session.profiles.setdefault(trial_id, told)
            case Profiled():
                new += session.tell_profile(trial_id, told)
            case _:
                new += session.tell(trial_id, told)
    return new


def why_started(session: "Session", trial_id: str) -> str:
    """Returns why a session started a trial that it knows, the end of a sentence."""
    answer = session.ask(trial_id)  # the same again for a known trial
    return answer.why if isinstance(answer, Run) else ""


def read_why(rows: Iterable[Row]) -> dict[str, str]:
    """Returns why each trial was started, the end of a sentence, by its id."""
    asked = (row for row in rows if row["row"] == "asked" and read_name(row.get("why")))
    return {str(row.get("trial_id")): str(row["why"]) for row in asked}


def read_names(rows: Iterable[Row]) -> dict[str, str]:
    """Returns the ids of records by the new ids that Tune knows them by."""
    return dict(_read(rows, {"renamed": lambda row: checked(row, "record", read_text)}))


def read_run_reports(rows: Iterable[Row], metric: str, goal: Goal | None = None) -> list[Report]:
    """Returns the reports of a run's own journal; what can't be read is left out."""
    reader = {"report": lambda row: read_run_report(row, metric, goal)}
    return [told for _, told in _read(rows, reader)]


def own_reports(journal: Path, trial_id: str, goal: Goal) -> list[Report]:
    """Reads the reports that a run wrote itself and Tune may have lost, none where it can't."""
    own = journal.parent / "trials" / f"{trial_id}.jsonl"
    try:
        return read_run_reports(read_journal(own), goal.metric or "", goal)
    except (InvalidStateError, OSError):
        return []


def read_requested(rows: Iterable[Row]) -> float | None:
    """Returns when a run last asked for its workers, in seconds since 1970, None if unknown."""
    told = list(_read(rows, {"requested": lambda row: checked(row, "time", read_number)}))
    return told[-1][1] if told else None


def is_starting(rows: Iterable[Row]) -> bool:
    """Tells whether a run asked for its workers, once, and they have not begun to train."""
    kinds = [row["row"] for row in rows]
    return kinds.count("requested") == 1 and "begun" not in kinds


def read_run_profile(rows: Iterable[Row]) -> Row | None:
    """Returns the row of a profile's result from a run's own journal, None where it has none."""
    known = [row for row in rows if row["row"] == "profiled"]
    read = [row for row in known if list(_read([row], {"profiled": read_profiled}))]
    return read[-1] if read else None


def read_trials(rows: Iterable[Row]) -> dict[str, TrialRecord]:
    """Builds the trial records that a journal holds, without a session.

    Raises:
        KeyError: If a row lacks a key.
        ValueError: If a value is of the wrong kind.
    """
    records: dict[str, TrialRecord] = {}
    for row in rows:
        if row["row"] == "asked":
            records.setdefault(checked(row, "trial_id", read_text), read_record(row))
        elif row["row"] in ("report", "resized", "ended"):
            record = records.get(checked(row, "trial_id", read_text))
            if record is not None:
                _add(record, read_observation(row))
    return records


def _read(rows: Iterable[Row], readers: Readers[Told]) -> Iterator[tuple[str, Told]]:
    """Yields trial ids and what their rows tell; rows of other kinds are passed over."""
    for row in rows:
        reader = readers.get(row["row"])
        if reader is None:
            continue
        try:
            told = checked(row, "trial_id", read_text), reader(row)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            logger.warning(
                "a journal row is left out (%s: %s): %.300r", type(error).__name__, error, row
            )
        else:
            yield told


def _add(record: TrialRecord, observation: Observation) -> None:
    if isinstance(observation, Ended):
        record.ended = record.ended or observation
    elif isinstance(observation, Resized):
        record.resized = observation
    elif not any(
        (known.attempt, known.epoch) == (observation.attempt, observation.epoch)
        for known in record.reports
    ):
        record.reports.append(observation)
