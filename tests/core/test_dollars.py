import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.billing import Use
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.decision import Run
from raycosttune.core.dollars import Dollars
from raycosttune.core.observation import EndCause, Ended, Report
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.core.spot import expected_seconds
from raycosttune.errors import InvalidCostError
from tests.core.drive import goal, spaces

SHEET = PriceSheet(
    (
        NodePrice(
            name="gpu",
            per_hour=36.0,
            spot_per_hour=12.0,
            interruptions_per_hour=0.5,
            workers=4,
            granularity_seconds=60,
            minimum_seconds=600,
        ),
        NodePrice(name="cpu", per_hour=3.6, granularity_seconds=0),
    ),
    currency="EUR",
)
ONE, TWO = Allocation(4, 64, 7), Allocation(8, 64, 7)


@st.composite
def metrics(draw: st.DrawFn) -> Dollars:
    node = NodePrice(
        name="any",
        per_hour=draw(st.floats(0.01, 100)),
        spot_per_hour=draw(st.floats(0.01, 100)),
        interruptions_per_hour=draw(st.floats(0, 2)),
        workers=draw(st.sampled_from((None, 1, 3, 8))),
        granularity_seconds=draw(st.sampled_from((0, 1, 60, 3600))),
        minimum_seconds=draw(st.sampled_from((0, 60, 3600))),
    )
    return Dollars(
        PriceSheet((node,)),
        market=draw(st.sampled_from(("on_demand", "spot"))),
        checkpoint_seconds=draw(st.sampled_from((None, 100.0, 1234.5))),
        restart_seconds=draw(st.sampled_from((0.0, 90.0))),
    )


@given(metrics(), spaces())
def test_money_is_a_cost_whatever_the_sheet(metric: Dollars, space: Space) -> None:
    check_cost_metric(metric, space.cells)


def test_whole_machines_of_the_sheet_are_billed_in_started_units() -> None:
    metric = Dollars(SHEET, "gpu")
    assert metric.unit == "EUR"
    assert metric(ONE, 1.0) == pytest.approx(6.0)  # the minimum
    assert metric(TWO, 601.0) == pytest.approx(2 * 6.6)
    assert Dollars(SHEET, "cpu")(ONE, 10.0) == pytest.approx(7 * 0.01)


def test_a_spot_run_is_expected_to_take_longer_the_more_machines_it_has() -> None:
    metric = Dollars(SHEET, "gpu", market="spot", checkpoint_seconds=600, restart_seconds=120)
    for cell, nodes in ((ONE, 1), (TWO, 2)):
        seconds = expected_seconds(
            7200, interruptions_per_hour=0.5 * nodes, checkpoint_seconds=600, restart_seconds=120
        )
        price = nodes * 12.0 * seconds / 3600
        assert price <= metric(cell, 7200) <= price + nodes * 12 * 60 / 3600
    assert metric.bill([Use(ONE, 7200, 0)]) == pytest.approx(24.0)  # what came is in its seconds


def test_a_minimum_counts_once_a_trial_where_used_and_once_a_machine_where_held() -> None:
    trials = [Use(ONE, 60, 0), Use(ONE, 60, 100), Use(ONE, 60, 200)]
    assert Dollars(SHEET, "gpu").bill(trials) == pytest.approx(3 * 6.0)
    assert Dollars(SHEET, "gpu", billing="held").bill(trials) == pytest.approx(6.0)


def test_held_machines_are_billed_while_they_stand_idle() -> None:
    trials = [Use(ONE, 900, 0), Use(ONE, 900, 2700)]
    held = Dollars(SHEET, "gpu", billing="held")
    assert held.bill(trials) == pytest.approx(36.0)
    soon = Dollars(SHEET, "gpu", billing="held", idle_seconds=300)
    assert soon.bill(trials) == pytest.approx(12.0 + 9.0)


@given(metrics(), st.floats(0, 1e5), st.floats(0, 1e5))
def test_one_trial_costs_the_same_used_or_held(
    metric: Dollars, seconds: float, start: float
) -> None:
    held = Dollars(metric.sheet, market=metric.market, billing="held")
    use = [Use(ONE, seconds, start)]
    assert held.bill(use) == pytest.approx(metric.bill(use), rel=1e-6, abs=metric(ONE, 1e-6))


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (
            {"sheet": "prices.yaml"},
            r"be a PriceSheet, .* Write Dollars\(read_price_sheet\(path\)\)",
        ),
        ({"node_type": "tpu"}, "one of"),
        ({"market": "reserved"}, "on_demand"),
        ({"market": "spot", "node_type": "cpu"}, "no spot price of cpu"),
        ({"billing": "free"}, "used"),
        ({"idle_seconds": -1}, "at least 0"),
        ({"idle_seconds": math.nan}, "at least 0"),
        ({"restart_seconds": math.inf}, "at least 0"),
        ({"checkpoint_seconds": 0}, "positive"),
    ],
)
def test_a_value_that_breaks_its_rule_is_refused(wrong: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidCostError, match=rule):
        Dollars(**{"sheet": SHEET, "node_type": "gpu", **wrong})


def test_a_sweep_is_billed_for_the_machines_that_it_held() -> None:
    node = NodePrice(name="any", per_hour=3600.0, granularity_seconds=0, minimum_seconds=50)
    now = 0.0
    held = Dollars(PriceSheet((node,)), billing="held")
    sweep = Session(Space((1,), (32, 64)), goal(planned_runs=1000), cost=held, clock=lambda: now)
    for name, start, seconds in (("a", 0.0, 20.0), ("b", 30.0, 10.0)):
        now = start
        assert isinstance(sweep.ask(name), Run)
        sweep.tell(name, Report(1.0, 0.0, seconds))
        sweep.tell(name, Ended(EndCause.FINISHED))
    assert sweep.spent == pytest.approx(50.0)
    used = Session(sweep.space, sweep.goal, cost=Dollars(held.sheet), clock=lambda: now)
    used.load_state(sweep.state())
    assert used.spent == pytest.approx(100.0)
    assert [record.started for record in used.records.values()] == [0.0, 30.0]
