"""Epochs to the target over batches and recipes: E(b, h)."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtri, softmax

from raycosttune.core.array import Floats, Ints
from raycosttune.core.duplicate import duplicate
from raycosttune.core.epoch_shape import TOLERATED
from raycosttune.core.recipe_epochs import NOISE_SD, RecipeEpochs, shape

DEFAULT_SLACK = TOLERATED
RECIPE_SD = 0.4
UNKNOWN_SD = 1.0
TYPICAL_EPOCHS = 15.0
CENSORED_EXCESS = 0.3
NEGLIGIBLE = 1e-9
QUANTILES = ndtri((np.arange(12) + 0.5) / 12)


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
    log-log: accuracy falls with the batch at equal epochs and rises with epochs. Where the runs
    of a recipe show that it falls first, the bounds have a valley instead. The mean
    takes f(b) = log(1 + b / B_noise), B_noise unknown; it is only ever a mean inside the
    bounds.

    Args:
        batches: Global batches of the space.
        runs: What the runs of each recipe showed, by its key; with `noise_scales` of these
            batches.
        violation: The least log slack under which no recipe's runs contradict each other.

    References:
        Liang et al. 2022 (accuracy monotone in epochs and batch); McCandlish et al. 2018
        (E proportional to 1 + b / B_noise).

    Attributes:
        slack: Log slack of the bounds, widened to what the runs show.
    """

    def __init__(
        self, batches: Sequence[int], runs: Mapping[str, RecipeEpochs], violation: float
    ) -> None:
        self._batches, self._at = _places(tuple(sorted(batches)))
        self._runs = runs
        self.slack = max(DEFAULT_SLACK, violation)
        self._bounded: dict[str, tuple[Floats, Floats]] = {}
        self._floors: dict[tuple[str, frozenset[str] | None], Floats] = {}
        self._drawn: dict[str | None, list[Samples]] = {}
        self._noise_scales = noise_scales(min(batches), max(batches))

    def resting_on(self, other: "AccuracySurrogate") -> "AccuracySurrogate":
        """Returns one of the same runs that takes what recipes have in common from another one."""
        rests, common = duplicate(self), ("_posterior", "_likely", "_weights", "_population")
        vars(rests).update({name: getattr(other, name) for name in common}, _drawn={})
        return rests

    @cached_property
    def recipes(self) -> tuple[str, ...]:
        """Keys of the recipes whose runs reported, in the order in which they began."""
        return tuple(sorted(self._runs, key=lambda recipe: self._runs[recipe].since))

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
        if recipe in self._runs:
            return self._runs[recipe].bounds(tuple(self._at), self.slack)
        return np.zeros(len(self._batches)), np.full(len(self._batches), np.inf)

    def floor(self, batch_size: int, reference: str, among: frozenset[str] | None = None) -> float:
        """Bounds from below the epochs that any recipe tried so far needs at a batch.

        Beside its own runs a recipe is held, by additivity, against `reference` where both
        ran at one batch: what loses to the reference there loses by as much elsewhere.

        Args:
            batch_size: The batch.
            reference: Key of the recipe that the others are held against.
            among: Keys of the recipes that count, some of which reported; by default all.
        """
        key = reference, among
        if key not in self._floors:
            self._floors[key] = self._floor(reference, among)
        return float(self._floors[key][self._at[batch_size]])

    def _floor(self, reference: str, among: frozenset[str] | None) -> Floats:
        least = self._bound(reference)[0]
        is_own = among is None or reference in among
        floor = least if is_own else np.full_like(least, np.inf)
        for recipe in self._lowest(self._runs.keys() if among is None else among):
            own = self._bound(recipe)[0]
            floor = np.minimum(floor, np.maximum(own, least * self._ratio(recipe, reference)))
        return floor

    def _lowest(self, among: Collection[str]) -> list[str]:
        """Returns the recipes among some that settle the floor.

        Of those that ran at one batch alone, and without contradiction, the one with the
        fewest epochs in vain has the lowest bounds everywhere, against a reference too.
        """
        settling: list[str] = []
        fewest: dict[int, tuple[float, str]] = {}
        for recipe, runs in self._runs.items():
            if recipe not in among:
                continue
            if runs.lone is None:
                settling.append(recipe)
                continue
            batch, low = runs.lone
            if batch not in fewest or low < fewest[batch][0]:
                fewest[batch] = low, recipe
        return settling + [recipe for _, recipe in fewest.values()]

    def _ratio(self, recipe: str, reference: str) -> float:
        """Bounds g(recipe) / g(reference) from below, 0 where nothing compares them."""
        if reference not in self._runs:
            return 0.0
        runs, theirs = self._runs[recipe], self._runs[reference]
        low, high = runs.over(theirs)
        is_one = len(runs.seen.keys() & theirs.seen.keys()) <= 1 or low <= high * math.exp(
            self.slack
        )
        # A factor that differs between batches by more than the slack bounds nothing.
        return low * math.exp(-self.slack) if is_one else 0.0

    def samples(self, recipe: str | None, batch_size: int) -> Samples:
        """Samples the epochs to the target at a batch; recipe None is one not yet tried."""
        if recipe not in self._drawn:
            self._drawn[recipe] = [Samples(row, self._weights) for row in self._draw(recipe)]
        return self._drawn[recipe][self._at[batch_size]]

    @cached_property
    def _likely(self) -> Ints:
        """Places of the noise scales without which no quantile of a sample changes."""
        return np.flatnonzero(self._posterior > NEGLIGIBLE)

    @cached_property
    def _weights(self) -> Floats:
        weights = self._posterior[self._likely]
        return np.repeat(weights / weights.sum() / len(QUANTILES), len(QUANTILES))

    def _draw(self, recipe: str | None) -> Floats:
        """Draws epochs at every batch, shape (batches, noise scales x quantiles)."""
        mean, sd = self._offset(recipe)
        logs = shape(self._batches, self._noise_scales) + mean[:, None]
        if recipe is not None and recipe in self._runs:
            logs = logs + self._runs[recipe].residuals(self._batches)
        sd = np.broadcast_to(sd, len(self._noise_scales))[self._likely]
        drawn = np.exp(logs[self._likely].T[:, :, None] + sd[:, None] * QUANTILES)
        epochs: Floats = drawn.reshape(len(self._batches), -1)
        if recipe is not None:
            low, high = (bound[:, None] for bound in self._bound(recipe))
            epochs = np.clip(epochs, np.minimum(low * math.exp(NOISE_SD), high), high)
        return epochs

    def scores(self) -> list[float]:
        """Returns the relative epochs g(h) of each of `recipes`, lower is better."""
        if not self._runs:
            return []
        means = np.array([self._offset(recipe)[0] for recipe in self.recipes])
        found: list[float] = np.exp(np.clip(means @ self._posterior, -50, 50)).tolist()
        return found

    @cached_property
    def _reached(self) -> list[RecipeEpochs]:
        return [runs for runs in self._runs.values() if runs.has_reached]

    @cached_property
    def _posterior(self) -> Floats:
        """Weights of the noise scales, shape (noise scales,)."""
        supports = [runs.support for runs in self._reached]
        log_weight = np.sum(supports, axis=0) if supports else np.zeros(len(self._noise_scales))
        return np.asarray(softmax(log_weight), dtype=np.float64)

    def _offset(self, recipe: str | None) -> tuple[Floats, Floats | float]:
        """Mean of g(h), shape (noise scales,), and deviation, likewise or a number for all."""
        runs = None if recipe is None else self._runs.get(recipe)
        if runs is not None and runs.has_reached:
            return runs.offset, runs.offset_sd
        mean, sd = self._population
        if runs is not None:
            mean = np.maximum(mean, runs.beyond + CENSORED_EXCESS)
        return mean, sd

    @cached_property
    def _offsets(self) -> Floats:
        """The g of the recipes that reached the target, shape (recipes, noise scales)."""
        return np.array([runs.offset for runs in self._reached])

    @cached_property
    def _population(self) -> tuple[Floats, Floats]:
        """Mean and deviation of g of a recipe not yet tried, from those that were.

        The mean of g over recipes has a wide normal prior; each recipe that reached the
        target adds its g, each censored one that its g lies beyond what it showed.
        """
        middle = np.array([math.sqrt(self._noise_scales[0] * self._noise_scales[-1])])
        prior = math.log(TYPICAL_EPOCHS) - shape(middle, self._noise_scales)
        means = prior + UNKNOWN_SD * np.linspace(-4, 6, 81)
        log_weight = -(((means - prior) / UNKNOWN_SD) ** 2) / 2
        sd = self._recipe_sd[:, None]
        if self._reached:
            # Of the squares about each mean, those about the mean of all are common to them.
            apart = (self._offsets.mean(axis=0)[:, None] - means) / sd
            log_weight -= len(self._reached) * apart**2 / 2
        for runs, count in self._in_vain:
            log_weight += count * log_ndtr((means - runs.beyond[:, None]) / sd)
        weights = softmax(log_weight, axis=1)
        mean = (weights * means).sum(axis=1)
        variance = (weights * (means - mean[:, None]) ** 2).sum(axis=1)
        return mean, np.sqrt(variance + sd[:, 0] ** 2)

    @cached_property
    def _in_vain(self) -> list[tuple[RecipeEpochs, int]]:
        """Recipes that reached the target nowhere, and how many ended as each of them did."""
        vain = [runs for runs in self._runs.values() if not runs.has_reached]
        counts = Counter(runs.longest for runs in vain)
        return [(runs, counts[longest]) for longest, runs in {r.longest: r for r in vain}.items()]

    @cached_property
    def lasting(self) -> float:
        """Part of what a new recipe's first run is ahead that later ones keep; the rest is luck."""
        luck = np.minimum(NOISE_SD / self._recipe_sd, 1.0)
        return float(self._posterior @ np.sqrt(1 - luck**2))

    @cached_property
    def _recipe_sd(self) -> Floats:
        """Deviation of g among recipes: a prior, and what those that reached the target show."""
        strength = 1.0
        squares = np.zeros(len(self._noise_scales))
        if self._reached:
            squares = ((self._offsets - self._offsets.mean(axis=0)) ** 2).sum(axis=0)
        return np.sqrt((strength * RECIPE_SD**2 + squares) / (strength + len(self._reached)))


@lru_cache(maxsize=16)
def _places(batches: tuple[int, ...]) -> tuple[Floats, dict[int, int]]:
    """Returns the batches, shape (b,), and the place of each."""
    return np.array(batches, dtype=np.float64), {batch: k for k, batch in enumerate(batches)}


@lru_cache(maxsize=16)
def noise_scales(smallest: int, largest: int) -> Floats:
    """Returns noise scales about some batches, shape (s,)."""
    return np.geomspace(smallest / 8, largest * 8, 24)
