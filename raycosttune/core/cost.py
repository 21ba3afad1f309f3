"""What a run costs: the metric that a sweep minimises."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidCostError

SECONDS_PER_HOUR = 3600.0


@runtime_checkable
class CostMetric(Protocol):
    """Turns an allocation held for some seconds into a cost.

    A metric must not fall when the seconds grow, nor when workers or nodes are
    added at the same seconds: the planner's bounds rest on it.
    """

    @property
    def unit(self) -> str:
        """Name of the unit, shown behind every figure."""

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        """Returns the cost of holding `allocation` for `seconds`, at least 0."""


@dataclass(frozen=True)
class NodeHours:
    """Counts whole machines: nodes times hours (Liang et al. 2022)."""

    unit: str = "node-hours"

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        """Returns nodes times hours."""
        return allocation.nodes * seconds / SECONDS_PER_HOUR


@dataclass(frozen=True)
class WorkerHours:
    """Counts workers times hours, for clusters that are shared worker by worker."""

    unit: str = "worker-hours"

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        """Returns workers times hours."""
        return allocation.workers * seconds / SECONDS_PER_HOUR


def checked_cost(metric: CostMetric, allocation: Allocation, seconds: float) -> float:
    """Applies a user's metric and refuses what is no cost.

    Args:
        metric: The cost metric.
        allocation: What is held.
        seconds: For how long, at least 0.

    Returns:
        The cost in the metric's unit, finite and at least 0.

    Raises:
        InvalidCostError: If the metric raises, or returns something else than a finite
            number of at least 0.
    """
    try:
        value = metric(allocation, seconds)
    except Exception as error:
        msg = (
            f"{type(metric).__name__} raised {error!r} for {allocation} over {seconds:g} s. "
            "Mend its __call__(allocation, seconds)."
        )
        raise InvalidCostError(msg) from error
    try:
        cost = float(value)
    except (TypeError, ValueError):
        cost = math.nan
    if not (math.isfinite(cost) and cost >= 0):
        msg = (
            f"a cost must be a finite number of at least 0, got {value!r} from "
            f"{type(metric).__name__} for {allocation} over {seconds:g} s. "
            "Mend its __call__(allocation, seconds)."
        )
        raise InvalidCostError(msg)
    return cost


def check_cost_metric(metric: CostMetric, cells: tuple[Allocation, ...]) -> None:
    """Tries a metric on every cell before anything is paid for.

    Raises:
        InvalidCostError: If the metric has no unit, can't be called, returns no cost,
            or falls when the seconds or the workers (and nodes) grow.
    """
    unit = getattr(metric, "unit", None)
    if not isinstance(unit, str) or not callable(metric):
        msg = (
            "cost must be an object with a str `unit` and __call__(allocation, seconds), "
            f"got {metric!r}. NodeHours() and WorkerHours() are two."
        )
        raise InvalidCostError(msg)
    for cell in cells:
        costs = [checked_cost(metric, cell, seconds) for seconds in (0.0, 1.0, 60.0, 3600.0)]
        if any(later < earlier for earlier, later in pairwise(costs)):
            msg = f"{unit}: a cost must not fall as seconds grow, got {costs} for {cell}"
            raise InvalidCostError(msg)
    by_workers = sorted(cells, key=lambda cell: (cell.batch_size, cell.workers))
    for fewer, more in pairwise(by_workers):
        if fewer.batch_size != more.batch_size:
            continue
        low, high = (checked_cost(metric, cell, 3600.0) for cell in (fewer, more))
        if high < low:
            msg = (
                f"{unit}: a cost must not fall as workers are added, got {low:g} for {fewer} "
                f"and {high:g} for {more} over an hour"
            )
            raise InvalidCostError(msg)
