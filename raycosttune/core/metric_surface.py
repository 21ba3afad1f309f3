"""The metric over batches and epochs: A(b, e), as its gap to the target."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri, softmax

from raycosttune.core.array import Floats
from raycosttune.core.isotonic import isotonic
from raycosttune.core.prediction import Prediction
from raycosttune.core.recipe_epochs import shape

RUN_SD = 0.13  # log epochs by which a run is off the law of its recipe
CURVE_SD = 1.0  # how far off a curve continued by its last slope is, over what it shrinks by
LEVELS = (0.05, 0.5, 0.95)
SHIFTS, OFFS = (ndtri((np.arange(k) + 0.5) / k) for k in (11, 7))
TAIL = 3  # a curve is continued by its last part of so many
SLACK_SDS = 2.0
FREE = 1.5  # numbers that a level of an isotonic fit is worth
LEAST_NOISE = 1e-3  # of the range that the curves span


@dataclass(frozen=True)
class Curve:
    """Is a run of a recipe.

    Attributes:
        batch_size: Its global batch.
        points: Epoch and gap to the target of each evaluation, the epochs positive and rising;
            the gap is positive before the target.
    """

    batch_size: int
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class _Pooled:
    """Is all curves as one, over the epochs that one noise scale makes of theirs.

    Attributes:
        at: Log epochs over 1 + b / B_noise, rising, shape (p,).
        gaps: The gap there, not rising, shape (p,).
        squares: Squared deviations of the points from it, summed.
        noise: What these make the deviation of one point.
    """

    at: Floats
    gaps: Floats
    squares: float
    noise: float

    @classmethod
    def of(cls, at: Floats, gaps: Floats) -> "_Pooled":
        order = np.argsort(at, kind="stable")
        fitted = isotonic(gaps[order], np.ones(len(at)), increasing=False)
        squares = float(((gaps[order] - fitted) ** 2).sum())
        freedom = len(at) - FREE * len(np.unique(fitted))
        return cls(at[order], fitted, squares, math.sqrt(squares / max(freedom, 1.0)))

    @cached_property
    def ends(self) -> tuple[float, float]:
        """How fast the gap shrinks with the log epochs, at the start and at the end."""
        part = max(len(self.at) // TAIL, 2)
        return _slope(self.at[:part], self.gaps[:part]), _slope(self.at[-part:], self.gaps[-part:])

    def predict(self, at: Floats) -> tuple[Floats, Floats]:
        """Returns the gap, and how much of it continues the curves, both of the shape of `at`."""
        before, after = np.maximum(self.at[0] - at, 0.0), np.maximum(at - self.at[-1], 0.0)
        first, last = self.ends
        gap = np.interp(at, self.at, self.gaps) + first * before - last * after
        return gap, first * before + last * after


class MetricSurface:
    """Models the gap to the target from the curves of one recipe, finished or not.

    Assumes that the gap does not rise with the epochs, nor fall as the batch grows at equal
    epochs: the running best of the metric is isotonic in e and antitonic in b. Both hold up to a
    slack: the noise of the evaluations, widened to what the curves contradict each other by.
    The mean takes all curves as one in e / (1 + b / B_noise), B_noise unknown, and continues it
    by its last slope in log epochs; it is only ever a mean inside the bounds.

    Args:
        curves: Runs, at least one, with two points or more in all.
        noise_scales: Values of B_noise, shape (s,).

    References:
        Liang et al. 2022 (accuracy monotone in epochs and batch); McCandlish et al. 2018; Meyer &
        Woodroofe 2000 (the noise about an isotonic fit).
    """

    def __init__(self, curves: Sequence[Curve], noise_scales: Floats) -> None:
        points = [(c.batch_size, epoch, gap) for c in curves for epoch, gap in c.points]
        self._batches, self._epochs, self._gaps = np.array(points, dtype=np.float64).T
        self._scales = noise_scales

    @cached_property
    def _pooled(self) -> list[_Pooled]:
        """One for each noise scale."""
        at = np.log(self._epochs) - shape(self._batches, self._scales)
        return [_Pooled.of(row, self._gaps) for row in at]

    @cached_property
    def noise(self) -> float:
        """Deviation of one evaluation from the surface."""
        best = min(self._pooled, key=lambda pooled: pooled.squares)
        return max(best.noise, LEAST_NOISE * float(np.ptp(self._gaps)), 1e-12)

    @cached_property
    def _weights(self) -> Floats:
        """Weights of the noise scales: what a curve is off the others is one thing, not many."""
        squares = np.array([pooled.squares for pooled in self._pooled]) / len(self._gaps)
        counts = len(np.unique(self._batches))
        return np.asarray(softmax(-counts * squares / (2 * self.noise**2)), dtype=np.float64)

    @cached_property
    def slack(self) -> float:
        """What the bounds are widened by: noise, or more where the curves contradict them."""
        is_under = self._batches[:, None] <= self._batches
        is_after = self._epochs[:, None] >= self._epochs
        # A smaller batch after more epochs is nearer to the target.
        apart = np.where(is_under & is_after, self._gaps[:, None] - self._gaps, 0.0)
        return max(SLACK_SDS * self.noise, float(np.quantile(apart.max(axis=0), 0.9)))

    def bounds(self, batch_size: int, epoch: float) -> tuple[float, float]:
        """Bounds the gap by shape and slack alone; infinite where nothing does."""
        lower = (self._batches <= batch_size) & (self._epochs >= epoch)
        upper = (self._batches >= batch_size) & (self._epochs <= epoch)
        low = np.max(self._gaps[lower], initial=-math.inf) - self.slack
        high = np.min(self._gaps[upper], initial=math.inf) + self.slack
        return min(float(low), float(high)), max(float(low), float(high))

    def predict(self, batch_size: int, epoch: float) -> Prediction:
        """Predicts the gap at a batch after some epochs, without the noise of one evaluation.

        Returns:
            The mean and a 90 % interval within the bounds.
        """
        scaled = math.log(epoch) - shape(np.array([float(batch_size)]), self._scales)[:, 0]
        seen = self._epochs[self._batches == batch_size]
        # Both the run and those that it is predicted from are off the law.
        off = 0.0 if len(seen) and epoch <= seen.max() else math.sqrt(2) * RUN_SD
        told = [p.predict(at + off * SHIFTS) for p, at in zip(self._pooled, scaled, strict=True)]
        gaps, beyond = (np.stack(each)[:, :, None] for each in zip(*told, strict=True))
        drawn = gaps + np.hypot(CURVE_SD * beyond, self.noise) * OFFS
        low, mid, high = _quantiles(drawn, self._weights)
        least, most = self.bounds(batch_size, epoch)
        return Prediction(*(min(max(value, least), most) for value in (low, mid, high)))


def _quantiles(drawn: Floats, weights: Floats) -> list[float]:
    """Returns the quantiles at `LEVELS` of draws of shape (s, ...), those of each s alike."""
    values, each = drawn.reshape(len(weights), -1), drawn[0].size
    order = np.argsort(values, axis=None)
    total = np.cumsum(np.repeat(weights / each, each)[order])
    return [float(x) for x in np.interp(LEVELS, total / total[-1], values.ravel()[order])]


def _slope(at: Floats, gaps: Floats) -> float:
    """Returns how fast a gap shrinks between two ends, 0 where they are one."""
    span = float(at[-1] - at[0])
    return float(gaps[0] - gaps[-1]) / span if span > 0 else 0.0
