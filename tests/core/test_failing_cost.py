import pytest

from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Continue, Decision, Finished, Run, Stop, StopCause
from raycosttune.core.going import Going
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.plan import NoPlan, Plan
from raycosttune.core.space import Allocation, Space
from raycosttune.core.stopping import decide, decide_without_cost
from tests.core.drive import Simulation, amdahl, goal

SPACE = Space((1, 2), (64, 128))
WIDE = Space((1, 2, 4), (64, 128, 256))
CELL, OTHER = SPACE.cells[:2]
JOB = amdahl(SPACE)
GOAL = goal()


def running(*reports: Report) -> TrialRecord:
    return TrialRecord("live", CELL, {}, 1, list(reports))


def cause(decision: Decision) -> StopCause | None:
    return decision.cause if isinstance(decision, Stop) else None


class Fickle:
    """Is a cost metric that fails once it is told to."""

    unit = "EUR"
    fails = False

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        if self.fails:
            msg = "no price today"
            raise RuntimeError(msg)
        return allocation.workers * seconds


def test_where_runs_can_no_longer_be_compared_none_is_stopped_for_its_cost() -> None:
    cost = Fickle()
    sweep = Simulation(SPACE, goal(planned_runs=100), JOB, cost=cost).session
    sweep.adopt(JOB.record(sweep.goal, OTHER, "done"))
    sweep.adopt(TrialRecord("live", CELL, {}, 1, [Report(1.0, 0.0, 1e4), Report(2.0, 0.0, 1e4)]))
    assert cause(sweep.decide("live")) is StopCause.COST
    cost.fails = True
    sweep.adopt(TrialRecord("new", CELL, {}, 2, [Report(1.0, 0.0, 1e4), Report(2.0, 0.0, 1e4)]))
    assert sweep.decide("new") == Continue()


def test_a_cost_that_fails_in_the_middle_ends_the_sweep_and_stops_no_run() -> None:
    cost = Fickle()
    sweep = Simulation(SPACE, goal(), amdahl(SPACE), cost=cost).session
    assert isinstance(sweep.ask("t"), Run)
    sweep.tell("t", Report(1.0, 0.0, 10.0))
    cost.fails = True
    sweep.tell("t", Report(2.0, 0.0, 10.0))
    assert sweep.decide("t") == Continue()
    answer = sweep.ask("u")
    assert isinstance(answer, Finished)
    assert answer.is_failure
    assert "no price today" in answer.why
    plan = sweep.plan()
    assert isinstance(plan, NoPlan)
    assert str(plan).startswith("no plan: nothing can be compared: Fickle raised")
    assert "nan" not in str(plan)
    assert sweep.explain() == str(plan)
    sweep.tell("t", Report(3.0, 1.0, 10.0))
    decision = sweep.decide("t")
    assert isinstance(decision, Stop)
    assert decision.cause is StopCause.REACHED
    cost.fails = False
    assert sweep.spent == 30.0
    assert isinstance(sweep.plan(), Plan)


@pytest.mark.parametrize(
    ("reports", "elapsed", "expected"),
    [
        ([], 0.0, None),
        ([Report(1.0, 0.0, 10.0)], 0.0, None),
        ([Report(1.0, 1.0, 10.0)], 0.0, StopCause.REACHED),
        ([Report(9.0, 0.0, 10.0)], 0.0, StopCause.EPOCHS),
        ([Report(1.0, 0.0, 500.0)], 0.0, StopCause.DEADLINE),
        ([Report(1.0, 0.0, 10.0)], 1000.0, StopCause.BUDGET),
    ],
)
def test_where_the_cost_fails_a_run_ends_by_its_target_its_epochs_or_its_time(
    reports: list[Report], elapsed: float, expected: StopCause | None
) -> None:
    limits = goal(deadline_seconds=300, max_epochs=9, sweep_deadline_seconds=1000)
    record = running(*reports)
    known = Knowledge([record], SPACE, limits, WorkerHours())
    assert cause(decide_without_cost(known, record, elapsed)) is expected


class Rebate:
    """Falls where a run takes longer."""

    unit = "EUR"
    monotone = False

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        return allocation.workers * 1000 / (1 + seconds)


def test_a_run_whose_cost_may_fall_is_not_stopped_for_a_bound_on_it() -> None:
    done = JOB.record(GOAL, OTHER, "done")
    record = running(*(JOB.report(GOAL, CELL, {}, k) for k in range(1, 4)))
    known = Knowledge([done, record], SPACE, GOAL, Rebate())
    assert decide(known, record, Going(record.allocation.workers)) == Continue()


def test_a_trial_that_hangs_ends_at_the_deadlines_though_its_cost_is_unknown() -> None:
    cost = Fickle()
    limits = goal(deadline_seconds=100.0, sweep_deadline_seconds=1000.0, sweep_budget=50.0)
    simulation = Simulation(SPACE, limits, amdahl(SPACE), cost=cost)
    sweep = simulation.session
    sweep.ask("t")
    sweep.tell("t", Report(1.0, 0.0, 10.0))
    workers = sweep.records["t"].allocation.workers
    assert sweep.overdue({"t": 39.0 / workers}) == {}
    assert cause(sweep.overdue({"t": 50.0 / workers})["t"]) is StopCause.BUDGET
    cost.fails = True
    sweep.tell("t", Report(2.0, 0.0, 10.0))
    assert sweep.overdue({"t": 70.0}) == {}
    assert cause(sweep.overdue({"t": 81.0})["t"]) is StopCause.DEADLINE
    simulation.now = 1000.0
    assert cause(sweep.overdue({})["t"]) is StopCause.BUDGET


class Free:
    """Is a cost metric of machines that cost nothing, up to some workers."""

    unit = "EUR"

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        return 0.0 if allocation.workers <= self.workers else allocation.workers * seconds


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("deadline", [None, 500.0])
def test_what_is_free_can_not_be_beaten_and_ends_the_sweep(
    workers: int, deadline: float | None
) -> None:
    sweep = Simulation(WIDE, goal(deadline_seconds=deadline), amdahl(WIDE), cost=Free(workers))
    end = sweep.run()
    assert not end.is_failure
    plan = sweep.session.plan()
    assert isinstance(plan, Plan)
    if workers == 4 or deadline is None:
        assert plan.predicted_cost.mid == 0
        assert (plan.certificate.gap, plan.likely_saving) == (0, 0)
    assert sweep.session.explain()


class Rising:
    """Is a cost metric whose price rises from call to call."""

    unit = "EUR"
    calls = 0

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        self.calls += 1
        return allocation.workers * seconds * (1 + self.calls / 1000)


def test_a_price_that_rises_from_call_to_call_leaves_a_plan() -> None:
    sweep = Simulation(WIDE, goal(), amdahl(WIDE), cost=Rising())
    assert not sweep.run().is_failure
    assert isinstance(sweep.session.plan(), Plan)
