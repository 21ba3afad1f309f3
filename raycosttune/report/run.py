"""A session that has seen what a sweep's folder holds, or a table of observations."""

import logging
import statistics
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.figure import counted, whole
from raycosttune.core.goal import Goal
from raycosttune.core.observation import TrialRecord
from raycosttune.core.rehearsal import Clock, NumberedRecipes
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidCostError, InvalidStateError
from raycosttune.report.times import Times
from raycosttune.results.journal import read_journal
from raycosttune.results.replay import merge_rows, read_run_profile, read_run_reports, read_trials
from raycosttune.results.rows import (
    Row,
    asked_row,
    header_row,
    observation_row,
    read_header,
    read_header_space,
    read_profile,
    read_profiled,
)
from raycosttune.simulate.recorded import FOLDER, journal_of, workers_per_node
from raycosttune.simulate.table import measured_space

logger = logging.getLogger(__name__)
KNOWN_COSTS: Mapping[str, CostMetric] = {cost.unit: cost for cost in (NodeHours(), WorkerHours())}
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
        quiet: Why its trials are taken for dead, empty where they are not.
    """

    name: str
    session: Session
    times: Times
    why: Mapping[str, str]
    folder: Path | None = None
    quiet: str = ""


def read_run(
    path: Path | str, cost: CostMetric | None = None, changes: Mapping[str, Any] | None = None
) -> Run:
    """Reads a sweep; nothing on disk is touched.

    Args:
        path: The run's folder, or its journal.
        cost: What a run costs, where it was neither node-hours nor worker-hours: a journal
            holds only the unit.
        changes: Attributes of the goal in place of the recorded ones.

    Raises:
        InvalidStateError: If there is no journal, or it can't be read.
        InvalidGoalError: If its goal breaks a rule.
        InvalidCostError: If the cost metric can't be told from its unit, or fails.
    """
    journal = journal_of(Path(path).expanduser())
    rows = _rows(journal)
    own, unit = _header(rows, journal)
    times = Times.of(rows)
    session = _session(rows, times, replace(own, **changes or {}), cost or _known(unit, journal))
    live = [record.trial_id for record in session.live]
    live += [record.trial_id for record in session.live_profiles]
    fill(session, {name: run_rows(journal.parent, name) for name in live})
    named = journal.parent.parent if journal.parent.name == FOLDER else journal.parent
    quiet = _quiet(session, journal)
    return Run(named.name, session, times, _why(rows), journal.parent, quiet)


def _header(rows: list[Row], journal: Path) -> tuple[Goal, str | None]:
    header = next((row for row in rows if row["row"] == "header"), None)
    if header is None:
        msg = f"a journal must open with a header, found none @ {journal}. Name another folder."
        raise InvalidStateError(msg)
    return read_header(header)


def run_of(
    name: str,
    records: Iterable[TrialRecord],
    goal: Goal,
    cost: CostMetric,
    space: Space | None = None,
) -> Run:
    """Makes a run of trial records, over the cells of a space or else over their own."""
    rows: list[Row] = [header_row(goal, cost.unit, space)]
    for record in records:
        rows.append(asked_row(record))
        rows += [observation_row(record.trial_id, report) for report in record.reports]
        if record.ended is not None:
            rows.append(observation_row(record.trial_id, record.ended))
    times = Times.of(rows)
    return Run(name, _session(rows, times, goal, cost), times, {})


def run_rows(folder: Path, trial_id: str) -> list[Row]:
    """Returns the rows that a trial's run wrote itself, none where they can't be read."""
    path = folder / "trials" / f"{trial_id}.jsonl"
    try:
        return read_journal(path) if path.parent == folder / "trials" else []
    except (InvalidStateError, OSError) as error:
        logger.warning("the run journal %s can't be read: %s", path, error)
        return []


def fill(session: Session, runs: Mapping[str, list[Row]]) -> None:
    """Tells a session what runs wrote themselves and the sweep did not."""
    for name, rows in runs.items():
        for report in read_run_reports(rows, session.goal.metric or ""):
            session.tell(name, report)
        row = read_run_profile(rows)
        if name in session.profiles and row is not None:
            session.tell_profile(name, read_profiled(row))


def _rows(journal: Path) -> list[Row]:
    if not journal.is_file():
        msg = (
            f"a sweep's folder must hold a journal, found none @ {journal}. Name the folder of "
            "an experiment whose search was a CostAwareSearch, as ~/ray_results/NAME."
        )
        raise InvalidStateError(msg)
    try:
        return read_journal(journal)
    except OSError as error:
        msg = f"the journal {journal} can't be read: {error}"
        raise InvalidStateError(msg) from error


def _known(unit: str | None, journal: Path) -> CostMetric:
    cost = KNOWN_COSTS.get(unit or "")
    if cost is None:
        msg = (
            f"the sweep was scored in {unit or 'an unknown unit'} @ {journal}: give its cost "
            "metric, cost=... or --cost module:Name"
        )
        raise InvalidCostError(msg)
    return cost


def _session(rows: list[Row], times: Times, goal: Goal, cost: CostMetric) -> Session:
    """Makes a session that has seen what the rows tell."""
    asked, clock = _asked(rows), Clock()
    session = Session(
        _space(rows, {record.allocation for record in asked.values()}),
        goal,
        cost=cost,
        proposer=NumberedRecipes() if any(r.recipe for r in asked.values()) else None,
        abilities=Abilities(profile=any(row["row"] == "profile" for row in rows)),
        clock=clock,
    )
    for trial_id, why in _why(rows).items():
        if trial_id in asked:
            session.adopt(asked[trial_id], why)
    merge_rows(session, rows)
    clock.seconds = times.elapsed_seconds
    return session


def _asked(rows: list[Row]) -> dict[str, TrialRecord]:
    asked: dict[str, TrialRecord] = {}
    for row in rows:
        if row["row"] == "asked":
            try:
                asked |= {k: v for k, v in read_trials([row]).items() if k not in asked}
            except (KeyError, ValueError):
                continue  # merge_rows says so
    return asked


def _space(rows: list[Row], cells: Collection[Allocation]) -> Space:
    """Returns the last space named that all trials lie in, else that of their cells."""
    cells = {*cells, *_profiled(rows)}
    spaces = [read_header_space(row) for row in rows if row["row"] == "header"]
    for space in reversed(spaces):
        if space is not None and cells <= set(space.cells):
            return space
    pairs = {(cell.workers, cell.batch_size) for cell in cells} or {(1, 1)}
    return measured_space(pairs, workers_per_node(cells) if cells else None)


def _profiled(rows: list[Row]) -> Iterable[Allocation]:
    for row in rows:
        if row["row"] == "profile":
            try:
                yield from read_profile(row).profile.cells
            except (KeyError, ValueError):
                continue  # merge_rows says so


def _why(rows: list[Row]) -> dict[str, str]:
    asked = (row for row in rows if row["row"] == "asked" and "why" in row)
    return {str(row.get("trial_id")): str(row["why"]) for row in asked}


def _quiet(session: Session, journal: Path) -> str:
    """Says that running trials have been silent for too long to be alive, or nothing."""
    quiet = max(time.time() - journal.stat().st_mtime, 0.0)
    seconds = [report.seconds for record in session.live for report in record.reports]
    usual = statistics.median(seconds) if seconds else 0.0
    live = len(session.live) + len(session.live_profiles)
    if not live or quiet <= max(QUIET_SECONDS, QUIET_FACTOR * usual):
        return ""
    return f"{counted(live, 'trial')} without an end, and nothing was written for {whole(quiet)} s"
