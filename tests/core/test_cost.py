import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.cost import (
    CostMetric,
    NodeHours,
    WorkerHours,
    check_cost_metric,
    checked_cost,
    checked_costs,
    is_proportional,
)
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidCostError
from tests.core.drive import spaces

METRICS = st.sampled_from((NodeHours(), WorkerHours()))
SECONDS = st.floats(0, 1e7)
SPACE = Space((1, 2, 4), (64, 128), workers_per_node=2)


@dataclass(frozen=True)
class Custom:
    price: Callable[[Allocation, float], object]
    unit: str = "EUR"

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        return self.price(allocation, seconds)  # type: ignore[return-value]


@given(metric=METRICS, space=spaces(), seconds=SECONDS, more=SECONDS)
def test_a_cost_does_not_fall_as_seconds_grow(
    metric: CostMetric, space: Space, seconds: float, more: float
) -> None:
    for cell in space.cells:
        assert metric(cell, seconds + more) >= metric(cell, seconds) >= 0


@given(metric=METRICS, space=spaces(), seconds=SECONDS)
def test_a_cost_does_not_fall_as_workers_are_added(
    metric: CostMetric, space: Space, seconds: float
) -> None:
    for fewer in space.cells:
        for more in space.cells:
            if fewer.workers <= more.workers:
                assert metric(fewer, seconds) <= metric(more, seconds)


@given(metric=METRICS, space=spaces())
def test_the_shipped_metrics_pass_the_check(metric: CostMetric, space: Space) -> None:
    check_cost_metric(metric, space.cells)


def test_the_currencies_disagree_within_a_node() -> None:
    one, two = Allocation(1, 64, 1), Allocation(2, 64, 1)
    assert NodeHours()(one, 3600) == NodeHours()(two, 3600) == 1
    assert WorkerHours()(two, 3600) == 2 * WorkerHours()(one, 3600) == 2


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, None, "dear", [1], 10**400])
def test_what_is_no_cost_is_named_with_its_metric(value: object) -> None:
    with pytest.raises(InvalidCostError, match="finite number of at least 0") as caught:
        check_cost_metric(Custom(lambda _a, _s: value), SPACE.cells)
    assert f"got {value!r} from Custom" in str(caught.value)
    assert "Mend its __call__(allocation, seconds)." in str(caught.value)


def test_a_metric_that_raises_is_named_with_what_it_raised() -> None:
    def unknown(allocation: Allocation, seconds: float) -> float:
        return {1: 1.0}[allocation.workers] * seconds

    with pytest.raises(InvalidCostError, match=r"Custom raised KeyError\(2\)") as caught:
        check_cost_metric(Custom(unknown), SPACE.cells)
    assert isinstance(caught.value.__cause__, KeyError)
    assert "Mend its __call__(allocation, seconds)." in str(caught.value)


def test_a_class_in_place_of_its_metric_is_refused() -> None:
    with pytest.raises(InvalidCostError, match=r"got the class NodeHours\. Write NodeHours\(\)"):
        check_cost_metric(NodeHours, SPACE.cells)  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", [lambda _a, _s: 1.0, "usd", Custom(lambda _a, _s: 1.0, 7)])  # type: ignore[arg-type]
def test_a_metric_without_a_unit_or_a_call_is_refused(metric: CostMetric) -> None:
    with pytest.raises(InvalidCostError, match="a str `unit` and __call__") as caught:
        check_cost_metric(metric, SPACE.cells)
    assert repr(metric) in str(caught.value)
    assert "NodeHours() and WorkerHours() are two." in str(caught.value)


def test_a_cost_that_falls_with_seconds_is_refused() -> None:
    metric = Custom(lambda _a, seconds: max(0.0, 50.0 - seconds))
    with pytest.raises(InvalidCostError, match="EUR: a cost must not fall as seconds grow"):
        check_cost_metric(metric, SPACE.cells)


@pytest.mark.parametrize("only", [0.5, 59.9, 100.0, 1000.5, 7200.0])
def test_a_cost_that_falls_anywhere_between_round_times_is_refused(only: float) -> None:
    metric = Custom(lambda _, seconds: seconds if seconds < only else seconds / 1000)
    with pytest.raises(InvalidCostError, match=r"seconds grow, got .* s of Allocation"):
        check_cost_metric(metric, SPACE.cells)


def test_a_cost_that_falls_with_workers_is_refused() -> None:
    metric = Custom(lambda allocation, seconds: seconds / allocation.workers)
    with pytest.raises(InvalidCostError, match="must not fall as workers are added") as caught:
        check_cost_metric(metric, SPACE.cells)
    assert "got 0.1 for" in str(caught.value)
    assert "over 0.1 s" in str(caught.value)


@given(st.floats(0, 1e9) | st.integers(0, 10**9))
def test_a_cost_is_passed_on_as_a_float(value: float) -> None:
    cost = checked_cost(Custom(lambda _a, _s: value), Allocation(1, 64), 60)
    assert isinstance(cost, float)
    assert cost == value


class DearWorkerHours(WorkerHours):
    """Costs more than its parent says."""

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        return 2 * super().__call__(allocation, seconds)


@pytest.mark.parametrize(
    "metric",
    [NodeHours(), WorkerHours(), DearWorkerHours(), Custom(lambda cell, s: cell.nodes * s // 60)],
)
def test_many_costs_are_each_what_the_metric_says(metric: CostMetric) -> None:
    seconds = np.linspace(0.0, 500.0, 3 * len(SPACE.cells)).reshape(-1, 3)
    costs = checked_costs(metric, SPACE.cells, seconds)
    for cell, row, paid in zip(SPACE.cells, seconds, costs, strict=True):
        assert paid.tolist() == [checked_cost(metric, cell, float(s)) for s in row]
    column = checked_costs(metric, SPACE.cells, seconds[:, 0])
    np.testing.assert_array_equal(column, costs[:, 0])
    assert checked_costs(metric, (), np.zeros((0, 3))).shape == (0, 3)
    assert is_proportional(metric) is (type(metric) in (NodeHours, WorkerHours))


def test_one_cost_of_many_that_is_none_is_refused() -> None:
    metric = Custom(lambda _, s: math.nan if s > 100 else s)
    with pytest.raises(InvalidCostError, match="a cost must be a finite number"):
        checked_costs(metric, SPACE.cells[:2], np.array([1.0, 101.0]))
