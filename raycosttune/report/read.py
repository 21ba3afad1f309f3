"""A view of a sweep as its folder shows it, while it runs, when it is over and after a crash."""

from dataclasses import replace
from pathlib import Path

from raycosttune.core.cost import CostMetric
from raycosttune.core.plan import Plan
from raycosttune.core.session import Session
from raycosttune.report.build import view_of
from raycosttune.report.run import Run, read_run, run_rows, times_of
from raycosttune.report.view import Status, View, Workers
from raycosttune.results.replay import why_started
from raycosttune.results.rows import Row

WATCHED = 50  # trials whose workers are shown
SHARES, COMPUTE, IDLE = (
    f"raycosttune/{name}" for name in ("shares", "compute_seconds", "idle_seconds")
)


def read_sweep(path: Path | str, cost: CostMetric | None = None) -> View:
    """Reads what there is to see of a sweep; nothing on disk is touched.

    Args:
        path: The run's folder, or its journal.
        cost: What a run costs, where it was neither node-hours nor worker-hours: a journal
            holds only the unit.

    Raises:
        InvalidStateError: If there is no journal, or it can't be read.
        InvalidGoalError: If its goal breaks a rule.
        InvalidCostError: If the cost metric can't be told from its unit, or fails.
    """
    return view_of_run(read_run(path, cost))


def sweep_of(session: Session, name: str = "") -> View:
    """Looks at a sweep in this process: `sweep_of(search.session)`.

    Args:
        session: The session of a search, or of a simulation.
        name: Name of the run.
    """
    why = {trial_id: why_started(session, trial_id) for trial_id in session.records}
    return view_of(session, times_of(session.records.values()), name=name, why=why)


def view_of_run(run: Run) -> View:
    """Looks at a sweep that was read."""
    session, workers = run.session, dict[str, Workers]()
    if run.folder is not None:
        plan = session.plan()
        shown = [*list(session.records)[-WATCHED:]]
        shown += [plan.trial_id] if isinstance(plan, Plan) else []
        found = {name: _workers(run_rows(run.folder, name)) for name in shown}
        workers = {name: told for name, told in found.items() if told is not None}
    view = view_of(session, run.times, name=run.name, why=run.why, workers=workers)
    is_dead = view.status is Status.RUNNING and bool(run.quiet)
    return _broken_off(view, run.quiet) if is_dead else view


def _broken_off(view: View, why: str) -> View:
    """Says of trials that have no end, and can get none unless the sweep is resumed, what they are.

    Their journal doesn't tell whether they live; that nothing is written does.
    """
    trials = tuple(
        replace(trial, end="broken_off", reason="the sweep broke off")
        if trial.is_running
        else trial
        for trial in view.trials
    )
    return replace(view, status=Status.BROKEN_OFF, note=why, trials=trials)


def _workers(rows: list[Row]) -> Workers | None:
    """Returns what workers did, of the reports that say it."""
    told = [row for row in rows if row["row"] == "report" and _has_workers(row)]
    if not told:
        return None
    lists = [row["lists"] for row in told]
    return Workers(
        epochs=tuple(float(row["epoch"]) for row in told),
        shares=tuple(tuple(each[SHARES]) for each in lists),
        compute_seconds=tuple(tuple(each[COMPUTE]) for each in lists),
        idle_seconds=tuple(tuple(each[IDLE]) for each in lists),
    )


def _has_workers(row: Row) -> bool:
    lists = row.get("lists")
    return isinstance(lists, dict) and all(
        isinstance(lists.get(key), list) for key in (SHARES, COMPUTE, IDLE)
    )
