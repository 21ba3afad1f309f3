"""Loading in the first epochs of runs is held against none."""

from dataclasses import replace

import pytest

from raycosttune.core.constraint import RunBudget
from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Continue, Decision, Stop, StopCause
from raycosttune.core.goal import Goal
from raycosttune.core.going import Going
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.plan import Plan, make_plan
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
