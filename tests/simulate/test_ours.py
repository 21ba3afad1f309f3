"""The package's own policy on jobs by formula: what its sweeps cost against the oracle."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.cost import NodeHours, WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.simulate.analytic import AnalyticWorkload
from raycosttune.simulate.bill import Bill, bill
from raycosttune.simulate.noise import Noise
from raycosttune.simulate.oracle import Truth
from raycosttune.simulate.outcome import Outcome
from raycosttune.simulate.policies import OURS, start_policy
from raycosttune.simulate.run import simulate

SPACE = Space((1, 2, 4, 8), (32, 64, 128, 256, 512, 1024), workers_per_node=4)
GOAL = Goal(target=0.9, metric="accuracy", mode="max", planned_runs=10)
JOBS = {
    "small batches": AnalyticWorkload(SPACE, noise_scale=60, step_overhead_seconds=1e-3),
    "large batches": AnalyticWorkload(SPACE, noise_scale=5000, step_overhead_seconds=0.2),
    "middling": AnalyticWorkload(SPACE),
    "slow starts": AnalyticWorkload(SPACE, startup=120, sync_seconds=0.001),
    "often evaluated": AnalyticWorkload(SPACE, evaluations_per_epoch=4, time_constant=2),
    "dear workers": AnalyticWorkload(SPACE, sync_seconds=0.05, noise_scale=2000),
}
WORKERS = WorkerHours()
NOISE = Noise(0.05, curves=True)
FEW = settings(max_examples=10)


@cache
def swept(
    workload: AnalyticWorkload,
    goal: Goal = GOAL,
    cost: WorkerHours | NodeHours = WORKERS,
    *,
    seed: int = 0,
) -> tuple[Outcome, Bill]:
    start = start_policy(OURS, workload, goal, cost, seed=seed)
    limit = goal.deadline_seconds
    outcome = simulate(start, workload, cost=cost, deadline_seconds=limit, noise=NOISE, seed=seed)
    return outcome, bill(Truth(workload, goal, cost), outcome.last)


def with_deadline(workload: AnalyticWorkload, share: float) -> Goal:
    fastest = min(Truth(workload, GOAL, WORKERS).seconds.values())
    return replace(GOAL, deadline_seconds=share * fastest)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cost", [WORKERS, NodeHours()], ids=["workers", "nodes"])
@pytest.mark.parametrize("name", JOBS)
def test_a_job_by_formula_costs_little_more_than_the_oracle(
    name: str, cost: WorkerHours | NodeHours, seed: int
) -> None:
    outcome, found = swept(JOBS[name], cost=cost, seed=seed)
    assert outcome.trials[0].is_profile
    assert not found.misses_target
    assert found.ratio < 1.6
    assert found.regret < 0.3
    assert {trial.allocation for trial in outcome.trials} <= set(SPACE.cells)


@pytest.mark.parametrize("share", [1.2, 2.0, 5.0])
@pytest.mark.parametrize("name", ["small batches", "large batches", "middling"])
def test_a_deadline_is_met_at_little_more_than_the_oracle_pays(name: str, share: float) -> None:
    goal = with_deadline(JOBS[name], share)
    _, found = swept(JOBS[name], goal)
    assert not found.misses_target
    assert not found.misses_deadline
    assert found.ratio < 2


@pytest.mark.parametrize("name", JOBS)
def test_a_single_planned_run_ends_with_its_first_success(name: str) -> None:
    outcome, found = swept(JOBS[name], replace(GOAL, planned_runs=1))
    assert not found.misses_target
    assert sum(trial.cause == "reached" for trial in outcome.trials) == 1
    assert outcome.why == "the target is reached and no further run is planned"
    assert found.ratio < 3


def test_more_planned_runs_bring_the_bill_nearer_to_the_oracle() -> None:
    for name in JOBS:
        few, many = (swept(JOBS[name], replace(GOAL, planned_runs=k))[1] for k in (2, 1000))
        assert many.ratio < few.ratio + 0.05
        assert many.ratio < 1.15


@FEW
@given(
    st.floats(20, 20_000),
    st.sampled_from((0.0, 0.01, 0.3)),
    st.sampled_from((0.0, 0.005, 0.1)),
    st.sampled_from((0.0, 30.0)),
    st.sampled_from((None, 1.3, 4.0)),
)
def test_any_job_reaches_the_target_and_session_and_simulation_agree_on_its_cost(
    noise_scale: float, step: float, sync: float, startup: float, share: float | None
) -> None:
    workload = AnalyticWorkload(
        SPACE,
        noise_scale=noise_scale,
        step_overhead_seconds=step,
        sync_seconds=sync,
        startup=startup,
    )
    goal = GOAL if share is None else with_deadline(workload, share)
    made: list[Session] = []

    def start(clock: Callable[[], float]) -> Session:
        policy = start_policy(OURS, workload, goal, WORKERS, seed=0)(clock)
        assert isinstance(policy, Session)
        made.append(policy)
        return policy

    outcome = simulate(
        start, workload, cost=WORKERS, deadline_seconds=goal.deadline_seconds, noise=NOISE
    )
    assert made[0].spent == pytest.approx(outcome.last.spent)
    assert not made[0].live
    assert not made[0].live_profiles
    assert outcome.last.chosen in workload.space.cells
    assert outcome.last.delivered or goal.deadline_seconds is not None
