import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.abilities import Abilities
from raycosttune.core.certificate import certify
from raycosttune.core.constraint import Bound, RunBudget
from raycosttune.core.cost import NodeHours, WorkerHours
from raycosttune.core.decision import Finished, Run, Stop, StopCause
from raycosttune.core.going import Going
from raycosttune.core.keeping import keeps
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.plan import NoPlan, Plan
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.core.stopping import decide
from raycosttune.errors import InvalidCostError
from tests.core.drive import Job, Simulation, amdahl, goal, spaces_and_jobs

SPACE = Space((1, 2, 4), (32, 64, 128))
JOB = amdahl(SPACE, startup_seconds=2.0)


def budget(most: float) -> RunBudget:
    return RunBudget(cost=WorkerHours(), at_most=most)


def test_a_run_keeps_to_the_deadline_and_to_every_budget() -> None:
    cells = SPACE.cells[:2]
    limits = replace(goal(deadline_seconds=100), constraints=(budget(0.02),))
    seconds = np.array([[50.0, 72.0, 73.0], [101.0, math.inf, math.nan]])
    assert keeps(limits, cells, seconds).tolist() == [[True, True, False], [False] * 3]
    assert keeps(goal(), cells, seconds).tolist() == [[True] * 3, [True, True, False]]


@settings(max_examples=40)
@given(table=spaces_and_jobs(), share=st.floats(0.0, 1.0))
def test_a_plan_keeps_to_the_budget_and_is_the_cheapest_measured_one_that_does(
    table: tuple[Space, Job], share: float
) -> None:
    space, job = table
    paid = sorted(WorkerHours()(cell, job.seconds(cell)) for cell in space.cells)
    most = (paid[0] + share * (paid[-1] - paid[0])) * 1.1
    limits = replace(goal(), constraints=(budget(most),))
    records = [job.record(limits, cell, str(cell)) for cell in space.cells]
    known = Knowledge(records, space, limits, NodeHours())
    incumbent = known.incumbent
    assert incumbent is not None
    assert WorkerHours()(incumbent.allocation, incumbent.seconds.mid) <= most
    kept = [c for c in space.cells if WorkerHours()(c, job.seconds(c)) <= most * (1 - 1e-9)]
    assert incumbent.cost.mid == min(run.cost.mid for run in known.measured)
    for cell in set(kept) - {run.allocation for run in known.measured}:
        bound = (1 - certify(known, incumbent).gap) * incumbent.cost.mid
        assert NodeHours()(cell, job.seconds(cell)) >= bound * (1 - 1e-9)
    assert {run.allocation for run in known.measured} >= {incumbent.allocation}


def test_a_search_under_a_budget_finds_what_keeps_to_it() -> None:
    free = Simulation(SPACE, goal(planned_runs=100), JOB, cost=NodeHours())
    free.run()
    fast = free.session.plan()
    assert isinstance(fast, Plan)
    paid = WorkerHours()(fast.allocation, fast.predicted_seconds.mid)
    limits = replace(goal(planned_runs=100), constraints=(budget(0.7 * paid),))
    sweep = Simulation(SPACE, limits, JOB, cost=NodeHours())
    sweep.run()
    plan = sweep.session.plan()
    assert isinstance(plan, Plan)
    assert WorkerHours()(plan.allocation, plan.predicted_seconds.mid) <= 0.7 * paid
    assert all(
        WorkerHours()(offer.allocation, offer.seconds) <= 0.7 * paid
        for offer in sweep.session.pareto()
        if offer.value == limits.target
    )
    assert str(plan) in sweep.session.explain()


def test_a_run_that_its_own_time_shows_to_keep_is_the_plan() -> None:
    cell, own = SPACE.cells[0], JOB.seconds(SPACE.cells[0])
    limits = replace(goal(), constraints=(budget(own / 3600 * 1.001),))
    done = JOB.record(limits, cell, "done")  # likely times are held with a margin, its own is not
    known = Knowledge([done], SPACE, limits, NodeHours())
    assert known.incumbent is not None
    dear = replace(limits, constraints=(budget(own / 3600 * 0.9),))
    assert Knowledge([done], SPACE, dear, NodeHours()).incumbent is None


def test_a_run_that_can_only_cost_too_much_is_stopped() -> None:
    cell = SPACE.cells[0]
    begun = JOB.record(goal(), cell, "t", epochs=2)
    record = TrialRecord("t", cell, {}, 0, begun.reports)
    limits = replace(goal(), constraints=(budget(0.01),))
    decision = decide(
        Knowledge([record], SPACE, limits, NodeHours()), record, Going(record.allocation.workers)
    )
    assert isinstance(decision, Stop)
    assert decision.cause is StopCause.DEADLINE
    assert decision.why.startswith("can't reach the target for at most 0.01 worker-hours a run")
    wide = replace(goal(), constraints=(budget(10.0),))
    assert not isinstance(
        decide(
            Knowledge([record], SPACE, wide, NodeHours()), record, Going(record.allocation.workers)
        ),
        Stop,
    )


def test_a_resized_run_shows_no_cell_to_keep_to_a_budget() -> None:
    cell = SPACE.cells[-1]
    moved = [
        Report(1.0, 0.0, 500.0, workers=1), Report(2.0, 1.0, 30.0, workers=4),
    ]  # fmt: skip
    record = TrialRecord("t", cell, {}, 0, moved, Ended(EndCause.REACHED))
    timed = goal(deadline_seconds=600)
    assert Knowledge([record], SPACE, timed, NodeHours()).incumbent is not None
    tight = replace(timed, deadline_seconds=531, constraints=(budget(1e-6),))
    assert Knowledge([record], SPACE, tight, NodeHours()).incumbent is None


def test_guesses_are_held_against_no_budget_and_no_profile_is_made_under_one() -> None:
    limits = replace(goal(deadline_seconds=1e6), constraints=(budget(1e-3),))
    sweep = Session(SPACE, limits, abilities=Abilities(profile=True), clock=lambda: 0.0)
    assert isinstance(sweep.ask("t"), Run)


def test_a_budget_is_tried_on_every_cell_before_the_first_trial() -> None:
    class Falling(WorkerHours):
        def __call__(self, allocation: Allocation, seconds: float) -> float:
            return max(100 - seconds, 0.0) * allocation.workers

    limits = replace(goal(), constraints=(RunBudget(cost=Falling(), at_most=1),))
    with pytest.raises(InvalidCostError, match="must not fall as seconds grow"):
        Session(SPACE, limits, clock=lambda: 0.0)


def test_a_run_goes_on_until_the_other_metric_keeps_to_its_bound() -> None:
    bound = Bound(metric="latency", at_most=20)
    limits = replace(goal(), constraints=(bound,))
    sweep = Session(SPACE, limits, cost=WorkerHours(), clock=lambda: 0.0)
    assert isinstance(sweep.ask("t"), Run)
    sweep.tell("t", Report(1.0, 0.5, 30.0, others=(("latency", 10.0),)))
    sweep.tell("t", Report(2.0, 1.0, 30.0, others=(("latency", 30.0),)))
    assert not isinstance(sweep.decide("t"), Stop)
    plan = sweep.plan()
    assert isinstance(plan, NoPlan)
    assert "none reached accuracy 1 with latency <= 20" in plan.reason
    measured = [offer for offer in sweep.pareto() if offer.is_measured]
    assert [(offer.epochs, offer.value) for offer in measured] == [(1.0, 0.5)]
    assert all(0.5 < offer.value <= 1 for offer in sweep.pareto() if not offer.is_measured)
    sweep.tell("t", Report(3.0, 1.0, 30.0, checkpoint="/c", others=(("latency", 20.0),)))
    decision = sweep.decide("t")
    assert isinstance(decision, Stop)
    assert decision.cause is StopCause.REACHED
    done = sweep.plan()
    assert isinstance(done, Plan)
    assert (done.epochs, done.checkpoint) == (3.0, "/c")
    again = Session(SPACE, limits, cost=WorkerHours(), clock=lambda: 0.0)
    again.load_state(sweep.state())
    assert again.records == sweep.records


def test_a_budget_that_fails_in_mid_sweep_costs_no_trial() -> None:
    class Fickle:
        unit = "EUR"
        fails = False

        def __call__(self, allocation: Allocation, seconds: float) -> float:
            return math.nan if self.fails else allocation.workers * seconds

    cost = Fickle()
    limits = replace(goal(deadline_seconds=900), constraints=(RunBudget(cost=cost, at_most=1e6),))
    sweep = Session(SPACE, limits, cost=WorkerHours(), clock=lambda: 0.0)
    assert isinstance(sweep.ask("t"), Run)
    sweep.tell("t", Report(1.0, 0.5, 30.0))
    cost.fails = True
    assert not isinstance(sweep.decide("t"), Stop)
    sweep.tell("t", Report(2.0, 1.0, 30.0))
    decision = sweep.decide("t")
    assert isinstance(decision, Stop)
    assert decision.cause is StopCause.REACHED
    plan = sweep.plan()
    assert isinstance(plan, NoPlan)
    assert "Fickle" in plan.reason
    answer = sweep.ask("u")
    assert isinstance(answer, Finished)
    assert answer.is_failure
