import math
from typing import Any

import pytest

from raycosttune.core.billing import Use
from raycosttune.core.cost import NodeHours, WorkerHours, may_fall
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.dollars import Dollars
from raycosttune.core.energy import EnergyKWh
from raycosttune.core.held import is_additive
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.space import Allocation, Space
from raycosttune.core.weighted_sum import WeightedSum
from raycosttune.errors import InvalidCostError

SHEET = PriceSheet((NodePrice(name="any", per_hour=3600.0, minimum_seconds=10),))
CELL = Allocation(2, 64, 2)
SUM = WeightedSum(
    ((1.0, Dollars(SHEET, billing="held")), (0.5, EnergyKWh(watts_per_node=3.6e6))), "USD"
)


def test_a_sum_is_a_cost_and_adds_its_terms_in_runs_and_in_bills() -> None:
    check_cost_metric(SUM, Space((1, 2), (64,)).cells)
    assert SUM(CELL, 5.0) == pytest.approx(2 * 10 + 0.5 * 10)
    trials = [Use(CELL, 4, 0), Use(CELL, 4, 6)]
    assert SUM.bill(trials) == pytest.approx(2 * 10 + 0.5 * 16)


class Rebate(WorkerHours):
    monotone = False


def test_a_sum_is_additive_where_every_term_is() -> None:
    used = WeightedSum(((1.0, Dollars(SHEET)), (0.5, NodeHours())), "USD")
    assert is_additive(used)
    assert used.is_additive
    assert not is_additive(SUM)


def test_a_sum_may_fall_where_a_term_may() -> None:
    assert not may_fall(SUM)
    assert may_fall(WeightedSum(((1.0, NodeHours()), (1.0, Rebate())), "hours"))


@pytest.mark.parametrize(
    ("terms", "unit"),
    [
        ((), "USD"),
        (((1.0, NodeHours()),), ""),
        (((-1.0, NodeHours()),), "USD"),
        (((math.inf, NodeHours()),), "USD"),
        (((1.0, "dollars"),), "USD"),
        (((1.0, NodeHours),), "USD"),
        (((1.0,),), "USD"),
        (5, "USD"),
    ],
)
def test_a_sum_without_terms_a_unit_or_fair_weights_is_refused(terms: Any, unit: str) -> None:
    with pytest.raises(InvalidCostError, match="must"):
        WeightedSum(terms, unit)
