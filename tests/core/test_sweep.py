"""Laws of whole sweeps: a session driven over a simulated job until it says it is over."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.decision import Continue, Finished, Run, StopCause, Wait
from raycosttune.core.observation import EndCause, Ended
from raycosttune.core.plan import NoPlan, Plan
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from tests.core.drive import Factors, Job, Simulation, amdahl, goal, jobs, spaces, spaces_and_jobs

METRICS = st.sampled_from((NodeHours(), WorkerHours()))
FACTORS = st.lists(st.floats(0.5, 2), min_size=1, max_size=3)
SWEEPS = settings(max_examples=25)


@SWEEPS
@given(table=spaces_and_jobs(), cost=METRICS, planned=st.sampled_from((1, 2, 10, 1000)))
def test_without_limits_a_sweep_ends_with_the_cheapest_of_what_it_measured(
    table: tuple[Space, Job], cost: CostMetric, planned: int
) -> None:
    space, job = table
    sweep = Simulation(space, goal(planned_runs=planned), job, cost=cost)
    sweep.run()
    plan = sweep.session.plan()
    assert isinstance(plan, Plan)
    known = sweep.session.known
    cheapest = min(
        cost(other.allocation, job.seconds(other.allocation)) for other in known.measured
    )
    noise = 1.11  # half width of the interval around a single epoch
    assert cost(plan.allocation, job.seconds(plan.allocation)) <= cheapest * noise**2
    assert plan.predicted_cost.mid == min(other.cost.mid for other in known.measured)
    assert plan.spent == pytest.approx(sweep.session.spent)


@SWEEPS
@given(data=st.data(), cost=METRICS)
def test_a_plan_over_measured_cells_is_the_oracle(data: st.DataObject, cost: CostMetric) -> None:
    space = Space((1, 2), (64, 128, 256), workers_per_node=data.draw(st.sampled_from((1, 2))))
    job = data.draw(jobs(space))
    session = Simulation(space, goal(), job, cost=cost).session
    for cell in space.cells:
        session.adopt(job.record(goal(), cell, str(cell)))
    plan = session.plan()
    assert isinstance(plan, Plan)
    oracle = min(cost(cell, job.seconds(cell)) for cell in space.cells)
    # What a single epoch shows of a cell may be off by its noise, at most this half width.
    assert cost(plan.allocation, job.seconds(plan.allocation)) <= oracle * math.exp(2 * 0.10)
    assert isinstance(session.ask("more"), Finished)


@SWEEPS
@given(table=spaces_and_jobs(), factors=st.none() | FACTORS, cost=METRICS)
def test_a_sweep_for_one_run_ends_with_its_first_success(
    table: tuple[Space, Job], factors: list[float] | None, cost: CostMetric
) -> None:
    space, job = table
    proposer = None if factors is None else Factors(factors)
    sweep = Simulation(space, goal(planned_runs=1), job, cost=cost, proposer=proposer)
    assert sweep.run() == Finished("the target is reached and no further run is planned")
    assert sweep.stops == [StopCause.REACHED]


@SWEEPS
@given(table=spaces_and_jobs(), factors=st.none() | FACTORS, share=st.floats(0.1, 3))
def test_a_sweep_overspends_its_budget_by_at_most_one_report(
    table: tuple[Space, Job], factors: list[float] | None, share: float
) -> None:
    space, job = table
    budget = share * WorkerHours()(space.cells[0], job.seconds(space.cells[0]))
    proposer = None if factors is None else Factors(factors)
    limits = goal(sweep_budget=budget, planned_runs=1000)
    sweep = Simulation(space, limits, job, cost=WorkerHours(), proposer=proposer)
    sweep.run()
    longest = max(
        WorkerHours()(cell, job.epoch_seconds[cell] + job.startup_seconds) for cell in space.cells
    )
    assert sweep.session.spent <= budget + longest


@SWEEPS
@given(table=spaces_and_jobs(), share=st.floats(0.1, 3))
def test_a_sweep_outlasts_its_deadline_by_at_most_one_report(
    table: tuple[Space, Job], share: float
) -> None:
    space, job = table
    deadline = share * job.seconds(space.cells[0])
    limits = goal(sweep_deadline_seconds=deadline, planned_runs=1000)
    sweep = Simulation(space, limits, job)
    sweep.run()
    longest = max(job.epoch_seconds.values()) + job.startup_seconds
    assert sweep.session.elapsed_seconds == sweep.now <= deadline + longest


@SWEEPS
@given(table=spaces_and_jobs(), share=st.floats(0.2, 2), factors=st.none() | FACTORS)
def test_a_plan_meets_the_deadline(
    table: tuple[Space, Job], share: float, factors: list[float] | None
) -> None:
    space, job = table
    times = [job.seconds(cell) for cell in space.cells]
    limits = goal(deadline_seconds=share * max(times), planned_runs=100)
    proposer = None if factors is None else Factors(factors)
    sweep = Simulation(space, limits, job, proposer=proposer)
    sweep.run()
    plan = sweep.session.plan()
    limit = limits.deadline_seconds or math.inf
    if isinstance(plan, Plan):
        noise = 1.11
        assert job.seconds(plan.allocation, plan.recipe) <= limit * noise
    else:
        assert isinstance(plan, NoPlan)
        assert plan.reason


@SWEEPS
@given(space=spaces(), factors=FACTORS)
def test_a_proposer_that_repeats_itself_does_not_keep_a_sweep_alive(
    space: Space, factors: list[float]
) -> None:
    unreachable = Job(
        dict.fromkeys(space.cells, 1.0), {cell.batch_size: 1e9 for cell in space.cells}
    )
    sweep = Simulation(space, goal(max_epochs=2), unreachable, proposer=Factors(factors))
    most = 2 * len(space.cells) + 3
    sweep.run(most=most + 1)
    assert len(sweep.session.records) <= most
    assert set(sweep.stops) <= {StopCause.EPOCHS}


@SWEEPS
@given(data=st.data(), table=spaces_and_jobs(), with_recipes=st.booleans(), cost=METRICS)
def test_a_restored_session_goes_on_as_the_unbroken_one(
    data: st.DataObject, table: tuple[Space, Job], with_recipes: bool, cost: CostMetric
) -> None:
    space, job = table
    most = data.draw(st.sampled_from((None, 3)))
    proposer = Factors([1.3, 0.7, 1.0]) if with_recipes else None
    limits = goal(planned_runs=100, sweep_budget=1000)
    sweep = Simulation(space, limits, job, cost=cost, proposer=proposer, max_concurrent=most)
    moves = data.draw(st.lists(st.sampled_from(("ask", "step", "fail")), max_size=12))
    for k, move in enumerate(moves):
        unbroken, restored = sweep.session, sweep.fresh_session()
        restored.load_state(json.loads(json.dumps(unbroken.state())))
        assert_same_judgements(unbroken, restored)
        live = [record.trial_id for record in unbroken.live]
        if move == "ask":
            answer = unbroken.ask(f"t{k}")
            assert restored.ask(f"t{k}") == answer
            assert live or not isinstance(answer, Wait)
        sweep.session = data.draw(st.sampled_from((unbroken, restored)))
        if move == "step" and live:
            sweep.step(live[k % len(live)])
        elif move == "fail" and live:
            sweep.session.tell(live[0], Ended(EndCause.FAILED, "lost"))


def assert_same_judgements(unbroken: Session, restored: Session) -> None:
    for record in unbroken.live:
        assert restored.decide(record.trial_id) == unbroken.decide(record.trial_id)
        assert restored.ask(record.trial_id) == unbroken.ask(record.trial_id)
    assert restored.plan() == unbroken.plan()
    assert restored.explain() == unbroken.explain()
    assert restored.spent == unbroken.spent


@SWEEPS
@given(data=st.data(), table=spaces_and_jobs(), most=st.sampled_from((None, 1, 3)))
def test_a_sweep_never_waits_for_nothing_and_ends(
    data: st.DataObject, table: tuple[Space, Job], most: int | None
) -> None:
    space, job = table
    sweep = Simulation(space, goal(planned_runs=100), job, max_concurrent=most)
    free = st.none() | st.integers(0, 8)
    for k in range(80):
        answer = sweep.session.ask(f"t{k}", free_workers=data.draw(free) if k < 12 else None)
        live = [record.trial_id for record in sweep.session.live]
        if isinstance(answer, Finished):
            assert not live
            return
        assert live
        if isinstance(answer, Wait) or k % 2:
            sweep.train(live[0])
    pytest.fail("no end after 80 questions")


def test_the_first_three_trials_failing_end_a_sweep() -> None:
    space = Space((1, 2), (64, 128))
    sweep = Simulation(space, goal(), amdahl(space))
    for k in range(3):
        assert isinstance(sweep.session.ask(f"t{k}"), Run)
        sweep.session.tell(f"t{k}", Ended(EndCause.FAILED))
    reason = "the first 3 trials ended without a report: see their errors"
    assert sweep.session.ask("t3") == Finished(reason)


@pytest.mark.parametrize(("cause", "times"), [(EndCause.FAILED, 2), (EndCause.OUT_OF_MEMORY, 1)])
def test_a_cell_that_cannot_run_is_left_for_another(cause: EndCause, times: int) -> None:
    space = Space((1, 2), (64, 128))
    sweep = Simulation(space, goal(planned_runs=1), amdahl(space))
    cells = []
    for k in range(times + 1):
        answer = sweep.session.ask(f"t{k}")
        assert isinstance(answer, Run)
        cells.append(answer.allocation)
        sweep.session.tell(f"t{k}", Ended(cause))
    assert len(set(cells[:-1])) == 1
    assert cells[-1] != cells[0]


def test_a_sweep_goes_on_after_a_trial_failed() -> None:
    space = Space((1, 2), (64, 128))
    sweep = Simulation(space, goal(planned_runs=1), amdahl(space))
    sweep.session.ask("failed")
    sweep.session.tell("failed", Ended(EndCause.FAILED))
    sweep.run()
    assert isinstance(sweep.session.plan(), Plan)


def test_an_unreachable_target_ends_a_sweep() -> None:
    space = Space((1, 2), (64,))
    never = Job(dict.fromkeys(space.cells, 1.0), {64: 1e9})
    sweep = Simulation(space, goal(max_epochs=3), never)
    assert sweep.run().why.startswith("no untried configuration can be expected")
    assert isinstance(sweep.session.plan(), NoPlan)


def test_a_trial_that_ends_by_itself_before_the_target_is_an_observation() -> None:
    space = Space((1, 2), (64, 128))
    sweep = Simulation(space, goal(), amdahl(space))
    assert isinstance(sweep.session.ask("short"), Run)
    assert sweep.step("short") == Continue()
    sweep.train("short", most=2)
    assert sweep.session.records["short"].ended == Ended(EndCause.FINISHED)
    sweep.run()
    assert isinstance(sweep.session.plan(), Plan)
