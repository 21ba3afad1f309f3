"""Which run to make next: the one whose expected saving most exceeds its expected price."""

import math
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from raycosttune.core.array import Floats, Ints
from raycosttune.core.figure import counted, told_apart
from raycosttune.core.gaussian import below
from raycosttune.core.held import present
from raycosttune.core.incumbent import Incumbent
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Recipe
from raycosttune.core.outcome import POINTS, earliest, outcomes
from raycosttune.core.space import Allocation
from raycosttune.core.under_way import under_way

FAILURE_WEIGHT = 1.5
LEAST_CHANCE = 0.01
ALMOST_CERTAIN = 0.995
FIRST_EPOCH = 1e-9
LEAST_SD = 1e-9


@dataclass(frozen=True)
class Paying:
    """Says what a run is expected to save, in words only where somebody reads it.

    Attributes:
        what: What it does.
        saving: Expected saving over the runs still planned.
        price: Expected cost.
        unit: Unit of both.
        runs: The runs still planned.
    """

    what: str
    saving: float
    price: float
    unit: str
    runs: int

    def __str__(self) -> str:
        """Says it in a sentence."""
        saving, price = told_apart(self.saving, self.price)
        over = counted(self.runs, "run")
        return f"{self.what} and is expected to save {saving} {self.unit} over {over} for {price}"


@dataclass(frozen=True)
class Experiment:
    """Is a run that could be made.

    Attributes:
        allocation: Workers and batch.
        recipe: Key of a recipe tried before, or None for a new one.
        price: Expected cost of the run; it is cut short when it can't win.
        saving: Expected saving over the runs still planned.
        seconds: Expected wall time.
        reason: What it is made for, one sentence.
        fixed: Values that a new recipe must have, where a user wants the run; None elsewhere.
    """

    allocation: Allocation
    recipe: str | None
    price: float
    saving: float
    seconds: float
    reason: str | Paying
    fixed: Recipe | None = None

    @property
    def why(self) -> str:
        """One sentence for people."""
        return str(self.reason)

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
        several recipes that fail in one cell may fail because of the cell. Where there is but
        one recipe, batches whose epochs no running trial is about to show come first. Cells that
        only a rare run would be in time in come last.
    """
    recipe = None if recipes else "{}"
    places = known.places[~known.tally.tried(recipe)[known.places]]
    batches = set(known.grid.batches[places].tolist())
    lasting = {batch: _chance_to_last(known, batch, recipe) for batch in batches}
    least = known.least_seconds_of(places, FIRST_EPOCH, known.time_of(recipe))
    learning = set() if recipes else {t.record.allocation.batch_size for t in known.live}
    ranked: list[tuple[tuple[bool, bool], float, Experiment]] = []
    drawn = zip(places.tolist(), *outcomes(known, places, recipe), least, strict=True)
    for place, seconds, costs, soonest in drawn:
        cell, in_time = known.space.cells[place], seconds <= known.limit
        if not known.time.is_empty:  # budgets are not held against guesses
            in_time = known.keeps(np.array([place]), seconds[None])[0]
        chance = (float(in_time.mean()) or _tail(known, seconds)) * lasting[cell.batch_size]
        if chance < LEAST_CHANCE or soonest > known.limit:
            continue
        is_last = not in_time.any()
        in_time[0] |= is_last  # the soonest stands for those that are sooner still
        expected = float(costs[in_time].mean()) * (1 + known.misses[cell])
        most = known.cost_of(cell, known.limit) if math.isfinite(known.limit) else math.inf
        price = float(np.minimum(costs, most).mean())
        why = _prospect(known, chance)
        experiment = Experiment(cell, recipe, price, 0.0, float(np.median(seconds)), why)
        is_awaited = cell.batch_size in learning
        rank = (is_last, is_awaited), expected / chance**FAILURE_WEIGHT
        ranked.append((*rank, experiment))
    ranked.sort(key=itemgetter(0, 1))
    return [experiment for _, _, experiment in ranked]


def _tail(known: Knowledge, seconds: Floats) -> float:
    """Returns the chance to be sooner than every sample, where all are beyond the deadline.

    So few samples tell no chance below one in `POINTS`: theirs is a Gaussian's, of log seconds.
    """
    logs = np.log(seconds)
    if known.goal.budgets or logs[0] <= math.log(known.limit):
        return 0.0
    return float(below((math.log(known.limit) - logs.mean()) / max(logs.std(), LEAST_SD)))


def _prospect(known: Knowledge, chance: float) -> str:
    """Says what a run promises; a chance that rests on guesses alone is no figure to show."""
    if not known.tally.has_values:
        return f"is the cheapest guess before any {known.goal.metric} is seen"
    in_time = "" if known.goal.deadline_seconds is None else " in time"
    if chance > ALMOST_CERTAIN:
        return f"is expected to reach the target{in_time}"
    return f"reaches the target{in_time} with an estimated chance of {chance:.0%}"


def _chance_to_last(known: Knowledge, batch_size: int, recipe: str | None) -> float:
    """Returns the chance that a run does not end by itself before the target.

    After m runs that ended by themselves the next one does, too, by the rule of succession,
    in m of m + 1 cases, at the most epochs that one of them made.
    """
    needed, ends = known.accuracy.samples(recipe, batch_size), known.tally.own_ends

    def chance_by(epochs: float) -> float:
        return float(needed.weights[needed.epochs <= epochs].sum())

    chance = 1.0
    if ends:
        soon = chance_by(known.tally.last_own_end)
        chance = soon + (1 - soon) / (ends + 1)
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
    best = known.cost_to_beat(incumbent)
    beat = best, _beside(known, best)
    paying = _paying(known, beat, _open(known, incumbent), incumbent.recipe)
    if recipes and not _tries_new_recipe(known, incumbent):
        own = np.array([known.grid.index[incumbent.allocation]])
        paying += _paying(known, beat, own, None)
    return sorted(paying, key=lambda experiment: -experiment.value)


def _open(known: Knowledge, incumbent: Incumbent) -> Ints:
    """Returns places of cells whose cost with the best recipe isn't known, nor being learned."""
    recipe = incumbent.recipe
    done = known.tally.tried(recipe) | known.plans.is_measured(recipe)
    learning = [t.record.allocation.batch_size for t in known.live if t.recipe == recipe]
    done |= np.isin(known.grid.batches, learning)
    return known.places[~done[known.places]]


def _tries_new_recipe(known: Knowledge, incumbent: Incumbent) -> bool:
    return any(trial.recipe != incumbent.recipe for trial in known.live)


def _paying(
    known: Knowledge, beat: tuple[float, Floats | float], places: Ints, recipe: str | None
) -> list[Experiment]:
    """Returns the runs among some cells that save more than they cost.

    Args:
        known: What the records say.
        beat: What a run costs by the best plan, and what a further one must beat.
        places: Places of the cells in the space, shape (k,).
        recipe: Key of the recipe, None for one not tried.
    """
    best, beside = beat
    least = known.least_costs_of(places, earliest(known, places, recipe))
    places = places[least < np.max(beside)]  # no other can save anything
    seconds, costs = outcomes(known, places, recipe)
    beaten = np.maximum(beside - costs, 0)
    saved = np.where(known.keeps(places, seconds), beaten, 0)
    savings = known.remaining_runs * saved.mean(axis=1)
    if recipe is None:
        # Among n exchangeable recipes and a new one, the new one is best with chance 1/(n+1).
        chances = np.maximum((saved > 0).mean(axis=1), 1 / POINTS)
        savings = savings * np.minimum(1.0, 1 / (len(known.recipes) + 1) / chances)
        savings = savings * known.accuracy.lasting
    prices, middle = np.minimum(costs, best).mean(axis=1), np.median(seconds, axis=1)
    what = "tries another recipe" if recipe is None else "tries the best recipe here"
    terms = known.cost.unit, known.remaining_runs
    found = []
    for k in np.flatnonzero(savings > prices).tolist():
        saving, price = float(savings[k]), float(prices[k])
        why = Paying(what, saving, price, *terms)
        cell = known.space.cells[places[k]]
        found.append(Experiment(cell, recipe, price, saving, float(middle[k]), why))
    return found


def _beside(known: Knowledge, best: float) -> Floats | float:
    """Returns what a further run must beat, point by point: what is to come, too; see under_way.

    The epochs that a run shows hold for all cells of its batch that are timed.
    """
    for trial in under_way(known):
        own = known.grid.index[present(trial.record, known.space)]
        is_timed = known.time_of(trial.recipe).is_known
        shown = is_timed & (known.grid.batches == known.grid.batches[own])
        shown[own] = True
        places = known.places[shown[known.places]]
        seconds, costs = outcomes(known, places, trial.recipe)
        shows = np.where(known.keeps(places, seconds), costs, math.inf)
        best = np.minimum(best, shows.min(axis=0))
    return best
