"""The chance that a Gaussian lies below a number, for many numbers at once."""

import numpy as np
from scipy.special import ndtr

from raycosttune.core.array import Floats

CERTAIN = 9.0  # deviations beyond which doubles tell no chance from 0 beside 1


def below(deviations: Floats) -> Floats:
    """Returns the chance to lie below, exactly 0 or 1 beyond `CERTAIN` deviations.

    Most numbers that a grid of laws is asked for lie there, and `ndtr` takes longest for them.

    Args:
        deviations: Any shape.

    Returns:
        Of the same shape.
    """
    chances = np.where(deviations > 0, 1.0, 0.0)
    is_open = np.abs(deviations) < CERTAIN
    chances[is_open] = ndtr(deviations[is_open])
    return chances
