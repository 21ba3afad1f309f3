"""Laws of the epochs to the target over batches, as a grid."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from raycosttune.core.array import Floats

TYPICAL_EPOCHS = 20.0
UNKNOWN_SD = 1.3
FALLING = ((0.0, 0.7), (0.35, 0.2), (1.0, 0.1))
# Beyond the noise scale a larger batch saves next to no time, so that hardly anybody offers one:
# the largest is about the noise scale, a few times more or less.
SCALE_SD = 1.5
MOST_SDS = 3.0


@dataclass(frozen=True, eq=False)
class Law:
    """Is a grid of laws E(b) = exp(offset) (1 + b / B + c / b), scaled to 1 at the middle batch.

    Attributes:
        batches: Global batches, rising, shape (b,).
        log_scale: log B, shape (s,).
        shape: log E(b) less the offset, shape (s, b).
        log_prior: Log weights of the shapes, shape (s,): most laws do not fall.
        offsets: log E at the middle batch, shape (o,).

    References:
        McCandlish et al. 2018 (1 + b / B); a falling branch as measured at small batches.
    """

    batches: tuple[int, ...]
    log_scale: Floats
    shape: Floats
    log_prior: Floats
    offsets: Floats

    @cached_property
    def log_epochs(self) -> Floats:
        """Log E of every law, shape (s, o, b)."""
        return np.asarray(self.offsets[None, :, None] + self.shape[:, None, :], dtype=np.float64)


@lru_cache(maxsize=16)
def law(batches: tuple[int, ...]) -> Law:
    """Returns the grid of laws over some batches."""
    b = np.array(batches, dtype=np.float64)
    off = SCALE_SD * np.linspace(-MOST_SDS, MOST_SDS, 14)
    falls = np.array([part * b[0] for part, _ in FALLING])
    scale, fall = (axis.ravel() for axis in np.meshgrid(b[-1] * np.exp(off), falls, indexing="ij"))
    log_falling = np.log([weight for _, weight in FALLING])
    middle = math.sqrt(b[0] * b[-1])

    def rise(at: Floats) -> Floats:
        rising = np.log1p(at[None] / scale[:, None] + fall[:, None] / at[None])
        return np.asarray(rising, dtype=np.float64)

    return Law(
        batches=batches,
        log_scale=np.log(scale),
        shape=rise(b) - rise(np.array([middle])),
        log_prior=np.add.outer(-0.5 * (off / SCALE_SD) ** 2, log_falling).ravel(),
        offsets=math.log(TYPICAL_EPOCHS) + UNKNOWN_SD * np.linspace(-3.2, 3.2, 41),
    )
