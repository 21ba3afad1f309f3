"""A session under another cost, which reads no trial again."""

import pytest

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.dollars import Dollars
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.prior import Prior
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.errors import InvalidCostError
from tests.core.drive import Simulation, amdahl, goal
from tests.core.test_failing_cost import Fickle

SPACE = Space((1, 2, 4), (32, 64, 128), workers_per_node=2)
JOB = amdahl(SPACE)
SHEET = PriceSheet((NodePrice(name="any", per_hour=3.0, minimum_seconds=60),))


def swept(*, is_over: bool) -> Session:
    sweep = Simulation(SPACE, goal(planned_runs=20), JOB, cost=NodeHours())
    for k in range(4):
        if type(sweep.session.ask(f"t{k}")).__name__ != "Run":
            break
        sweep.train(f"t{k}", 500 if is_over or k == 0 else 2)
    return sweep.session


@pytest.mark.parametrize("is_over", [False, True])
@pytest.mark.parametrize(
    "cost", [WorkerHours(), NodeHours(), Dollars(SHEET), Dollars(SHEET, billing="held")]
)
def test_it_says_what_a_session_says_that_has_read_everything(
    cost: CostMetric, is_over: bool
) -> None:
    told = swept(is_over=is_over)
    before = str(told.plan()), told.spent
    priced = told.priced(cost)
    fresh = Session(SPACE, told.goal, cost=cost, clock=float)
    fresh.load_state(told.state())
    assert priced.plan() == fresh.plan()
    assert priced.explain() == fresh.explain()
    assert priced.pareto() == fresh.pareto()
    assert priced.spent == fresh.spent
    assert priced.state()["records"] == fresh.state()["records"]
    assert (str(told.plan()), told.spent) == before
    assert told.priced(cost).plan() == priced.plan()


def test_what_it_began_with_counts_as_before() -> None:
    prior = Prior(tuple(swept(is_over=True).records.values()))
    told = Session(SPACE, goal(planned_runs=20), cost=NodeHours(), prior=prior, clock=float)
    fresh = Session(SPACE, told.goal, cost=WorkerHours(), prior=prior, clock=float)
    priced = told.priced(WorkerHours())
    assert priced.plan() == fresh.plan()
    assert priced.explain() == fresh.explain()


def test_a_cost_that_is_none_is_refused() -> None:
    broken = Fickle()
    broken.fails = True
    with pytest.raises(InvalidCostError, match="no price today"):
        swept(is_over=True).priced(broken)
