"""Laws of cost metrics as data."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune import (
    Allocation,
    CostMetric,
    Dollars,
    EnergyKWh,
    Goal,
    NodeHours,
    NodePrice,
    PriceSheet,
    WeightedSum,
    WorkerHours,
)
from raycosttune.results.cost import cost_data, read_cost
from raycosttune.results.header import header_row, read_header_cost

AMOUNTS = st.floats(0, 1e6)
POSITIVE = st.floats(0.1, 1e6)
PRICES = st.builds(
    NodePrice,
    name=st.just("a"),
    per_hour=AMOUNTS,
    spot_per_hour=AMOUNTS,
    interruptions_per_hour=AMOUNTS,
    workers=st.none() | st.integers(1, 8),
    accelerators=st.text(max_size=3),
    granularity_seconds=AMOUNTS,
    minimum_seconds=AMOUNTS,
    watts=POSITIVE,
)
OTHER = NodePrice(name="b", per_hour=1.0, watts=5.0)
SHEETS = st.builds(
    lambda price, several, currency: PriceSheet((price, OTHER)[: 1 + several], currency),
    PRICES,
    st.booleans(),
    st.sampled_from(["USD", "EUR"]),
)
METRICS: st.SearchStrategy[CostMetric] = st.one_of(
    st.builds(NodeHours, st.sampled_from(["node-hours", "h"])),
    st.builds(WorkerHours),
    st.builds(
        Dollars,
        SHEETS,
        st.just("a"),
        market=st.sampled_from(["on_demand", "spot"]),
        billing=st.sampled_from(["used", "held"]),
        idle_seconds=st.just(float("inf")) | AMOUNTS,
        checkpoint_seconds=st.none() | POSITIVE,
        restart_seconds=AMOUNTS,
    ),
    st.builds(
        EnergyKWh,
        watts_per_node=POSITIVE,
        watts_per_worker=AMOUNTS,
        workers_per_node=st.none() | st.integers(1, 8),
    ),
    SHEETS.map(EnergyKWh.of),
)
SUMS = st.builds(
    WeightedSum,
    st.lists(st.tuples(AMOUNTS, METRICS), min_size=1, max_size=3).map(tuple),
    st.just("USD"),
)
SHEET = PriceSheet((OTHER,))


@dataclass(frozen=True)
class Own:
    unit: str = "EUR"

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        return allocation.workers * seconds


class Discounted(WorkerHours):
    """Has a rule of its own."""


@given(METRICS | SUMS)
def test_a_metric_of_this_package_comes_back_from_json(metric: CostMetric) -> None:
    text = json.dumps(cost_data(metric), allow_nan=False)
    assert read_cost(json.loads(text)) == metric


@pytest.mark.parametrize("metric", [Own(), Discounted(), WeightedSum(((1.0, Own()),), "EUR")])
def test_a_metric_of_somebody_else_s_is_no_data(metric: CostMetric) -> None:
    assert cost_data(metric) is None


def test_numbers_of_numpy_are_written_as_python_s() -> None:
    whole: Any = np.int64(4)
    number: Any = np.float32(3)
    sheet = PriceSheet((NodePrice(name="a", per_hour=number, workers=whole),))
    metric = WeightedSum(((whole, Dollars(sheet, restart_seconds=number)),), "USD")
    assert read_cost(json.loads(json.dumps(cost_data(metric)))) == metric


@pytest.mark.parametrize(
    "data",
    [
        None,
        5,
        {},
        {"kind": ["NodeHours"]},
        {"kind": "Carbon"},
        {"kind": "NodeHours", "of_a_newer_release": 1},
        {"kind": "Dollars"},
        {"kind": "Dollars", "sheet": 5},
        {"kind": "Dollars", "sheet": {"nodes": [], "currency": "USD"}},
        {"kind": "Dollars", "sheet": {"nodes": [{"name": "a", "per_hour": 1}]}},
        {"kind": "WeightedSum", "unit": "USD"},
        {"kind": "WeightedSum", "unit": "USD", "terms": [[1.0]]},
        {"kind": "WeightedSum", "unit": "USD", "terms": [[1.0, {"kind": "Carbon"}]]},
    ],
)
def test_what_tells_no_metric_known_here_is_none(data: Any) -> None:
    assert read_cost(data) is None


def test_a_header_gives_back_its_cost_and_an_older_one_that_of_its_unit() -> None:
    goal, metric = Goal(target=0.9), WeightedSum(((2.0, NodeHours()),), "EUR")
    row = json.loads(json.dumps(header_row(goal, "EUR", cost=metric)))
    assert read_header_cost(row) == metric
    assert read_header_cost({**row, "unit": "USD"}) is None
    assert read_header_cost({"unit": "worker-hours"}) == WorkerHours()
    assert read_header_cost({"unit": "EUR"}) is None
    assert read_header_cost({"unit": 5}) is None
    newer = {"kind": "NodeHours", "of a newer release": 1}
    assert read_header_cost({"unit": "node-hours", "cost": newer}) is None
