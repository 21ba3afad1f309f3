"""Epochs to the target over batches and recipes: E(b, h)."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtri, softmax

from raycosttune.core.isotonic import Floats, bounds, violation

DEFAULT_SLACK = 0.10
NOISE_SD = 0.12
RECIPE_SD = 0.4
UNKNOWN_SD = 1.0
TYPICAL_EPOCHS = 15.0
CENSORED_EXCESS = 0.3
EARLIEST = 1e-6  # stands for epoch 0, which has no logarithm
QUANTILES = ndtri((np.arange(12) + 0.5) / 12)


@dataclass(frozen=True)
class Epochs:
    """Is what a run showed: the target lies in (low, high] epochs.

    Attributes:
        batch_size: Global batch.
        recipe: Key of the recipe.
        low: The last epoch that had not reached the target.
        high: The epoch that reached it; infinite for a censored run.
    """

    batch_size: int
    recipe: str
    low: float
    high: float

    @property
    def is_censored(self) -> bool:
        """Whether the run ended, or stands, before the target."""
        return math.isinf(self.high)


@dataclass(frozen=True)
class Samples:
    """Is a weighted sample of epochs to the target.

    Attributes:
        epochs: Shape (s,).
        weights: Shape (s,), summing to 1.
    """

    epochs: Floats
    weights: Floats

    @property
    def mean(self) -> float:
        """Geometric mean of the sample."""
        return float(np.exp(self.weights @ np.log(self.epochs)))


class AccuracySurrogate:
    """Models log E(b, h) = f(b) + g(h) from runs, finished and censored.

    Assumes that E does not fall with b at one recipe, with a slope of at most 1 in
    log-log: accuracy falls with the batch at equal epochs and rises with epochs. The mean
    takes f(b) = log(1 + b / B_noise), B_noise unknown; it is only ever a mean inside the
    bounds.

    Args:
        batches: Global batches of the space.
        seen: What the runs showed.

    References:
        Liang et al. 2022 (accuracy monotone in epochs and batch); McCandlish et al. 2018
        (E proportional to 1 + b / B_noise).
    """

    def __init__(self, batches: Sequence[int], seen: Sequence[Epochs]) -> None:
        self._at = {batch: k for k, batch in enumerate(sorted({*batches, *_batches(seen)}))}
        self._runs: dict[str, list[Epochs]] = defaultdict(list)
        for run in seen:
            self._runs[run.recipe].append(run)
        self._bounded: dict[str, tuple[Floats, Floats]] = {}
        self._floors: dict[str, Floats] = {}
        self._drawn: dict[tuple[str | None, int], Samples] = {}
        self.recipes = tuple(self._runs)
        self._noise_scales = _noise_scales(min(batches), max(batches))

    @cached_property
    def slack(self) -> float:
        """Log slack of the bounds, widened to what the runs show."""
        broken = [0.0]
        for recipe in self.recipes:
            at, low, high = self._intervals(recipe)
            broken.append(violation(low, high, _least(at, at), _most(at, at)))
        return max(DEFAULT_SLACK, *broken)

    def bounds(self, recipe: str, batch_size: int) -> tuple[float, float]:
        """Bounds the epochs that a recipe needs at a batch, from its own runs alone.

        Repeats at one batch that contradict each other bound the epochs between them.
        """
        if recipe not in self._bounded:
            self._bounded[recipe] = self._bound(recipe)
        low, high = self._bounded[recipe]
        k = self._at[batch_size]
        return float(low[k]), float(high[k])

    def _bound(self, recipe: str) -> tuple[Floats, Floats]:
        at, low, high = self._intervals(recipe)
        to = np.array(list(self._at), dtype=np.float64)
        slack = np.where(at[:, None] == to, 0.0, self.slack)
        lower, upper = bounds(low, high, _least(at, to) - slack, _most(at, to) + slack)
        return np.exp(np.minimum(lower, upper)), np.exp(np.maximum(lower, upper))

    def floor(self, batch_size: int, reference: str) -> float:
        """Bounds from below the epochs that any recipe tried so far needs at a batch.

        Beside its own runs a recipe is held, by additivity, against `reference` where both
        ran at one batch: what loses to the reference there loses by as much elsewhere.
        """
        if reference not in self._floors:
            self._floors[reference] = self._floor(reference)
        return float(self._floors[reference][self._at[batch_size]])

    def _floor(self, reference: str) -> Floats:
        batches = list(self._at)
        reference_low = np.array([self.bounds(reference, batch)[0] for batch in batches])
        floors = [reference_low]
        for recipe in self.recipes:
            own = np.array([self.bounds(recipe, batch)[0] for batch in batches])
            floors.append(np.maximum(own, reference_low * self._ratio(recipe, reference)))
        return np.asarray(np.min(floors, axis=0), dtype=np.float64)

    def samples(self, recipe: str | None, batch_size: int) -> Samples:
        """Samples the epochs to the target at a batch; recipe None is one not yet tried."""
        drawn = self._drawn.get((recipe, batch_size))
        if drawn is None:
            drawn = self._drawn[recipe, batch_size] = self._draw(recipe, batch_size)
        return drawn

    def _draw(self, recipe: str | None, batch_size: int) -> Samples:
        shape = self._shape(np.array([float(batch_size)]))[:, 0]
        mean, sd = self._offset(recipe)
        logs = (shape + mean + self._residual(recipe, batch_size))[:, None]
        epochs = np.exp(logs + sd[:, None] * QUANTILES)
        weights = np.repeat(self._posterior / len(QUANTILES), len(QUANTILES))
        if recipe is not None:
            low, high = self.bounds(recipe, batch_size)
            epochs = np.clip(epochs, min(low * math.exp(NOISE_SD), high), high)
        return Samples(epochs.ravel(), weights)

    def score(self, recipe: str) -> float:
        """Returns the relative epochs g(h) of a recipe, lower is better."""
        mean, _ = self._offset(recipe)
        return float(np.exp(np.clip(self._posterior @ mean, -50, 50)))

    def _of(self, recipe: str | None, *, censored: bool) -> list[Epochs]:
        runs = [] if recipe is None else self._runs.get(recipe, [])
        return [run for run in runs if run.is_censored is censored]

    def _intervals(self, recipe: str) -> tuple[Floats, Floats, Floats]:
        runs = self._runs.get(recipe, [])
        low = [math.log(run.low or _before_first(run)) for run in runs]
        high = [math.log(run.high) for run in runs]
        at = np.array([run.batch_size for run in runs], dtype=np.float64)
        return at, np.array(low), np.array(high)

    def _ratio(self, recipe: str, reference: str) -> float:
        """Bounds g(recipe) / g(reference) from below, 0 where nothing compares them."""
        best = 0.0
        for mine in self._runs[recipe]:
            for other in self._of(reference, censored=False):
                if other.batch_size == mine.batch_size:
                    best = max(best, mine.low / other.high * math.exp(-self.slack))
        return best

    def _shape(self, batches: Floats) -> Floats:
        """log(1 + b / B_noise), shape (noise scales, batches)."""
        return np.log1p(batches[None, :] / self._noise_scales[:, None])

    def _logs(self, runs: list[Epochs]) -> tuple[Floats, Floats]:
        """Returns f at the runs' batches, shape (noise scales, runs), and their log epochs."""
        at = self._shape(np.array([run.batch_size for run in runs], dtype=np.float64))
        epochs = [run.low if run.is_censored else run.high for run in runs]
        return at, np.log(np.maximum(epochs, EARLIEST))

    @cached_property
    def _posterior(self) -> Floats:
        """Weights of the noise scales, shape (noise scales,)."""
        log_weight = np.zeros(len(self._noise_scales))
        for recipe in self.recipes:
            if not (reached := self._of(recipe, censored=False)):
                continue
            shape, logs = self._logs(reached)
            residual = logs - shape
            offset = residual.mean(axis=1)
            log_weight -= ((residual - offset[:, None]) ** 2).sum(axis=1) / (2 * NOISE_SD**2)
            if censored := self._of(recipe, censored=True):
                shape, logs = self._logs(censored)
                beyond = (shape + offset[:, None] - logs) / NOISE_SD
                log_weight += log_ndtr(beyond).sum(axis=1)
        return np.asarray(softmax(log_weight), dtype=np.float64)

    def _offset(self, recipe: str | None) -> tuple[Floats, Floats]:
        """Mean and deviation of g(h), each of shape (noise scales,)."""
        if reached := self._of(recipe, censored=False):
            shape, logs = self._logs(reached)
            certain = np.full(len(shape), NOISE_SD / math.sqrt(len(reached)))
            return (logs - shape).mean(axis=1), certain
        mean, sd = self._population
        if censored := self._of(recipe, censored=True):
            shape, logs = self._logs(censored)
            mean = np.maximum(mean, (logs - shape).max(axis=1) + CENSORED_EXCESS)
        return mean, sd

    @cached_property
    def _population(self) -> tuple[Floats, Floats]:
        """Mean and deviation of g of a recipe not yet tried, from those that were.

        The mean of g over recipes has a wide normal prior; each recipe that reached the
        target adds its g, each censored one that its g lies beyond what it showed.
        """
        middle = np.array([math.sqrt(self._noise_scales[0] * self._noise_scales[-1])])
        prior = (math.log(TYPICAL_EPOCHS) - self._shape(middle))[:, :1]
        means = prior + UNKNOWN_SD * np.linspace(-4, 6, 81)
        log_weight = -(((means - prior) / UNKNOWN_SD) ** 2) / 2
        sd = self._recipe_sd[:, None]
        for recipe in self.recipes:
            if self._of(recipe, censored=False):
                offset = self._offset(recipe)[0][:, None]
                log_weight -= ((offset - means) / sd) ** 2 / 2
            else:
                shape, logs = self._logs(self._of(recipe, censored=True))
                beyond = (logs - shape).max(axis=1)[:, None]
                log_weight += log_ndtr((means - beyond) / sd)
        weights = softmax(log_weight, axis=1)
        mean = (weights * means).sum(axis=1)
        variance = (weights * (means - mean[:, None]) ** 2).sum(axis=1)
        return mean, np.sqrt(variance + sd[:, 0] ** 2)

    @cached_property
    def _recipe_sd(self) -> Floats:
        """Deviation of g among recipes: a prior, and what those that reached the target show."""
        reached = [recipe for recipe in self.recipes if self._of(recipe, censored=False)]
        strength = 1.0
        squares = np.zeros(len(self._noise_scales))
        if reached:
            offsets = np.array([self._offset(recipe)[0] for recipe in reached])
            squares = ((offsets - offsets.mean(axis=0)) ** 2).sum(axis=0)
        return np.sqrt((strength * RECIPE_SD**2 + squares) / (strength + len(reached)))

    def _residual(self, recipe: str | None, batch_size: int) -> Floats:
        """What the recipe's own runs add to the shape near a batch, shape (noise scales,)."""
        reached = self._of(recipe, censored=False)
        if not reached:
            return np.zeros(len(self._noise_scales))
        shape, logs = self._logs(reached)
        residual = logs - shape - (logs - shape).mean(axis=1)[:, None]
        at = np.log([run.batch_size for run in reached])
        places, where = np.unique(at, return_inverse=True)
        counts = np.bincount(where)
        pooled = np.array([np.bincount(where, row) / counts for row in residual])
        log_batch = math.log(batch_size)
        return np.array([np.interp(log_batch, places, row) for row in pooled])


@lru_cache(maxsize=16)
def _noise_scales(smallest: int, largest: int) -> Floats:
    return np.geomspace(smallest / 8, largest * 8, 24)


def _batches(seen: Sequence[Epochs]) -> set[int]:
    return {run.batch_size for run in seen}


def _before_first(run: Epochs) -> float:
    """Stands for the lower end of a run of which no earlier epoch is known."""
    return EARLIEST if run.is_censored else min(run.high, 1.0) / 2


def _least(at: Floats, to: Floats) -> Floats:
    """Least log E(to) - log E(at), shape (at, to): slope in [0, 1]."""
    change = np.log(to)[None, :] - np.log(at)[:, None]
    return np.asarray(np.minimum(change, 0.0), dtype=np.float64)


def _most(at: Floats, to: Floats) -> Floats:
    """Greatest log E(to) - log E(at), shape (at, to)."""
    change = np.log(to)[None, :] - np.log(at)[:, None]
    return np.asarray(np.maximum(change, 0.0), dtype=np.float64)
