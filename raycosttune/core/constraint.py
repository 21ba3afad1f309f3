"""What a run must keep to beside its target and its deadline."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from raycosttune.core.cost import CostMetric, may_fall
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.value import read_name, read_real
from raycosttune.errors import InvalidGoalError


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Bounds another metric that the loop reports: a latency, a gap between groups.

    An evaluation counts as at the target only where it keeps to every bound; one that does not
    report the metric does not.

    Attributes:
        metric: Name of the reported metric, nested with "/".
        at_most: The largest value that keeps to it, or None.
        at_least: The smallest one, or None.

    Raises:
        InvalidGoalError: If a value breaks its rule, neither end is given, or nothing lies between.
    """

    metric: str
    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        """Checks the name and the ends, and makes NumPy's numbers Python's own."""
        if read_name(self.metric) is None:
            msg = f"Bound.metric must be the name of a reported metric, got {self.metric!r}"
            raise InvalidGoalError(msg)
        if self.at_most is None and self.at_least is None:
            msg = f"Bound of {self.metric!r} must have at_most, at_least or both, got neither"
            raise InvalidGoalError(msg)
        for name in ("at_most", "at_least"):
            value = getattr(self, name)
            number = read_real(value)
            if value is not None and number is None:
                msg = f"Bound.{name} of {self.metric!r} must be a finite number, got {value!r}"
                raise InvalidGoalError(msg)
            object.__setattr__(self, name, number)
        low, high = self.at_least, self.at_most
        if low is not None and high is not None and low > high:
            msg = (
                f"Bound of {self.metric!r} must have at_least <= at_most, got {low:g} and "
                f"{high:g}: no evaluation keeps to it"
            )
            raise InvalidGoalError(msg)

    def __str__(self) -> str:
        """Says the bound."""
        low = "" if self.at_least is None else f"{self.at_least:g} <= "
        return f"{low}{self.metric}{'' if self.at_most is None else f' <= {self.at_most:g}'}"

    def holds(self, value: float | None) -> bool:
        """Tells whether a reported value keeps to the bound."""
        if value is None:
            return False
        is_low = self.at_most is None or value <= self.at_most
        return is_low and (self.at_least is None or value >= self.at_least)

    def data(self) -> dict[str, Any]:
        """Returns it as JSON-able data."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class RunBudget:
    """Limits what one training run may cost in another unit than the goal is scored in.

    Attributes:
        cost: The metric.
        at_most: The most that a run may cost by it.

    Raises:
        InvalidGoalError: If the limit is no positive number.
        InvalidCostError: If the metric is none, or says of itself that it may fall.
    """

    cost: CostMetric
    at_most: float

    def __post_init__(self) -> None:
        """Checks the metric and the limit."""
        check_cost_metric(self.cost, ())
        number = read_real(self.at_most)
        if number is None or number <= 0:
            msg = f"RunBudget.at_most must be a positive number, got {self.at_most!r}"
            raise InvalidGoalError(msg)
        object.__setattr__(self, "at_most", number)
        if may_fall(self.cost):
            msg = f"RunBudget.cost must not fall, got {self.cost!r}, which says that it may"
            raise InvalidGoalError(msg)

    def __str__(self) -> str:
        """Says the limit."""
        return f"at most {self.at_most:g} {self.cost.unit} a run"

    def data(self) -> dict[str, Any]:
        """Returns what a reader may be told; the metric itself is no data."""
        return {"unit": self.cost.unit, "at_most": self.at_most}


Constraint = Bound | RunBudget


def read_bounds(data: object) -> tuple[Bound, ...]:
    """Reads the bounds of a goal that was written; budgets are left out.

    Raises:
        InvalidGoalError: If one can't be read.
    """
    if not isinstance(data, list | tuple):
        return ()
    found = (item for item in data if isinstance(item, Mapping) and "metric" in item)
    return tuple(
        Bound(metric=item["metric"], at_most=item.get("at_most"), at_least=item.get("at_least"))
        for item in found
    )
