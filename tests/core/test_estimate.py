import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Run
from raycosttune.core.estimate import Estimate
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended
from raycosttune.core.prediction import Prediction
from raycosttune.core.rehearsal import MOST_TRIALS
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from tests.core.drive import Factors, Job, Simulation, amdahl, goal, spaces_and_jobs

SPACE = Space((1, 2), (64, 128))


def estimate_of(limits: Goal, *, recipes: bool = False) -> Estimate:
    proposer = Factors([1.0]) if recipes else None
    job = amdahl(SPACE)
    return Simulation(SPACE, limits, job, cost=WorkerHours(), proposer=proposer).session.estimate()


@pytest.mark.parametrize("recipes", [False, True])
@pytest.mark.parametrize("planned", [1, 20])
def test_an_estimate_is_ordered_finite_and_the_same_again(recipes: bool, planned: int) -> None:
    limits = goal(deadline_seconds=600, planned_runs=planned)
    found = estimate_of(limits, recipes=recipes)
    assert found == estimate_of(limits, recipes=recipes)
    assert found.cost is not None
    for predicted in (found.trials, found.cost):
        assert 0 < predicted.low <= predicted.mid <= predicted.high < math.inf
    assert 1 <= found.trials.low <= found.trials.high <= MOST_TRIALS


def test_a_longer_deadline_means_a_dearer_sweep() -> None:
    short, long = (estimate_of(goal(deadline_seconds=s)).cost for s in (60, 6000))
    assert short is not None
    assert long is not None
    assert long.mid == pytest.approx(100 * short.mid)


def test_more_planned_runs_justify_more_trials() -> None:
    few, many = (estimate_of(goal(deadline_seconds=60, planned_runs=k)) for k in (1, 1000))
    assert few.trials.low <= many.trials.low
    assert few.trials.mid < many.trials.mid


def test_without_a_deadline_there_is_no_scale_and_without_a_limit_no_worst_case() -> None:
    found = estimate_of(goal())
    assert found.cost is None
    assert found.remaining is None
    assert found.worst_cost is None
    assert "cost unknown: set deadline_seconds for a scale" in str(found)
    assert "no upper limit: set sweep_budget or sweep_deadline_seconds for one" in str(found)


def test_the_budget_bounds_the_estimate() -> None:
    found = estimate_of(goal(deadline_seconds=3600, planned_runs=100, sweep_budget=0.5))
    assert found.cost is not None
    assert found.worst_cost == 0.5
    assert found.cost.low <= found.cost.mid <= found.cost.high <= 0.5


def test_a_limit_that_is_likely_to_end_a_sweep_is_said() -> None:
    limits = goal(deadline_seconds=3600, planned_runs=100, sweep_budget=0.5)
    tight, wide = (estimate_of(replace(limits, sweep_budget=b)) for b in (1e-3, 1e3))
    cut = "and that limit is likely to end it; it is looked at in each report"
    assert str(tight).endswith(f"in all at worst 0.001 worker-hours, {cut}")
    assert "likely 0.001 worker-hours (0.001 to 0.001)" in str(tight)
    assert cut not in str(wide)


def test_of_a_sweep_that_is_over_nothing_remains() -> None:
    sweep = Simulation(SPACE, goal(deadline_seconds=1e4), amdahl(SPACE))
    sweep.run()
    found = sweep.session.estimate()
    spent = sweep.session.spent
    assert found.trials == Prediction(0, 0, 0)
    assert found.cost == Prediction(spent, spent, spent)
    assert found.remaining == Prediction(0, 0, 0)
    assert found.worst_cost == found.spent == spent
    assert found.over
    assert str(found) == f"spent so far {spent:.3g} node-hours; nothing remains: {found.over}"


def begun(limits: Goal, *, reports: int, recipes: bool = False) -> Session:
    """Returns a session whose first trial runs."""
    proposer = Factors([1.0, 2.0]) if recipes else None
    sweep = Simulation(SPACE, limits, amdahl(SPACE), cost=WorkerHours(), proposer=proposer)
    run = sweep.session.ask("first")
    assert isinstance(run, Run)
    for epoch in range(1, reports + 1):
        report = amdahl(SPACE).report(limits, run.allocation, {}, epoch)
        sweep.session.tell("first", report)
    return sweep.session


@pytest.mark.parametrize("recipes", [False, True])
@pytest.mark.parametrize("reports", [0, 3])
def test_a_running_sweep_says_what_is_spent_and_what_is_to_come(
    recipes: bool, reports: int
) -> None:
    session = begun(goal(deadline_seconds=1e4), reports=reports, recipes=recipes)
    before = session.state()
    found = session.estimate()
    assert session.state() == before
    assert found == session.estimate()
    assert (found.running, found.over) == (1, "")
    assert found.spent == pytest.approx(session.spent)
    assert found.cost is not None
    assert found.remaining is not None
    assert found.spent < found.cost.low <= found.cost.mid <= found.cost.high < math.inf
    assert found.remaining.mid == pytest.approx(found.cost.mid - found.spent)
    assert "beside 1 running" in str(found)


def test_what_is_measured_gives_the_scale_without_a_deadline() -> None:
    assert begun(goal(), reports=0).estimate().cost is None
    found = begun(goal(), reports=3).estimate()
    assert found.cost is not None
    assert "cost unknown" not in str(found)


def test_the_nearer_its_end_the_less_is_to_come() -> None:
    limits = goal(deadline_seconds=1e4, planned_runs=1)
    early, late = (begun(limits, reports=k).estimate().remaining for k in (1, 9))
    assert early is not None
    assert late is not None
    assert late.mid < early.mid


def test_a_trial_on_workers_that_the_cluster_lost_costs_no_more() -> None:
    session = begun(goal(deadline_seconds=1e4), reports=1)
    state = session.state()
    state["records"][0]["allocation"] = {"workers": 64, "batch_size": 64, "nodes": 1}
    session.load_state(state)
    assert session.estimate().running == 1


def test_a_longer_sweep_is_bounded_by_what_its_workers_can_cost() -> None:
    limits = goal(deadline_seconds=60, sweep_deadline_seconds=3600)
    cases: list[tuple[int | None, int | None, float, str]] = [
        (None, None, 2.0, "if one trial at a time runs"),
        (None, 1, 2.0, "with 1 trial at once"),
        (None, 3, 6.0, "with 3 trials at once"),
        (8, None, 8.0, "with all 8 workers of the cluster busy"),
        (8, 2, 4.0, "with all 8 workers of the cluster busy"),
        (1, 9, 1.0, "with the only worker of the cluster busy"),
    ]
    for most, at_once, hours, means in cases:
        space = replace(SPACE, max_workers=most)
        args = (space, limits, amdahl(SPACE))
        sweep = Simulation(*args, cost=WorkerHours(), max_concurrent=at_once)
        found = sweep.session.estimate()
        assert found.worst_cost == pytest.approx(hours)
        assert f"{hours:.3g} worker-hours ({means} until the sweep's deadline)" in str(found)


def test_the_tighter_of_two_limits_bounds_a_sweep() -> None:
    both = estimate_of(goal(sweep_deadline_seconds=3600, sweep_budget=0.5))
    assert (both.worst_cost, both.worst_means) == (0.5, "")
    both = estimate_of(goal(sweep_deadline_seconds=36, sweep_budget=0.5))
    assert both.worst_cost == pytest.approx(0.02)


def test_the_likely_cost_of_a_sweep_minds_its_deadline() -> None:
    limits = goal(deadline_seconds=1000, planned_runs=1000)
    free = estimate_of(limits)
    bound = estimate_of(replace(limits, sweep_deadline_seconds=1500))
    assert free.cost is not None
    assert bound.cost is not None
    assert bound.cost.mid < free.cost.mid
    assert bound.worst_cost is not None
    assert bound.cost.mid <= bound.worst_cost


@settings(max_examples=20, deadline=None)
@given(table=spaces_and_jobs(), planned=st.integers(1, 30), data=st.data())
def test_a_sweep_can_be_estimated_at_any_moment(
    table: tuple[Space, Job], planned: int, data: st.DataObject
) -> None:
    space, job = table
    sweep = Simulation(space, goal(planned_runs=planned), job, cost=WorkerHours())
    for name in "abc":
        if not isinstance(run := sweep.session.ask(name), Run):
            break
        until = data.draw(st.integers(0, job.needed(run.allocation, {})))
        for epoch in range(1, until + 1):
            sweep.session.tell(name, job.report(sweep.session.goal, run.allocation, {}, epoch))
        found = sweep.session.estimate()
        assert found.cost is None or found.spent <= found.cost.low <= found.cost.high < math.inf
        sweep.session.tell(name, Ended(EndCause.STOPPED))


def test_estimating_changes_nothing() -> None:
    session = Simulation(SPACE, goal(deadline_seconds=600), amdahl(SPACE)).session
    before = session.state()
    session.estimate()
    assert session.state() == before


def test_an_estimate_says_what_is_spent_and_to_come_and_the_limit() -> None:
    found = Estimate(Prediction(1, 3, 7), Prediction(0.6, 0.75, 2.5), 5.0, 0.5, "EUR")
    assert str(found) == (
        "spent so far 0.5 EUR; still to come: 1 to 7 trials, likely 0.25 EUR (0.1 to 2); "
        "in all at worst 5 EUR"
    )
    same = replace(found, trials=Prediction(2, 2, 2))
    assert "to come: 2 trials, " in str(same)
    assert "to come: 1 trial, " in str(replace(found, trials=Prediction(1, 1, 1)))
