"""Money by the type of machine of an allocation."""

import math

import pytest

from raycosttune.core.billing import Use
from raycosttune.core.dollars import Dollars
from raycosttune.core.node_type import NodeType
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidCostError
from tests.core.drive import goal
from tests.core.test_types import PRICES, SHEET, SPACE


def test_money_is_counted_by_the_type_of_an_allocation() -> None:
    one, two = (SPACE.allocation(2, 64, name) for name in ("old", "new"))
    assert PRICES(one, 1800) == pytest.approx(1.0)
    assert PRICES(two, 1800) == pytest.approx(3.0)
    assert PRICES.bill([Use(one, 1800), Use(two, 1800)]) == pytest.approx(4.0)
    assert Dollars(SHEET, "old")(Allocation(2, 64), 1800) == pytest.approx(1.0)


def test_held_machines_of_one_type_are_not_taken_for_those_of_another() -> None:
    held = Dollars(SHEET, billing="held", idle_seconds=math.inf)
    old, new = (SPACE.allocation(1, 64, name) for name in ("old", "new"))
    paid = held.bill([Use(old, 1800, 0.0), Use(new, 1800, 1800.0)])
    assert paid == pytest.approx(1.0 * 1.0 + 3.0 * 0.5)


@pytest.mark.parametrize(
    ("metric", "cell", "named"),
    [
        (
            Dollars(SHEET, "new"),
            SPACE.allocation(1, 64, "old"),
            "must price 'old'.*got 'new'.*Leave",
        ),
        (
            PRICES,
            Allocation(1, 64),
            "must be one of.*names none.*Write.*tune.choice.*A constant is none",
        ),
        (PRICES, Allocation(1, 64, 1, "tpu"), "have a price of 'tpu', got .*Add its price"),
        (Dollars(SHEET, market="spot"), SPACE.allocation(1, 64, "new"), "no spot price of new"),
    ],
)
def test_a_type_without_its_price_is_refused_before_the_first_trial(
    metric: Dollars, cell: Allocation, named: str
) -> None:
    with pytest.raises(InvalidCostError, match=named):
        metric(cell, 10.0)
    types = (NodeType(cell.node_type),) if cell.node_type else ()
    space = Space((1,), (64,), node_types=types)
    with pytest.raises(InvalidCostError, match=named):
        Session(space, goal(), cost=metric, clock=float)
