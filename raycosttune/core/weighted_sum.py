"""Several costs as one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from raycosttune.core.billing import Use
from raycosttune.core.cost import CostMetric, may_fall
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.held import billed, is_additive
from raycosttune.core.space import Allocation
from raycosttune.core.value import read_name, read_real
from raycosttune.errors import InvalidCostError


@dataclass(frozen=True)
class WeightedSum:
    """Adds metrics up, each times a weight: dollars and a price of energy, say.

    Attributes:
        terms: Pairs of a weight of at least 0, in units of the sum for a unit of the metric,
            and a metric.
        unit: Unit of the sum.

    Raises:
        InvalidCostError: If there is no term, a weight or a metric breaks its rule, or the unit
            is none.
    """

    terms: tuple[tuple[float, CostMetric], ...]
    unit: str

    def __post_init__(self) -> None:
        """Checks terms and unit; each metric is tried in every cell as part of the sum."""
        given: object = self.terms
        if not isinstance(given, list | tuple) or not all(map(_is_pair, given)):
            msg = f"WeightedSum.terms must be pairs of a weight and a metric, got {given!r}"
            raise InvalidCostError(msg)
        object.__setattr__(self, "terms", tuple(map(tuple, given)))
        if not self.terms or read_name(self.unit) is None:
            msg = f"WeightedSum must have terms and a unit, got {self.terms!r} and {self.unit!r}"
            raise InvalidCostError(msg)
        for weight, metric in self.terms:
            check_cost_metric(metric, ())
            number = read_real(weight)
            if number is None or number < 0:
                msg = f"a weight must be a number of at least 0, got {weight!r}"
                raise InvalidCostError(msg)

    @property
    def monotone(self) -> bool:
        """Whether no term says of itself that it may fall."""
        return not any(may_fall(metric) for _, metric in self.terms)

    @property
    def is_additive(self) -> bool:
        """Whether each trial is billed by itself in every term."""
        return all(is_additive(metric) for _, metric in self.terms)

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        """Returns the weighted sum of the costs."""
        return math.fsum(weight * metric(allocation, seconds) for weight, metric in self.terms)

    def bill(self, uses: Sequence[Use]) -> float:
        """Returns the weighted sum of the bills; see raycosttune.core.billing.Billing."""
        return math.fsum(weight * billed(metric, uses) for weight, metric in self.terms)


def _is_pair(term: object) -> bool:
    return isinstance(term, list | tuple) and len(term) == 2  # noqa: PLR2004 - a pair
