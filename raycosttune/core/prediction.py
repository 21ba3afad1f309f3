"""A predicted quantity with its bounds."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Prediction:
    """Is a value that is not known exactly.

    Attributes:
        low: Lower bound, under the named assumptions, possibly infinite.
        mid: The expected value, within the bounds.
        high: Upper bound, possibly infinite.
    """

    low: float
    mid: float
    high: float

    def __str__(self) -> str:
        """Shows the value with its bounds."""
        low, high = (f"{x:.3g}" if math.isfinite(x) else "?" for x in (self.low, self.high))
        return f"{self.mid:.3g} ({low} to {high})"
