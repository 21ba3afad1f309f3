"""How much an untried configuration could still save."""

import math
from dataclasses import dataclass

import numpy as np

from raycosttune.core.array import Floats, Ints
from raycosttune.core.cost import may_fall
from raycosttune.core.demonstrations import Demonstrations
from raycosttune.core.incumbent import Incumbent
from raycosttune.core.knowledge import Knowledge


@dataclass(frozen=True)
class Certificate:
    """Bounds what any untried choice of workers and batch could save.

    It holds among the offered workers, batches and types of machine, with the recipes tried,
    under these assumptions with their slack: within a type epoch time falls with the batch and
    with the workers of a node, worker-seconds rise with the workers; epochs to the target rise
    with the batch by at most the batch's own factor; recipes differ by a factor.

    Attributes:
        gap: Largest fraction of the plan's cost that could be saved, in [0, 1].
        untried: Cells that could still be cheaper, as far as is known.
        time_slack: Relative slack of the bounds on epoch time.
        epochs_slack: Relative slack of the bounds on epochs.
        is_bounded: Whether bounds on time are bounds on cost; not so for a metric that says of
            itself that it may fall.
        has_types: Whether types of machine were offered, too.
    """

    gap: float
    untried: int
    time_slack: float
    epochs_slack: float
    is_bounded: bool = True
    has_types: bool = False

    @property
    def saving(self) -> str:
        """The most that could be saved, in words."""
        if self.untried == 0:
            return "nothing untried can be cheaper"
        if not self.is_bounded:
            return "nothing is certified, as the cost may fall where time or workers grow"
        return f"nothing untried can save more than {math.ceil(self.gap * 100)}%"

    def __str__(self) -> str:
        """Says the certificate in a sentence."""
        what = "types, workers and batches" if self.has_types else "workers and batches"
        return (
            f"among these {what}, with the recipes tried, {self.saving} (slack "
            f"{self.time_slack:.0%} on epoch time, {self.epochs_slack:.0%} on epochs)"
        )


def certify(known: Knowledge, incumbent: Incumbent) -> Certificate:
    """Bounds the saving of every cell that was not measured through."""
    least = least_costs(known, incumbent)
    gap = 0.0 if len(least) == 0 else incumbent.saved_by(float(least.min()))
    slacks = math.expm1(known.times.slack), math.expm1(known.accuracy.slack)
    return Certificate(
        gap,
        len(least),
        *slacks,
        is_bounded=not may_fall(known.cost),
        has_types=bool(known.space.node_types),
    )


def untried(known: Knowledge, incumbent: Incumbent) -> Ints:
    """Places of the cells that were not measured through."""
    return _untried(known, incumbent.recipe)


def _untried(known: Knowledge, recipe: str) -> Ints:
    return known.places[~known.plans.is_measured(recipe)[known.places]]


def least_costs(known: Knowledge, incumbent: Incumbent) -> Floats:
    """Bounds from below what those cells cost that may be cheaper and were not measured through.

    Where recipes differ in their epoch times, a cell counts once for each class of them, with
    the epochs of its own recipes and the times measured with these.

    Returns:
        Shape (cells that may be cheaper,).
    """
    found = [_least_costs(known, incumbent, name) for name in known.classes]
    return np.concatenate(found)


def _least_costs(known: Knowledge, incumbent: Incumbent, name: str) -> Floats:
    """Bounds these costs with the recipes of one class."""
    among = None
    best: Incumbent | None = incumbent
    if isinstance(known.plans, Demonstrations):
        among = frozenset(key for key in known.tally.epochs if known.class_of(key) == name)
        best = incumbent if incumbent.recipe in among else known.plans.of_class(name).best()
    places = known.places if best is None else _untried(known, best.recipe)
    batches = known.grid.batches[places]
    floors = {
        batch: known.accuracy.floor(batch, incumbent.recipe, among)
        for batch in set(batches.tolist())
    }
    epochs = known.grid.spread(batches, floors)
    seconds = known.least_seconds_of(places, epochs, known.times.of(name))
    in_time = known.keeps(places, seconds)
    costs = known.least_costs_of(places[in_time], seconds[in_time])
    return np.asarray(costs[costs < incumbent.cost.mid], dtype=np.float64)
