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


def test_the_currencies_disagree_within_a_node() -> None:
    one, two = Allocation(1, 64, 1), Allocation(2, 64, 1)
    assert NodeHours()(one, 3600) == NodeHours()(two, 3600) == 1
    assert WorkerHours()(two, 3600) == 2 * WorkerHours()(one, 3600) == 2


@given(st.floats(0, 1e9) | st.integers(0, 10**9))
def test_a_cost_is_passed_on_as_a_float(value: float) -> None:
    cost = checked_cost(Custom(lambda _a, _s: value), Allocation(1, 64), 60)
    assert isinstance(cost, float)
    assert cost == value


class Pair:
    """Is like a tensor of two elements, which is no number."""

    def __float__(self) -> float:
        msg = "a Tensor with 2 elements cannot be converted to Scalar"
        raise RuntimeError(msg)


@pytest.mark.parametrize("value", ["3", True, None, Pair(), 10**400, -1e-9])
def test_what_is_no_number_is_no_cost(value: object) -> None:
    with pytest.raises(InvalidCostError, match="a cost must be a finite number of at least 0"):
        checked_cost(Custom(lambda _a, _s: value), Allocation(1, 64), 60)


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
