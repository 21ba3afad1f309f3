"""What the runs of one recipe say of its epochs to the target, whatever other recipes do."""

import math
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import log_ndtr

from raycosttune.core.array import Floats
from raycosttune.core.epochs import EARLIEST, Epochs, Seen
from raycosttune.core.isotonic import bounds, violation

NOISE_SD = 0.12
TOLERATED = 0.10  # log slack within which runs count as rising with the batch


class RecipeEpochs:
    """Sums up the runs of one recipe; each figure is computed once, as long as no run is added.

    The mean of log E(b) is f(b) + g with f(b) = log(1 + b / B_noise), at each of some B_noise.

    Args:
        seen: What its runs showed, by batch.
        noise_scales: Values of B_noise, shape (s,).
        since: Turn of its first run among all trials.
    """

    def __init__(self, seen: Mapping[int, Seen], noise_scales: Floats, since: float = 0.0) -> None:
        self.seen, self.since = seen, since
        self._noise_scales = noise_scales
        self._reached = sorted(batch for batch in seen if seen[batch].reached)
        self._vain = [(batch, low) for batch in seen for low in seen[batch].vain]

    @classmethod
    def of(cls, runs: Iterable[Epochs], noise_scales: Floats) -> "RecipeEpochs":
        """Sums up the runs of a recipe."""
        by_batch: dict[int, list[Epochs]] = {}
        for run in runs:
            by_batch.setdefault(run.batch_size, []).append(run)
        seen = {batch: Seen.of(batch, some) for batch, some in by_batch.items()}
        return cls(seen, noise_scales)

    @property
    def has_reached(self) -> bool:
        """Whether a run reached the target."""
        return bool(self._reached)

    @cached_property
    def violation(self) -> float:
        """The least log slack under which its runs don't contradict each other."""
        return self._shaped[1]

    @property
    def valleys(self) -> tuple[float, ...]:
        """The batches below which its epochs may fall as the batch grows; 0: they only rise."""
        return self._shaped[0]

    @cached_property
    def _shaped(self) -> tuple[tuple[float, ...], float]:
        """Valleys and violation: what rises within `TOLERATED` has no valley.

        The valleys tried do not hang on the runs, so that more runs never lower the violation.
        """
        (_, low, high), own = self._intervals, tuple(self.seen)
        rising = violation(low, high, least(own, own))
        if rising <= TOLERATED:
            return (0.0,), rising
        found = [violation(low, high, least(own, own, to)) for to in self._noise_scales]
        broken = max(min(found), TOLERATED)
        if broken >= rising:
            return (0.0,), rising
        pairs = zip(self._noise_scales.tolist(), found, strict=True)
        return tuple(valley for valley, apart in pairs if apart <= broken), broken

    def bounds(self, batches: Floats, slack: float) -> tuple[Floats, Floats]:
        """Bounds its epochs at some batches, both of the shape of `batches`.

        Repeats at one batch that contradict each other bound the epochs between them. Where they
        fall over some batches, each valley that agrees with the runs is allowed for.
        """
        (at, low, high), own, to = self._intervals, tuple(self.seen), tuple(batches.tolist())
        apart = np.where(at[:, None] == batches, 0.0, slack)
        found = []
        for valley in self.valleys:
            change = least(own, to, valley) - apart, apart - least(to, own, valley).T
            found.append(bounds(low, high, *change))
        lower, upper = (
            np.min([one for one, _ in found], axis=0),
            np.max([o for _, o in found], axis=0),
        )
        return np.exp(np.minimum(lower, upper)), np.exp(np.maximum(lower, upper))

    def over(self, other: "RecipeEpochs") -> tuple[float, float]:
        """Bounds its epochs over another recipe's, from the batches at which both ran.

        Returns:
            The lower bound, 0 where nothing compares them, and the upper one: below it where the
            factor is not the same at every batch.
        """
        low, high = 0.0, math.inf
        for batch in self.seen.keys() & other.seen.keys():
            mine, theirs = self.seen[batch], other.seen[batch]
            low = max(low, mine.low / theirs.high)
            high = min(high, mine.high / max(theirs.low, EARLIEST))
        return low, high

    @cached_property
    def _intervals(self) -> tuple[Floats, Floats, Floats]:
        """Batches, and the log epochs that their runs leave, each of shape (batches,)."""
        at = np.array(list(self.seen), dtype=np.float64)
        low = np.array([seen.log_low for seen in self.seen.values()])
        return at, low, np.array([seen.log_high for seen in self.seen.values()])

    def _shape(self, batches: Iterable[int]) -> Floats:
        return shape(np.array(list(batches), dtype=np.float64), self._noise_scales)

    @cached_property
    def _residuals(self) -> Floats:
        """Mean log epochs beyond f(b) where the target was reached, shape (s, batches)."""
        means = np.array([self.seen[batch].mean for batch in self._reached])
        return means - self._shape(self._reached)

    @cached_property
    def _counts(self) -> Floats:
        return np.array([self.seen[batch].reached for batch in self._reached], dtype=np.float64)

    @cached_property
    def offset(self) -> Floats:
        """Mean g of a recipe that reached the target, shape (s,)."""
        return np.asarray(self._residuals @ self._counts / self._counts.sum(), dtype=np.float64)

    @property
    def offset_sd(self) -> float:
        """Deviation of its g about that."""
        return NOISE_SD / math.sqrt(self._counts.sum())

    @cached_property
    def support(self) -> Floats:
        """Log weight of each noise scale by a recipe that reached the target, shape (s,)."""
        apart = self._residuals - self.offset[:, None]
        within = sum(self.seen[batch].squares for batch in self._reached)
        support = -(apart**2 @ self._counts + within) / (2 * NOISE_SD**2)
        if self._vain:
            beyond = (self.offset[:, None] - self._in_vain) / NOISE_SD
            counts = [self.seen[batch].vain[low] for batch, low in self._vain]
            support += log_ndtr(beyond) @ np.array(counts, dtype=np.float64)
        return np.asarray(support, dtype=np.float64)

    @cached_property
    def _in_vain(self) -> Floats:
        """What g lies beyond by each run in vain, shape (s, runs)."""
        lows = np.log(np.maximum([low for _, low in self._vain], EARLIEST))
        return np.asarray(lows - self._shape(batch for batch, _ in self._vain), dtype=np.float64)

    @cached_property
    def beyond(self) -> Floats:
        """What g lies beyond by all runs in vain, of which there must be one, shape (s,)."""
        return np.asarray(self._in_vain.max(axis=1), dtype=np.float64)

    @cached_property
    def longest(self) -> tuple[tuple[int, float], ...]:
        """The most epochs in vain by batch, which settle `beyond`."""
        vain = ((batch, some.vain) for batch, some in self.seen.items() if some.vain)
        return tuple(sorted((batch, max(lows)) for batch, lows in vain))

    def residuals(self, batches: Floats) -> Floats:
        """What its own runs add to the mean near some batches, shape (s, batches)."""
        if not self._reached:
            return np.zeros((len(self._noise_scales), len(batches)))
        apart = self._residuals - self.offset[:, None]
        at, to = np.log(self._reached), np.log(batches)
        left = np.clip(np.searchsorted(at, to, side="right") - 1, 0, max(len(at) - 2, 0))
        right = np.minimum(left + 1, len(at) - 1)
        gap = np.where(right > left, at[right] - at[left], 1.0)
        part = np.clip((to - at[left]) / gap, 0.0, 1.0) * (right > left)
        return np.asarray(apart[:, left] * (1 - part) + apart[:, right] * part, dtype=np.float64)


def shape(batches: Floats, noise_scales: Floats) -> Floats:
    """Returns f, log(1 + b / B_noise), shape (s, batches)."""
    return np.asarray(np.log1p(batches / noise_scales[:, None]), dtype=np.float64)


@lru_cache(maxsize=256)
def least(at: tuple[float, ...], to: tuple[float, ...], valley: float = 0.0) -> Floats:
    """Returns the least log E(to) - log E(at), shape (at, to).

    E rises with slopes up to 1 from the valley on, and falls as steeply at most before it.

    Args:
        at: Batches, k of them.
        to: Batches, l of them.
        valley: The batch with the fewest epochs, 0 where E only rises.
    """
    one, other = np.log(at)[:, None], np.log(to)
    if valley <= 0:
        return np.asarray(np.minimum(other - one, 0.0), dtype=np.float64)
    one, other = one - math.log(valley), other - math.log(valley)
    down = np.maximum(np.maximum(one, 0.0) - np.maximum(other, 0.0), 0.0)
    up = np.maximum(np.maximum(-one, 0.0) - np.maximum(-other, 0.0), 0.0)
    return np.asarray(-(down + up), dtype=np.float64)
