import math

import pytest

from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Answer, Continue, Decision, Finished, Run
from raycosttune.core.estimate import MOST_TRIALS, REHEARSALS, Estimate, NumberedRecipes, estimate
from raycosttune.core.goal import Goal
from raycosttune.core.observation import Ended, Observation
from raycosttune.core.prediction import Prediction
from raycosttune.core.space import Space
from tests.core.drive import Factors, Simulation, amdahl, goal

SPACE = Space((1, 2), (64, 128))


class Endless:
    """Is a sweep of one trial that nothing stops."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.ended: list[Ended] = []

    def ask(self, trial_id: str, *, free_workers: int | None = None) -> Answer:
        del free_workers
        return Run(SPACE.cells[0], {}, "may run") if trial_id == "0" else Finished("enough")

    def tell(self, trial_id: str, observation: Observation) -> bool:
        assert trial_id == "0"
        self.spent += observation.seconds
        if isinstance(observation, Ended):
            self.ended.append(observation)
        return True

    def decide(self, trial_id: str) -> Decision:
        assert trial_id == "0"
        return Continue()


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


def test_without_a_deadline_there_is_no_scale_and_without_a_budget_no_limit() -> None:
    found = estimate_of(goal())
    assert found.cost is None
    assert found.worst_cost is None
    assert "cost unknown: set deadline_seconds for a scale" in str(found)
    assert "no upper limit: set sweep_budget for one" in str(found)


def test_the_budget_bounds_the_estimate() -> None:
    found = estimate_of(goal(deadline_seconds=3600, planned_runs=100, sweep_budget=0.5))
    assert found.cost is not None
    assert found.worst_cost == 0.5
    assert found.cost.mid <= 0.6


def test_what_is_spent_is_the_least_a_sweep_can_cost() -> None:
    sweep = Simulation(SPACE, goal(deadline_seconds=1e4), amdahl(SPACE))
    sweep.run()
    found = sweep.session.estimate()
    assert found.cost is not None
    assert found.spent == pytest.approx(sweep.session.spent)
    assert found.cost.low >= found.spent


def test_a_rehearsed_trial_ends_even_where_nothing_stops_it() -> None:
    sweeps = [Endless() for _ in range(REHEARSALS)]
    waiting = iter(sweeps)
    limits = goal(deadline_seconds=60)
    found = estimate(SPACE, limits, "EUR", spent=0.0, start=lambda: next(waiting))
    assert found.trials == Prediction(1.0, 1.0, 1.0)
    assert all(len(sweep.ended) == 1 for sweep in sweeps)
    assert found.cost is not None
    assert found.cost.high == max(sweep.spent for sweep in sweeps)


def test_estimating_changes_nothing() -> None:
    session = Simulation(SPACE, goal(deadline_seconds=600), amdahl(SPACE)).session
    before = session.state()
    session.estimate()
    assert session.state() == before


def test_an_estimate_says_trials_cost_and_limit() -> None:
    found = Estimate(Prediction(1, 3, 7), Prediction(0.1, 0.25, 2), 5.0, 0.5, "EUR")
    expected = "1 to 7 trials; likely 0.25 EUR (0.1 to 2); at worst 5 EUR; spent so far 0.5"
    assert str(found) == expected


def test_rehearsed_recipes_are_told_apart() -> None:
    proposer = NumberedRecipes()
    assert proposer.propose(3, []) != proposer.propose(4, [])
