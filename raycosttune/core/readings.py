"""What was measured of one quantity, each figure of it computed once."""

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Self

import numpy as np

from raycosttune.core.array import Floats


class Readings(tuple[float, ...]):  # noqa: SLOT001 - each figure is kept in its own place
    """Holds what was measured, not empty where a figure is asked for."""

    def __new__(cls, values: Iterable[float] = ()) -> Self:
        """Returns the readings themselves where they are such already."""
        return values if isinstance(values, cls) else super().__new__(cls, values)

    def plus(self, more: Iterable[float]) -> "Readings":
        """Returns these and some more."""
        return Readings((*self, *more))

    @cached_property
    def median(self) -> float:
        """The middle one, or the mean of the two in the middle."""
        return _median(sorted(self))

    @cached_property
    def least(self) -> float:
        """The least."""
        return min(self)

    @cached_property
    def most(self) -> float:
        """The largest."""
        return max(self)

    @cached_property
    def log_median(self) -> float:
        """The median of their logs."""
        return _median([math.log(value) for value in sorted(self)])

    @cached_property
    def log_off(self) -> Floats:
        """What their logs are off that median, shape (samples,)."""
        return np.log(np.array(self, dtype=np.float64)) - self.log_median


def _median(ordered: list[float]) -> float:
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
