"""What no other choice beats in cost, time and the metric at once."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from raycosttune.core.digest import nearer
from raycosttune.core.figure import counted, whole
from raycosttune.core.frontier import points
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.metric_surface import MetricSurface
from raycosttune.core.observation import Recipe
from raycosttune.core.space import Allocation


@dataclass(frozen=True)
class Tradeoff:
    """Is a run that no other one beats in cost, seconds and value at once.

    Attributes:
        allocation: Workers and batch.
        recipe: The other hyperparameters as a loop gets them.
        epochs: How many epochs it makes.
        value: What the goal's metric is then.
        seconds: Start-up and training.
        cost: What that costs, in `unit`.
        unit: Unit of the cost.
        is_measured: Whether its epochs and its epoch time were both measured.
    """

    allocation: Allocation
    recipe: Recipe
    epochs: float
    value: float
    seconds: float
    cost: float
    unit: str
    is_measured: bool

    def __str__(self) -> str:
        """Says it in a line."""
        what = self.allocation.named(self.recipe)
        how = "measured" if self.is_measured else "predicted"
        return (
            f"{what}, {counted(round(self.epochs, 2), 'epoch')}: {self.value:.4g} in "
            f"{whole(self.seconds)} s for {self.cost:.3g} {self.unit} ({how})"
        )


def pareto(
    known: Knowledge, rate: LearningRate | None = None, surface: MetricSurface | None = None
) -> tuple[Tradeoff, ...]:
    """Returns what no other choice beats in cost, seconds and value at once, fastest first.

    At the target these are the measured configurations and the other cells as predicted, those
    beyond the deadline too. Below it they are the evaluations of runs, which at one batch hold
    on any number of workers whose epochs were timed. While nothing has reached the target, it and
    what lies between are predicted.

    Args:
        known: What the records say.
        rate: How the learning rate follows the batch, if it does.
        surface: What is likely of the metric, None where nothing tells.
    """
    sign, kept = known.goal.sign, list[Tradeoff]()
    front = _Front()
    offers = [*_at_target(known), *_before_target(known), *_ahead(known, surface)]
    offers.sort(key=lambda offer: (-sign * offer.value, offer.seconds, offer.cost))
    for offer in offers:
        if front.add(offer.seconds, offer.cost):
            kept.append(offer)
    kept.sort(key=lambda offer: (offer.seconds, offer.cost))
    return tuple(_applied(offer, rate) for offer in kept)


class _Front:
    """Holds the seconds and costs of what was taken, those that nothing of it beats."""

    def __init__(self) -> None:
        self._seconds: list[float] = []  # rising, and their costs falling
        self._costs: list[float] = []

    def add(self, seconds: float, cost: float) -> bool:
        """Takes an offer unless something taken is as fast and as cheap; tells whether it did."""
        place = bisect_right(self._seconds, seconds)
        if place and self._costs[place - 1] <= cost:
            return False
        start = bisect_left(self._seconds, seconds)
        end = start
        while end < len(self._costs) and self._costs[end] >= cost:
            end += 1
        self._seconds[start:end], self._costs[start:end] = [seconds], [cost]
        return True


def _applied(offer: Tradeoff, rate: LearningRate | None) -> Tradeoff:
    if rate is None:
        return offer
    recipe = rate.apply(offer.recipe, offer.allocation.batch_size)
    return Tradeoff(**{**vars(offer), "recipe": recipe})


def _at_target(known: Knowledge) -> Iterator[Tradeoff]:
    for point in points(known):
        cell, recipe = point.allocation, point.recipe
        epoch, start = known.time_of(recipe).predict(cell).mid, known.startup.predict(cell).mid
        yield Tradeoff(
            cell,
            known.recipes[recipe],
            max(point.seconds - start, 0.0) / epoch,
            known.goal.target,
            point.seconds,
            point.cost,
            known.cost.unit,
            point.is_measured,
        )


def _before_target(known: Knowledge) -> Iterator[Tradeoff]:
    """Yields the evaluations that came nearer to the target than any before in their run."""
    for batch, recipe, epoch, gap in _nearer(known):
        time = known.time_of(recipe)
        at_batch = time.is_known & (known.grid.batches == batch)
        cells = known.places[at_batch[known.places]].tolist()
        value = known.goal.target - known.goal.sign * gap
        starts = known.startup.of_cells(known.space)[1][cells]
        seconds = starts + np.exp(time.log_mean[cells]) * epoch
        costs = known.costs_of(np.array(cells, dtype=np.int64), seconds)
        for k, second, cost in zip(cells, seconds.tolist(), costs.tolist(), strict=True):
            cell, unit = known.space.cells[k], known.cost.unit
            told = known.recipes[recipe]
            yield Tradeoff(cell, told, epoch, value, second, cost, unit, is_measured=True)


def _ahead(known: Knowledge, surface: MetricSurface | None) -> Iterator[Tradeoff]:
    """Yields the levels that no run has come to, as far as no measured epochs are known."""
    if surface is None or known.demonstrated:
        return
    cells, recipe, unit = known.cells, surface.recipe, known.cost.unit
    at = np.searchsorted(surface.batches, known.grid.batches[known.places])
    starts = known.startup.of_cells(known.space)[1][known.places]
    pace = np.exp(known.time.log_mean[known.places])
    for gap, needed in zip(surface.gaps, np.exp(surface.log_epochs[1]), strict=True):
        if gap >= surface.nearest:
            continue
        value = known.goal.target - known.goal.sign * float(gap)
        epochs = np.ceil(needed / known.period - 1e-6)[at] * known.period
        seconds = starts + pace * epochs
        told = epochs, seconds, known.costs_of(known.places, seconds)
        rows = zip(cells, *(each.tolist() for each in told), strict=True)
        for cell, epoch, second, cost in rows:
            if epoch <= (known.goal.max_epochs or math.inf) and known.affords(cell, second):
                yield Tradeoff(cell, recipe, epoch, value, second, cost, unit, is_measured=False)


def _nearer(known: Knowledge) -> Iterable[tuple[int, str, float, float]]:
    """Returns batch, recipe, epoch and gap of these evaluations, each batch and recipe once."""
    found: dict[tuple[int, str, float], float] = {}
    for digest in known.digests:
        for epoch, gap in nearer(digest, known.goal):
            key = digest.record.allocation.batch_size, digest.recipe, epoch
            found[key] = max(gap, found.get(key, 0.0))  # repeats count as the worse one
    return [(*key, gap) for key, gap in found.items()]
