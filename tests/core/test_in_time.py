from dataclasses import replace

import pytest

from raycosttune.core.constraint import RunBudget
from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.in_time import best_in_time
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.plan import Plan
from raycosttune.core.session import Session
from tests.core.test_metric_surface import SPACE, aim, moment, ran


def told(record: TrialRecord, goal: Goal) -> list[str]:
    now = moment([record], goal)
    assert now.surface is not None
    return list(best_in_time(now.known, now.surface))


def test_without_a_deadline_nothing_is_said() -> None:
    assert told(ran(64, 8), aim()) == []


def test_a_deadline_before_the_first_evaluation_holds_nothing() -> None:
    assert told(ran(64, 8), aim(deadline_seconds=1.0)) == []


@pytest.mark.parametrize(("mode", "sign"), [("max", 1), ("min", -1)])
def test_the_cell_that_comes_nearest_by_the_deadline_is_named(mode: str, sign: int) -> None:
    goal = aim(mode, deadline_seconds=150.0)  # type: ignore[arg-type]  # both are modes
    (line,) = told(ran(64, 4, sign=sign), goal)
    start, rest = line.split(" likely, with ")
    assert start.startswith(f"by the deadline: m {'-' if sign < 0 else ''}2.")
    assert rest.startswith(("1 worker, batch 64, name=a, 5 epochs", "2 workers, batch "))
    assert rest.endswith(" epochs (predicted)")


def test_of_those_that_may_reach_the_target_the_surest_is_named() -> None:
    now = moment([ran(64, 25)], aim(deadline_seconds=9000.0))
    assert now.surface is not None
    (line,) = best_in_time(now.known, now.surface)
    assert line.startswith("by the deadline: m 3 (")
    limits = [
        now.surface.predict(cell.batch_size, (9000 - 1) // now.known.time.predict(cell).mid)
        for cell in SPACE.cells
    ]
    surest = max(value.low for value in limits if value.mid >= 3)
    assert f"({surest:.3g} to ?)" in line


def test_a_cell_that_costs_too_much_in_another_unit_is_left_out() -> None:
    goal = aim(deadline_seconds=300.0)
    tight = Goal(**{**vars(goal), "constraints": (RunBudget(cost=WorkerHours(), at_most=1e-6),)})
    assert told(ran(64, 4), goal)
    assert told(ran(64, 4), tight) == []


def test_max_epochs_limit_it() -> None:
    goal = aim(deadline_seconds=9000.0, max_epochs=6)
    (line,) = told(ran(64, 4), goal)
    assert line.endswith(" 6 epochs (predicted)")


def test_no_run_is_taken_to_go_on_where_all_ended_by_themselves() -> None:
    goal, own = aim(deadline_seconds=9000.0), Ended(EndCause.FINISHED)
    ends = replace(ran(64, 6), ended=own)
    (line,) = told(ends, goal)
    assert line.endswith(" 6 epochs, where runs end by themselves (predicted)")
    (line,) = told(ends, aim(deadline_seconds=80.0))
    assert line.endswith(" epochs (predicted)")
    now = moment([ends, ran(32, 7)], goal)
    assert now.surface is not None
    (line,) = best_in_time(now.known, now.surface)
    assert "by themselves" not in line


def test_explain_says_it_while_there_is_no_plan() -> None:
    session = Session(SPACE, aim(deadline_seconds=300.0), clock=lambda: 0.0)
    session.ask("t")
    assert "by the deadline" not in session.explain()
    run = ran(session.records["t"].allocation.batch_size, 4)
    for report in run.reports:
        session.tell("t", report)
    assert "by the deadline: m 2." in session.explain()
    session.tell("t", Report(5.0, 3.0, 30.0))
    assert isinstance(session.plan(), Plan)
    assert "by the deadline" not in session.explain()
