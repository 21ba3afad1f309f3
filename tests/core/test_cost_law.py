import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidCostError
from tests.core.drive import spaces

METRICS = st.sampled_from((NodeHours(), WorkerHours()))
SPACE = Space((1, 2, 4), (64, 128), workers_per_node=2)


@dataclass(frozen=True)
class Custom:
    price: Callable[[Allocation, float], object]
    unit: str = "EUR"
    monotone: bool = True

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        return self.price(allocation, seconds)  # type: ignore[return-value]


@given(metric=METRICS, space=spaces())
def test_the_shipped_metrics_pass_the_check(metric: CostMetric, space: Space) -> None:
    check_cost_metric(metric, space.cells)


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


def test_a_fall_by_rounding_alone_is_none() -> None:
    check_cost_metric(Custom(lambda _, seconds: 1 - 1e-12 if seconds > 100 else 1.0), SPACE.cells)


def test_a_metric_that_says_that_it_may_fall_is_only_asked_for_costs() -> None:
    metric = Custom(lambda cell, seconds: 1 / (cell.workers + seconds), monotone=False)
    check_cost_metric(metric, SPACE.cells)
    with pytest.raises(InvalidCostError, match="`monotone = False`"):
        check_cost_metric(Custom(metric.price), SPACE.cells)
    with pytest.raises(InvalidCostError, match="finite number"):
        check_cost_metric(Custom(lambda _a, _s: math.nan, monotone=False), SPACE.cells)
