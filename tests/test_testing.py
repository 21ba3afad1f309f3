import itertools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from raycosttune import Allocation, Dollars, NodePrice, PriceSheet, WorkerHours
from raycosttune.errors import InvalidCostError
from raycosttune.testing import check_cost_metric

SHEET = PriceSheet(
    (NodePrice(name="a", per_hour=1, spot_per_hour=1, interruptions_per_hour=0.1, workers=4),)
)


@dataclass(frozen=True)
class Custom:
    price: Callable[[Allocation, float], float]
    monotone: bool = True
    unit: str = "EUR"

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        return self.price(allocation, seconds)


@pytest.mark.parametrize(
    "metric", [WorkerHours(), Dollars(SHEET), Dollars(SHEET, market="spot", checkpoint_seconds=60)]
)
def test_the_shipped_metrics_obey_the_laws(metric: WorkerHours | Dollars) -> None:
    check_cost_metric(metric, examples=40)


def test_the_law_that_breaks_is_named_with_the_simplest_input() -> None:
    rebate = Custom(lambda _, seconds: seconds if seconds < 777 else seconds * 0.9)
    with pytest.raises(InvalidCostError, match="EUR: a cost must not fall as seconds grow") as e:
        check_cost_metric(rebate)
    assert "s and" in str(e.value)
    assert "Allocation(workers=1, batch_size=1, nodes=1)" in str(e.value)
    assert "`monotone = False`" in str(e.value)


def test_a_metric_that_falls_with_workers_is_found() -> None:
    with pytest.raises(InvalidCostError, match="must not fall as workers are added"):
        check_cost_metric(Custom(lambda cell, seconds: seconds / cell.workers), examples=40)


@pytest.mark.parametrize("value", [math.nan, -1.0, math.inf])
def test_what_is_no_cost_is_found_where_it_hides(value: float) -> None:
    metric = Custom(lambda cell, seconds: value if cell.workers > 300 else seconds)
    with pytest.raises(InvalidCostError, match="finite number of at least 0"):
        check_cost_metric(metric)


def test_a_metric_that_remembers_is_found() -> None:
    count = itertools.count()
    with pytest.raises(InvalidCostError, match="the same for the same input"):
        check_cost_metric(Custom(lambda _a, _s: float(next(count))))


def test_a_metric_that_says_that_it_may_fall_may() -> None:
    check_cost_metric(Custom(lambda cell, _: 1 / cell.workers, monotone=False), examples=40)


def test_without_hypothesis_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ModuleNotFoundError, match="pip install hypothesis"):
        check_cost_metric(WorkerHours())
