"""The plain formulas: every pair of runs compared, every trial read, every cell taken by itself."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, softmax

from raycosttune.core.accuracy_surrogate import (
    CENSORED_EXCESS,
    DEFAULT_SLACK,
    QUANTILES,
    RECIPE_SD,
    TYPICAL_EPOCHS,
    UNKNOWN_SD,
    Samples,
    noise_scales,
)
from raycosttune.core.array import Floats
from raycosttune.core.digest import Digest
from raycosttune.core.epoch_shape import TOLERATED
from raycosttune.core.epochs import EARLIEST, Epochs
from raycosttune.core.incumbent import Incumbent, cautious
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.recipe_epochs import NOISE_SD


class PlainAccuracy:
    """Is the accuracy surrogate as its docstring says it, without any sum kept."""

    def __init__(self, batches: Sequence[int], seen: Sequence[Epochs]) -> None:
        self.seen = seen
        self.recipes = tuple(dict.fromkeys(run.recipe for run in seen))
        self._scales = noise_scales(min(batches), max(batches))
        self._shapes: dict[str | None, tuple[list[float], float]] = {}

    def _of(self, recipe: str | None) -> list[Epochs]:
        return [run for run in self.seen if run.recipe == recipe]

    @cached_property
    def slack(self) -> float:
        """Widens the default to whatever two runs of a recipe contradict each other by."""
        return max([DEFAULT_SLACK, *(self._shaped(recipe)[1] for recipe in self.recipes)])

    def _broken(self, recipe: str | None, valley: float) -> float:
        runs = self._of(recipe)
        pairs = ((u, v) for u in runs for v in runs)
        broken = (_low(u) + _least(u.batch_size, v.batch_size, valley) - _high(v) for u, v in pairs)
        return max([0.0, *broken])

    def _shaped(self, recipe: str | None) -> tuple[list[float], float]:
        if recipe not in self._shapes:
            self._shapes[recipe] = self._shape_of(recipe)
        return self._shapes[recipe]

    def _shape_of(self, recipe: str | None) -> tuple[list[float], float]:
        """Valleys that agree with a recipe's runs, and what they still contradict."""
        rising = self._broken(recipe, 0.0)
        broken = {float(to): self._broken(recipe, float(to)) for to in self._scales}
        left = max(TOLERATED, min(broken.values()))
        if rising <= TOLERATED or left >= rising:
            return [0.0], rising
        return [valley for valley, apart in broken.items() if apart <= left], left

    def bounds(self, recipe: str, batch_size: int) -> tuple[float, float]:
        """Bounds the epochs at a batch by each run of the recipe, whatever valley agrees."""
        found = []
        for valley in self._shaped(recipe)[0]:
            lower, upper = -math.inf, math.inf
            for run in self._of(recipe):
                slack = 0.0 if run.batch_size == batch_size else self.slack
                up = _least(run.batch_size, batch_size, valley)
                down = _least(batch_size, run.batch_size, valley)
                lower, upper = (
                    max(lower, _low(run) + up - slack),
                    min(upper, _high(run) - down + slack),
                )
            found.append((lower, upper))
        lower, upper = min(low for low, _ in found), max(high for _, high in found)
        return math.exp(min(lower, upper)), math.exp(max(lower, upper))

    def floor(self, batch_size: int, reference: str) -> float:
        """Bounds every recipe by its own runs and against the reference, pair by pair."""
        least = self.bounds(reference, batch_size)[0]
        floors = [least]
        for recipe in self.recipes:
            pairs = [
                (mine, other)
                for mine in self._of(recipe)
                for other in self._of(reference)
                if other.batch_size == mine.batch_size
            ]
            low = max((mine.low / other.high for mine, other in pairs), default=0.0)
            high = min((m.high / max(o.low, EARLIEST) for m, o in pairs), default=math.inf)
            is_alone = len({mine.batch_size for mine, _ in pairs}) <= 1
            is_one = is_alone or low <= high * math.exp(self.slack)
            ratios = [low * math.exp(-self.slack)] if is_one else []
            own = self.bounds(recipe, batch_size)[0]
            floors.append(max([own, *(least * ratio for ratio in ratios)]))
        return min(floors)

    def samples(self, recipe: str | None, batch_size: int) -> Samples:
        """Samples the epochs at a batch."""
        mean, sd = self._offset(recipe)
        logs = (self._shape(batch_size) + mean + self._residual(recipe, batch_size))[:, None]
        epochs = np.exp(logs + np.reshape(sd, (-1, 1)) * QUANTILES)
        if recipe is not None:
            low, high = self.bounds(recipe, batch_size)
            epochs = np.clip(epochs, min(low * math.exp(NOISE_SD), high), high)
        return Samples(epochs.ravel(), np.repeat(self._posterior / 12, 12))

    def scores(self) -> list[float]:
        """Returns the relative epochs of each recipe."""
        means = [self._offset(recipe)[0] for recipe in self.recipes]
        return [float(np.exp(np.clip(self._posterior @ mean, -50, 50))) for mean in means]

    def _shape(self, batch_size: float) -> Floats:
        return np.asarray(np.log1p(batch_size / self._scales), dtype=np.float64)

    def _beyond(self, run: Epochs) -> Floats:
        epochs = run.low if run.is_censored else run.high
        return np.asarray(
            math.log(max(epochs, EARLIEST)) - self._shape(run.batch_size), dtype=np.float64
        )

    def _offset(self, recipe: str | None) -> tuple[Floats, Floats]:
        reached = [self._beyond(run) for run in self._of(recipe) if not run.is_censored]
        if reached:
            sd = np.full(len(self._scales), NOISE_SD / math.sqrt(len(reached)))
            return np.mean(reached, axis=0), sd
        mean, sd = self._population()
        vain = [self._beyond(run) for run in self._of(recipe)]
        return np.max([mean, *(beyond + CENSORED_EXCESS for beyond in vain)], axis=0), sd

    @property
    def _posterior(self) -> Floats:
        log_weight = np.zeros(len(self._scales))
        for recipe in self.recipes:
            runs = self._of(recipe)
            if all(run.is_censored for run in runs):
                continue
            offset, _ = self._offset(recipe)
            for run in runs:
                apart = (offset - self._beyond(run)) / NOISE_SD
                log_weight += log_ndtr(apart) if run.is_censored else -(apart**2) / 2
        return np.asarray(softmax(log_weight), dtype=np.float64)

    def _residual(self, recipe: str | None, batch_size: int) -> Floats:
        reached = [run for run in self._of(recipe) if not run.is_censored]
        if not reached:
            return np.zeros(len(self._scales))
        offset, _ = self._offset(recipe)
        at = sorted({run.batch_size for run in reached})
        rows = [
            np.mean([self._beyond(run) - offset for run in reached if run.batch_size == b], axis=0)
            for b in at
        ]
        return np.array(
            [np.interp(math.log(batch_size), np.log(at), row) for row in np.array(rows).T]
        )

    def _population(self) -> tuple[Floats, Floats]:
        middle = math.sqrt(self._scales[0] * self._scales[-1])
        prior = math.log(TYPICAL_EPOCHS) - self._shape(middle)[:, None]
        means = prior + UNKNOWN_SD * np.linspace(-4, 6, 81)
        log_weight = -(((means - prior) / UNKNOWN_SD) ** 2) / 2
        by_recipe = {recipe: self._of(recipe) for recipe in self.recipes}
        offsets = [
            self._offset(recipe)[0]
            for recipe, runs in by_recipe.items()
            if not all(run.is_censored for run in runs)
        ]
        squares = [(offset - np.mean(offsets, axis=0)) ** 2 for offset in offsets]
        sd = np.sqrt((RECIPE_SD**2 + sum(squares)) / (1 + len(offsets)))
        sd = np.broadcast_to(sd, len(self._scales))[:, None]
        for offset in offsets:
            log_weight -= ((offset[:, None] - means) / sd) ** 2 / 2
        for runs in by_recipe.values():
            if all(run.is_censored for run in runs):
                beyond = np.max([self._beyond(run) for run in runs], axis=0)
                log_weight += log_ndtr((means - beyond[:, None]) / sd)
        weights = softmax(log_weight, axis=1)
        mean = (weights * means).sum(axis=1)
        variance = (weights * (means - mean[:, None]) ** 2).sum(axis=1)
        return mean, np.sqrt(variance + sd[:, 0] ** 2)


def _low(run: Epochs) -> float:
    before = EARLIEST if run.is_censored else min(run.high, 1.0) / 2
    return math.log(run.low or before)


def _high(run: Epochs) -> float:
    return math.log(run.high)


def _least(at: float, to: float, valley: float = 0.0) -> float:
    """Epochs fall on the way to the valley, by the batch's factor at most, and rise beyond it."""
    lowest = max(to, valley) if to < at else min(to, valley)
    return -abs(math.log(lowest / at)) if min(at, to) <= lowest <= max(at, to) else 0.0


def demonstrated(known: Knowledge) -> Iterator[tuple[Incumbent, float, list[Digest]]]:
    """Yields every timed cell with every recipe that reached the target at its batch.

    Beside each are the least deadline that it counts as meeting, and the runs.
    """
    pairs = dict.fromkeys(
        (run.record.allocation.batch_size, run.recipe)
        for run in known.digests
        if run.reached is not None
    )
    for batch, recipe in pairs:
        runs = [
            run
            for run in known.digests
            if run.reached is not None
            and (run.record.allocation.batch_size, run.recipe) == (batch, recipe)
        ]
        mid = round(float(np.exp(np.mean([np.log(e.high) for e in _epochs(runs)]))), 6)
        for cell in known.cells:
            if cell.batch_size == batch and known.time.is_measured(cell):
                seconds = known.startup.predict(cell).mid + known.time.predict(cell).mid * mid
                own = [
                    run.seconds_to_target
                    for run in runs
                    if run.record.allocation == cell and not run.is_resized
                ]
                found = known.plans._incumbent(cell, known.tally.hits(batch, recipe))  # type: ignore[arg-type, union-attr]
                assert found.seconds.mid == seconds or math.isclose(found.seconds.mid, seconds)
                yield found, min([*own, cautious(known.time, cell, seconds)]), runs


def _epochs(runs: Sequence[Digest]) -> list[Epochs]:
    return [run.epochs for run in runs if run.epochs is not None]
