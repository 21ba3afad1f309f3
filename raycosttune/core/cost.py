"""What a run costs: the metric that a sweep minimises."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.space import Allocation
from raycosttune.core.value import read_number
from raycosttune.errors import InvalidCostError

SECONDS_PER_HOUR = 3600.0
CALL = "__call__(allocation, seconds)"


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


class Proportional(ABC):
    """Is a metric whose cost is a rate times the time, so that many are worked out at once."""

    @abstractmethod
    def per_hour(self, allocation: Allocation) -> float:
        """Returns the cost of holding an allocation for an hour."""

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        """Returns the cost of an hour times the hours."""
        return self.per_hour(allocation) * seconds / SECONDS_PER_HOUR


@dataclass(frozen=True)
class NodeHours(Proportional):
    """Counts whole machines: nodes times hours (Liang et al. 2022)."""

    unit: str = "node-hours"

    def per_hour(self, allocation: Allocation) -> float:
        """Returns the nodes."""
        return allocation.nodes


@dataclass(frozen=True)
class WorkerHours(Proportional):
    """Counts workers times hours, for clusters that are shared worker by worker."""

    unit: str = "worker-hours"

    def per_hour(self, allocation: Allocation) -> float:
        """Returns the workers."""
        return allocation.workers


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

    def where() -> str:  # in words only where something is wrong
        return f"{allocation} over {seconds:g} s"

    return checked_value(metric, CALL, where, lambda: metric(allocation, seconds))


def checked_value(
    metric: CostMetric, name: str, where: Callable[[], str], ask: Callable[[], float]
) -> float:
    """Asks a metric for a cost, and refuses what is none; raises as `checked_cost` does.

    Args:
        metric: The cost metric.
        name: The method that is called.
        where: Says what for.
        ask: Calls it.
    """
    cure = f"Mend its {name}."
    try:
        value = ask()
    except InvalidCostError:  # it says itself what was wrong
        raise
    except Exception as error:
        msg = f"{type(metric).__name__} raised {error!r} for {where()}. {cure}"
        raise InvalidCostError(msg) from error
    cost = read_number(value)
    if cost is None or cost < 0:
        msg = (
            f"a cost must be a finite number of at least 0, got {value!r} from "
            f"{type(metric).__name__} for {where()}. {cure}"
        )
        raise InvalidCostError(msg)
    return cost


def is_proportional(metric: CostMetric) -> TypeGuard[Proportional]:
    """Tells whether a metric is known to be proportional to the time, no child with own rules."""
    call: object = type(metric).__call__
    return isinstance(metric, Proportional) and call is Proportional.__call__


def may_fall(metric: CostMetric) -> bool:
    """Tells whether a metric says of itself, by `monotone = False`, that it may fall."""
    return getattr(metric, "monotone", True) is False


def hourly(metric: Proportional, cells: Sequence[Allocation]) -> Floats:
    """Returns what some cells cost for an hour, shape (cells,)."""
    return np.array([metric.per_hour(cell) for cell in cells], dtype=np.float64)


def held(rates: Floats, seconds: Floats) -> Floats:
    """Returns the costs of holding cells, by what each costs for an hour.

    Args:
        rates: That, shape (cells,).
        seconds: For how long, shape (cells, ...).

    Returns:
        Of the shape of `seconds`.
    """
    rates = rates.reshape(len(rates), *(1 for _ in seconds.shape[1:]))
    return np.asarray(rates * seconds / SECONDS_PER_HOUR, dtype=np.float64)


def checked_costs(metric: CostMetric, cells: Sequence[Allocation], seconds: Floats) -> Floats:
    """Applies a metric to many times at once, as `checked_cost` does to one.

    A metric is asked for each, unless it is proportional to the time.

    Args:
        metric: The cost metric.
        cells: What is held.
        seconds: For how long, finite, shape (cells, ...).

    Returns:
        The costs, of the shape of `seconds`.

    Raises:
        InvalidCostError: See `checked_cost`.
    """
    if is_proportional(metric):
        return held(hourly(metric, cells), seconds)
    costs = np.empty_like(seconds)
    for place in np.ndindex(*seconds.shape):
        costs[place] = checked_cost(metric, cells[place[0]], float(seconds[place]))
    return costs
