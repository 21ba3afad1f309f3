"""Which run to make next: the one whose expected saving most exceeds its expected price."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from raycosttune.core.figure import counted, told_apart
from raycosttune.core.isotonic import Floats
from raycosttune.core.knowledge import Incumbent, Knowledge
from raycosttune.core.observation import TrialRecord
from raycosttune.core.proposer import recipe_key
from raycosttune.core.space import Allocation

TIME_QUANTILES = ndtri(np.array([1, 3, 5]) / 6)
POINTS = 24
TIME_SD = 0.5
FAILURE_WEIGHT = 1.5
LEAST_CHANCE = 0.01
ALMOST_CERTAIN = 0.995


@dataclass(frozen=True)
class Experiment:
    """Is a run that could be made.

    Attributes:
        allocation: Workers and batch.
        recipe: Key of a recipe tried before, or None for a new one.
        price: Expected cost of the run; it is cut short when it can't win.
        saving: Expected saving over the runs still planned.
        seconds: Expected wall time.
        why: One sentence for people.
    """

    allocation: Allocation
    recipe: str | None
    price: float
    saving: float
    seconds: float
    why: str

    @property
    def value(self) -> float:
        """What the run brings beyond its price."""
        return self.saving - self.price


def first_experiments(known: Knowledge, *, recipes: bool) -> list[Experiment]:
    """Ranks the runs to make while nothing has reached the target, best first.

    Args:
        known: What the records say.
        recipes: Whether new recipes can be proposed.

    Returns:
        Runs by expected cost over the chance to meet the deadline, without those that
        can't meet it. Misses in a cell count against it beyond what they say of its epochs:
        several recipes that fail in one cell may fail because of the cell.
    """
    tried = _tried(known.records)
    ranked: list[tuple[float, Experiment]] = []
    for cell in known.cells:
        recipe = None if recipes else "{}"
        if recipe is not None and (cell, recipe) in tried:
            continue
        seconds, costs = _outcomes(known, cell, recipe)
        limit = known.goal.deadline_seconds or math.inf
        in_time = seconds <= limit
        chance = float(np.mean(in_time)) * _chance_to_last(known, cell, recipe)
        if chance < LEAST_CHANCE or known.least_seconds(cell, 1e-9) > limit:
            continue
        expected = float(costs[in_time].mean()) * (1 + known.misses[cell])
        price = float(np.minimum(costs, _cost_at(known, cell, limit)).mean())
        why = _prospect(known, chance)
        experiment = Experiment(cell, recipe, price, 0.0, float(np.median(seconds)), why)
        ranked.append((expected / chance**FAILURE_WEIGHT, experiment))
    ranked.sort(key=lambda pair: pair[0])
    return [experiment for _, experiment in ranked]


def _prospect(known: Knowledge, chance: float) -> str:
    """Says what a run promises; a chance that rests on guesses alone is no figure to show."""
    if not any(run.gaps for run in known.digests):
        return f"is the cheapest guess before any {known.goal.metric} is seen"
    in_time = "" if known.goal.deadline_seconds is None else " in time"
    if chance > ALMOST_CERTAIN:
        return f"is expected to reach the target{in_time}"
    return f"reaches the target{in_time} with an estimated chance of {chance:.0%}"


def _chance_to_last(known: Knowledge, cell: Allocation, recipe: str | None) -> float:
    """Returns the chance that a run does not end by itself before the target.

    After m runs that ended by themselves the next one does, too, by the rule of succession,
    in m of m + 1 cases, at the most epochs that one of them made.
    """
    needed = known.accuracy.samples(recipe, cell.batch_size)

    def chance_by(epochs: float) -> float:
        return float(needed.weights[needed.epochs <= epochs].sum())

    chance = 1.0
    if known.own_ends:
        soon = chance_by(max(known.own_ends))
        chance = soon + (1 - soon) / (len(known.own_ends) + 1)
    if known.goal.max_epochs is not None:
        chance = min(chance, chance_by(known.goal.max_epochs))
    return chance


def worthwhile_experiments(
    known: Knowledge, incumbent: Incumbent, *, recipes: bool
) -> list[Experiment]:
    """Ranks the runs that pay for themselves once the target has been reached, best first.

    Args:
        known: What the records say.
        incumbent: The best configuration so far.
        recipes: Whether new recipes can be proposed.

    Returns:
        Runs with a positive value: expected saving on the planned runs beyond the price.
    """
    candidates = [
        _experiment(known, incumbent, cell, incumbent.recipe)
        for cell in _open_cells(known, incumbent)
    ]
    if recipes and not _tries_new_recipe(known, incumbent):
        candidates.append(_experiment(known, incumbent, incumbent.allocation, None))
    paying = [candidate for candidate in candidates if candidate.value > 0]
    return sorted(paying, key=lambda candidate: -candidate.value)


def _open_cells(known: Knowledge, incumbent: Incumbent) -> Iterator[Allocation]:
    """Yields the cells whose cost with the best recipe isn't known, nor being learned."""
    tried = _tried(known.records)
    measured = {other.allocation for other in known.measured if other.recipe == incumbent.recipe}
    learning = {
        record.allocation.batch_size
        for record in known.records
        if record.is_live and recipe_key(record.recipe) == incumbent.recipe
    }
    for cell in known.cells:
        is_tried = (cell, incumbent.recipe) in tried or cell in measured
        if not is_tried and cell.batch_size not in learning:
            yield cell


def _tries_new_recipe(known: Knowledge, incumbent: Incumbent) -> bool:
    return any(
        record.is_live and recipe_key(record.recipe) != incumbent.recipe for record in known.records
    )


def _experiment(
    known: Knowledge, incumbent: Incumbent, cell: Allocation, recipe: str | None
) -> Experiment:
    seconds, costs = _outcomes(known, cell, recipe)
    limit = known.goal.deadline_seconds or math.inf
    saved = np.where(seconds <= limit, np.maximum(incumbent.cost.mid - costs, 0), 0)
    saving = known.remaining_runs * float(saved.mean())
    if recipe is None and saving > 0:
        # Among n exchangeable recipes and a new one, the new one is best with chance 1/(n+1).
        saving *= min(1.0, 1 / (len(known.recipes) + 1) / float(np.mean(saved > 0)))
    price = float(np.minimum(costs, incumbent.cost.mid).mean())
    what = "tries another recipe" if recipe is None else "tries the best recipe here"
    saved_text, price_text = told_apart(saving, price)
    why = (
        f"{what} and is expected to save {saved_text} {known.cost.unit} over "
        f"{counted(known.remaining_runs, 'run')} for {price_text}"
    )
    return Experiment(cell, recipe, price, saving, float(np.median(seconds)), why)


def _tried(records: Sequence[TrialRecord]) -> set[tuple[Allocation, str]]:
    """Returns the cells and recipes that ran, without those that failed before a report."""
    return {
        (record.allocation, recipe_key(record.recipe))
        for record in records
        if record.is_live or record.reports
    }


def _outcomes(known: Knowledge, cell: Allocation, recipe: str | None) -> tuple[Floats, Floats]:
    """Samples time to target and cost of a cell, each of shape (POINTS,), equally likely."""
    epochs = known.accuracy.samples(recipe, cell.batch_size)
    epoch = known.time.predict(cell)
    if known.time.is_empty:
        times = known.guessed_scale * epoch.mid * np.exp(TIME_SD * TIME_QUANTILES)
    elif known.time.is_measured(cell):
        times = np.array([epoch.mid])
    else:
        sd = min(TIME_SD, math.log(epoch.high / epoch.low) / 4)
        times = np.clip(epoch.mid * np.exp(sd * TIME_QUANTILES), epoch.low, epoch.high)
    spread = (times[:, None] * epochs.epochs[None, :]).ravel()
    weights = np.tile(epochs.weights, len(times)) / len(times)
    seconds = known.startup.predict(cell.workers).mid + _quantiles(spread, weights)
    return seconds, np.array([known.cost_of(cell, float(s)) for s in seconds])


def _quantiles(values: Floats, weights: Floats) -> Floats:
    order = np.argsort(values)
    cumulative = np.cumsum(weights[order]) - weights[order] / 2
    levels = (np.arange(POINTS) + 0.5) / POINTS
    return np.asarray(np.interp(levels, cumulative, values[order]), dtype=np.float64)


def _cost_at(known: Knowledge, cell: Allocation, seconds: float) -> float:
    return known.cost_of(cell, seconds) if math.isfinite(seconds) else math.inf
