"""A session that has seen what a sweep's folder holds, or a table of observations."""

import logging
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import CostMetric
from raycosttune.core.figure import counted, whole
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.measured import space_of
from raycosttune.core.observation import TrialRecord
from raycosttune.core.prior import Prior
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.rehearsal import Clock, NumberedRecipes
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.errors import InvalidStateError
from raycosttune.report.times import Times
from raycosttune.results.journal import read_journal, read_rows
from raycosttune.results.keys import SearchKeys
from raycosttune.results.past_sweep import PastSweep, past_of
from raycosttune.results.replay import read_run_profile, read_why
from raycosttune.results.rows import ELAPSED, Row, asked_row, observation_row, read_profiled

logger = logging.getLogger(__name__)
QUIET_SECONDS = 600.0  # without a row for so long, and
QUIET_FACTOR = 5.0  # so many times the usual pause, running trials are taken for dead


@dataclass(frozen=True)
class Run:
    """Is a sweep as it was read.

    Attributes:
        name: Name of its folder.
        session: What is known.
        times: When things happened.
        why: Why each trial was started, by its id.
        folder: Folder of the journal, None where there is none.
        quiet: Why it is taken for dead, empty where it is not.
        keys: Where its search space has what is searched, None where that is not known.
    """

    name: str
    session: Session
    times: Times
    why: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    quiet: str = ""
    keys: SearchKeys | None = None


def read_run(
    path: Path | str, cost: CostMetric | None = None, changes: Mapping[str, Any] | None = None
) -> Run:
    """Reads a sweep; nothing on disk is touched.

    Args:
        path: The run's folder, or its journal.
        cost: What a run costs; the sweep's own by default, which must be given where it is
            none of this package's: a journal holds no code.
        changes: Attributes of the goal in place of the recorded ones.

    Raises:
        InvalidStateError: If there is no journal, or it can't be read.
        InvalidGoalError: If its goal breaks a rule.
        InvalidCostError: If the cost metric is in no journal, or fails.
    """
    journal, rows = read_rows(path)
    past, folder = past_of(journal, rows), journal.parent
    times, why = Times.of(rows), read_why(rows)
    goal = replace(past.goal, **changes or {})
    session = _session(
        past.records,
        past.profiles,
        why,
        times,
        goal=goal,
        cost=past.metric(cost),
        space=_space(past),
        learning_rate=past.learning_rate,
        prior=past.earlier,
    )
    session.num_samples = past.num_samples
    for profile in session.live_profiles:
        row = read_run_profile(run_rows(folder, profile.trial_id))
        if row is not None:
            session.tell_profile(profile.trial_id, read_profiled(row))
    quiet = _quiet(session, times, past.path)
    return Run(past.name, session, times, why, folder, quiet, past.keys)


def run_of(
    name: str, records: Iterable[TrialRecord], goal: Goal, cost: CostMetric, space: Space
) -> Run:
    """Makes a run of trial records over the cells of a space."""
    records = tuple(records)
    times = times_of(records)
    return Run(name, _session(records, (), {}, times, goal=goal, cost=cost, space=space), times)


def times_of(records: Iterable[TrialRecord]) -> Times:
    """Pieces together when things happened from when trials started and what they paid for."""
    rows: list[Row] = []
    for record in records:
        started = {} if record.started is None else {ELAPSED: record.started}
        rows.append({**asked_row(record), **started})
        rows += [observation_row(record.trial_id, report) for report in record.reports]
        if record.ended is not None:
            rows.append(observation_row(record.trial_id, record.ended))
    return Times.of(rows)


def run_rows(folder: Path, trial_id: str) -> list[Row]:
    """Returns the rows that a trial's run wrote itself, none where they can't be read."""
    path = folder / "trials" / f"{trial_id}.jsonl"
    try:
        return read_journal(path) if path.parent == folder / "trials" else []
    except (InvalidStateError, OSError) as error:
        logger.warning("the run journal %s can't be read: %s", path, error)
        return []


def _session(  # noqa: PLR0913 - all that shapes a session
    records: Iterable[TrialRecord],
    profiles: Iterable[ProfileRecord],
    why: Mapping[str, str],
    times: Times,
    *,
    goal: Goal,
    cost: CostMetric,
    space: Space,
    learning_rate: LearningRate | None = None,
    prior: Prior | None = None,
) -> Session:
    """Makes a session that knows trials and profiles, at the time of the last row."""
    records, profiles, clock = tuple(records), tuple(profiles), Clock()
    session = Session(
        space,
        goal,
        cost=cost,
        proposer=NumberedRecipes() if any(record.recipe for record in records) else None,
        learning_rate=learning_rate,
        abilities=Abilities(profile=bool(profiles)),
        prior=prior,
        clock=clock,
    )
    clock.seconds = times.elapsed_seconds
    for record in records:
        session.adopt(record, why.get(record.trial_id, ""))
    session.profiles.update({profile.trial_id: profile for profile in profiles})
    return session


def _space(past: PastSweep) -> Space:
    """Returns the space of a sweep, or that of its trials where they went beyond it."""
    cells = {record.allocation for record in past.records}
    cells |= {cell for profile in past.profiles for cell in profile.profile.cells}
    if cells <= set(past.space.cells):
        return past.space
    return space_of(cells)


def _quiet(session: Session, times: Times, journal: Path) -> str:
    """Says that a sweep has been silent for too long to be alive, or nothing.

    One that Tune itself has ended, by a limit of its own say, has no row that says so.
    """
    quiet = max(time.time() - journal.stat().st_mtime, 0.0)
    seconds = [report.seconds for record in session.live for report in record.reports]
    usual = statistics.median(seconds) if seconds else 0.0
    live = len(session.live) + len(session.live_profiles)
    if quiet <= max(QUIET_SECONDS, QUIET_FACTOR * usual) or (not live and times.over):
        return ""
    what = f"{counted(live, 'trial')} without an end" if live else "nothing runs"
    return f"{what}, and nothing was written for {_lasting(quiet)}"


def _lasting(seconds: float) -> str:
    """Writes a long time in the unit that a reader would take."""
    for unit, least in (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= 2 * least:
            return counted(int(seconds / least), unit)
    return f"{whole(seconds)} s"
