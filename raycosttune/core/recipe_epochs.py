"""What the runs of one recipe say of its epochs to the target, whatever other recipes do."""

import math
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr

from raycosttune.core.array import Floats
from raycosttune.core.epoch_shape import EpochShape, epoch_shape
from raycosttune.core.epochs import EARLIEST, Epochs, Seen

NOISE_SD = 0.12


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

    @classmethod
    def of(cls, runs: Iterable[Epochs], noise_scales: Floats) -> "RecipeEpochs":
        """Sums up the runs of a recipe."""
        by_batch: dict[int, list[Epochs]] = {}
        for run in runs:
            by_batch.setdefault(run.batch_size, []).append(run)
        seen = {batch: Seen.of(batch, some) for batch, some in by_batch.items()}
        return cls(seen, noise_scales)

    @cached_property
    def _reached(self) -> list[int]:
        """The batches at which a run reached the target, sorted."""
        return sorted(batch for batch, some in self.seen.items() if some.reached)

    @cached_property
    def _vain(self) -> list[tuple[int, float]]:
        """Batch and epochs of the runs in vain; equal ones once."""
        return [(batch, low) for batch, some in self.seen.items() for low in some.vain]

    @cached_property
    def has_reached(self) -> bool:
        """Whether a run reached the target."""
        return bool(self._reached)

    @property
    def violation(self) -> float:
        """The least log slack under which its runs don't contradict each other."""
        return self._bounded.violation

    @property
    def valleys(self) -> tuple[float, ...]:
        """The batches below which its epochs may fall as the batch grows; 0: they only rise."""
        return self._bounded.valleys

    def bounds(self, batches: tuple[float, ...], slack: float) -> tuple[Floats, Floats]:
        """Bounds its epochs at some batches, both of shape (batches,); see EpochShape.bounds."""
        return self._bounded.bounds(batches, slack)

    @cached_property
    def _bounded(self) -> EpochShape:
        low = tuple([seen.log_low for seen in self.seen.values()])
        high = tuple([seen.log_high for seen in self.seen.values()])
        return epoch_shape(tuple(self.seen), low, high, tuple(self._noise_scales.tolist()))

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
    def lone(self) -> tuple[int, float] | None:
        """The one batch at which it ran and the epochs in vain there.

        None where it ran at several, or where its runs contradict each other.
        """
        if len(self.seen) > 1:
            return None
        (seen,) = self.seen.values()
        is_plain = seen.low > 0 and math.log(seen.low) == seen.log_low <= seen.log_high
        return (seen.batch_size, seen.low) if is_plain else None

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
