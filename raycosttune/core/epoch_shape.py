"""How epochs may change with the batch, and what that makes of the intervals that runs leave."""

import math
from functools import cached_property, lru_cache

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.isotonic import bounds, violation

TOLERATED = 0.10  # log slack within which runs count as rising with the batch

Numbers = tuple[float, ...]


class EpochShape:
    """Bounds a recipe's epochs at every batch from those at some; see `epoch_shape`.

    Args:
        at: Batches at which it ran.
        low: Log of the lower ends of the intervals that the runs leave.
        high: Log of their upper ends.
        scales: Batches at which a valley is tried, where epochs fall first.
    """

    def __init__(self, at: Numbers, low: Numbers, high: Numbers, scales: Numbers) -> None:
        self._at, self._low, self._high = at, np.array(low), np.array(high)
        self._scales = scales
        self._bounds: dict[tuple[Numbers, float], tuple[Floats, Floats]] = {}

    @property
    def violation(self) -> float:
        """The least log slack under which the runs don't contradict each other."""
        return self._found[1]

    @property
    def valleys(self) -> Numbers:
        """The batches below which epochs may fall as the batch grows; 0: they only rise."""
        return self._found[0]

    @cached_property
    def _found(self) -> tuple[Numbers, float]:
        """Valleys and violation: what rises within `TOLERATED` has no valley.

        The valleys tried do not hang on the runs, so that more runs never lower the violation.
        """
        rising = self._broken(0.0)
        if rising <= TOLERATED:
            return (0.0,), rising
        found = [self._broken(valley) for valley in self._scales]
        broken = max(min(found), TOLERATED)
        if broken >= rising:
            return (0.0,), rising
        pairs = zip(self._scales, found, strict=True)
        return tuple(valley for valley, apart in pairs if apart <= broken), broken

    def _broken(self, valley: float) -> float:
        return violation(self._low, self._high, least(self._at, self._at, valley))

    def bounds(self, batches: Numbers, slack: float) -> tuple[Floats, Floats]:
        """Bounds the epochs at some batches, both of shape (batches,); nobody may change them.

        Repeats at one batch that contradict each other bound the epochs between them. Where they
        fall over some batches, each valley that agrees with the runs is allowed for.
        """
        key = batches, slack
        if key not in self._bounds:
            self._bounds[key] = self._bound(*key)
        return self._bounds[key]

    def _bound(self, batches: Numbers, slack: float) -> tuple[Floats, Floats]:
        apart = np.where(np.array(self._at)[:, None] == np.array(batches), 0.0, slack)
        found = []
        for valley in self.valleys:
            down = least(self._at, batches, valley) - apart
            up = apart - least(batches, self._at, valley).T
            found.append(bounds(self._low, self._high, down, up))
        lower, upper = (
            np.min([one for one, _ in found], axis=0),
            np.max([other for _, other in found], axis=0),
        )
        return np.exp(np.minimum(lower, upper)), np.exp(np.maximum(lower, upper))


epoch_shape = lru_cache(maxsize=512)(EpochShape)  # a further run often changes no interval


@lru_cache(maxsize=512)
def least(at: Numbers, to: Numbers, valley: float = 0.0) -> Floats:
    """Returns the least log E(to) - log E(at), shape (at, to), which nobody may change.

    E rises with slopes up to 1 from the valley on, and falls as steeply at most before it.

    Args:
        at: Batches.
        to: Batches.
        valley: The batch with the fewest epochs, 0 where E only rises.
    """
    one, other = np.log(at)[:, None], np.log(to)
    if valley <= 0:
        return np.asarray(np.minimum(other - one, 0.0), dtype=np.float64)
    one, other = one - math.log(valley), other - math.log(valley)
    down = np.maximum(np.maximum(one, 0.0) - np.maximum(other, 0.0), 0.0)
    up = np.maximum(np.maximum(-one, 0.0) - np.maximum(-other, 0.0), 0.0)
    return np.asarray(-(down + up), dtype=np.float64)
