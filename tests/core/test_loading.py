"""Loading in the first epochs of runs is held against none."""

from dataclasses import replace

import pytest

from raycosttune.core.constraint import RunBudget
from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Continue, Decision, Stop, StopCause
from raycosttune.core.figure import whole
from raycosttune.core.goal import Goal
from raycosttune.core.going import Going
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.plan import Plan, make_plan
from raycosttune.core.planner import Planner
from raycosttune.core.space import Space
from raycosttune.core.stopping import decide
from tests.core.drive import goal

SPACE = Space((1, 2), (64, 128))
CELL, OTHER = SPACE.cells[:2]


def live(*reports: Report) -> TrialRecord:
    return TrialRecord("live", CELL, {}, 1, list(reports))


def judge(record: TrialRecord, *others: TrialRecord, goal: Goal) -> Decision:
    going = Going(record.allocation.workers, can_resize=False)
    return decide(Knowledge([*others, record], SPACE, goal, WorkerHours()), record, going)


def cause(decision: Decision) -> StopCause | None:
    return decision.cause if isinstance(decision, Stop) else None


def test_a_first_epoch_that_may_be_loading_alone_ends_no_run() -> None:
    limits, slow = goal(deadline_seconds=50.0), Report(1.0, 0.0, 40.0)
    assert judge(live(slow), goal=limits) == Continue()
    second = Report(2.0, 0.0, 40.0)
    assert cause(judge(live(slow, second), goal=limits)) is StopCause.DEADLINE
    late = Report(1.0, 0.0, 60.0)
    assert cause(judge(live(late), goal=limits)) is StopCause.DEADLINE


def test_what_other_first_epochs_took_for_loading_is_not_held_against_a_run() -> None:
    reports = [Report(float(k), float(k == 9), 5.0 if k == 1 else 0.2) for k in range(1, 10)]
    other = TrialRecord("whole", OTHER, {}, 0, reports, Ended(EndCause.REACHED))
    record = live(Report(1.0, 0.0, 5.1))
    limits = goal(deadline_seconds=30.0, planned_runs=100)
    assert judge(record, other, goal=limits) == Continue()
    plan = make_plan(Knowledge([other, record], SPACE, limits, WorkerHours()), None, 0.0)
    assert isinstance(plan, Plan)
    assert plan.measured_seconds is not None
    assert plan.predicted_seconds.mid == pytest.approx(plan.measured_seconds, rel=0.02)


@pytest.mark.parametrize(("at_most", "is_over"), [(9.0, True), (10.0, False)])
def test_a_first_epoch_that_has_spent_what_a_run_may_cost_ends_it(
    at_most: float, *, is_over: bool
) -> None:
    budget = RunBudget(cost=WorkerHours(), at_most=at_most / 3600)
    record = live(Report(1.0, 0.0, 10.0))
    limits = replace(goal(), constraints=(budget,))
    known = Knowledge([record], SPACE, limits, WorkerHours())
    decision = decide(known, record, Going(1, can_resize=False))
    assert isinstance(decision, Stop) is is_over


@pytest.mark.parametrize("seconds", [49.9, 50.0, 51.0, 5000.0])
@pytest.mark.parametrize("can_resize", [False, True])
@pytest.mark.parametrize("loading", [0.0, 45.0])
def test_a_first_epoch_that_has_spent_the_time_of_a_run_ends_it_by_the_planner_too(
    seconds: float, *, can_resize: bool, loading: float
) -> None:
    """By its own time, whatever of it was loading and whatever other workers may promise."""
    first = Report(1.0, 0.0, seconds, min(loading, seconds))
    record = live(replace(first, checkpoint="/c") if can_resize else first)
    known = Knowledge([record], SPACE, goal(deadline_seconds=50.0), WorkerHours())
    planner = Planner(known, recipes=False, can_resize=can_resize)
    going = Going(1, can_resize=can_resize)
    decision = decide(known, record, going, planner=planner, forecast=planner)
    if seconds < 50:
        assert decision == Continue()
        return
    assert decision == Stop(StopCause.DEADLINE, f"{whole(seconds)} s have passed")
    assert planner.next_step(record, going) == decision


def test_a_first_epoch_that_all_but_spends_the_time_of_a_run_has_no_chance_by_the_planner() -> None:
    record = live(Report(1.0, 0.0, 49.9))
    known = Knowledge([record], SPACE, goal(deadline_seconds=50.0), WorkerHours())
    decision = Planner(known, recipes=False, can_resize=False).next_step(record, Going(1))
    assert cause(decision) is StopCause.DEADLINE
    assert "estimated chance of 0.0%" in str(decision)
