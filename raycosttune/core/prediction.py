"""A predicted quantity with its bounds."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Prediction:
    """Is a value that is not known exactly.

    Attributes:
        low: Lower bound, under the named assumptions.
        mid: The expected value, within the bounds.
        high: Upper bound, possibly infinite.
    """

    low: float
    mid: float
    high: float

    def __str__(self) -> str:
        """Shows the value with its bounds."""
        high = f"{self.high:.3g}" if math.isfinite(self.high) else "?"
        return f"{self.mid:.3g} ({self.low:.3g} to {high})"
