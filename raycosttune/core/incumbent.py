"""The configurations whose time and epochs are both measured, and the cheapest of them."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from raycosttune.core.array import Floats, Ints
from raycosttune.core.cells import cells_of
from raycosttune.core.cost import CostMetric, checked_cost, checked_costs, is_proportional
from raycosttune.core.goal import Goal
from raycosttune.core.keeping import keeps
from raycosttune.core.observation import TrialRecord
from raycosttune.core.prediction import Prediction
from raycosttune.core.runs import Hits
from raycosttune.core.space import Allocation, Space
from raycosttune.core.startup import Startups
from raycosttune.core.step_model import Bools
from raycosttune.core.tally import Tally
from raycosttune.core.time_surrogate import TimeSurrogate

CAUTION, LEAST_CAUTION = 1.3, 0.02  # in deviations of an epoch time, and at least


@dataclass(frozen=True)
class Incumbent:
    """Is a configuration whose time and epochs are both measured.

    Attributes:
        allocation: Workers and batch.
        recipe: Key of the recipe.
        record: The trial that reached the target with this batch and recipe.
        epochs: Epochs to the target.
        seconds: Start-up and training to the target.
        cost: What that costs.
    """

    allocation: Allocation
    recipe: str
    record: TrialRecord
    epochs: Prediction
    seconds: Prediction
    cost: Prediction

    def saved_by(self, cost: float) -> float:
        """Returns what another cost saves, a fraction of this one's: of nothing, nothing."""
        return 0.0 if self.cost.mid == 0 else 1 - cost / self.cost.mid


def cautious(time: TimeSurrogate, cell: Allocation, seconds: float) -> float:
    """Returns the deadline that a run expected to take so long in a cell counts as meeting."""
    return seconds * math.exp(max(LEAST_CAUTION, CAUTION * time.sd(cell)))


@dataclass(frozen=True)
class Demonstrated:
    """Combines each timed cell with the epochs that recipes are known to need at its batch.

    Attributes:
        tally: The runs.
        space: The legal cells.
        places: Places of the cells that may be chosen.
        time: Epoch times.
        startup: Start-ups.
        cost: The cost metric.
        goal: Target and limits.
    """

    tally: Tally
    space: Space
    places: Ints
    time: TimeSurrogate
    startup: Startups
    cost: CostMetric
    goal: Goal

    @property
    def limit(self) -> float:
        """The deadline of a run, infinite without one."""
        return self.goal.deadline_seconds or math.inf

    @cached_property
    def least_cost(self) -> float:
        """Bounds from below what the cheapest costs, without a fit; infinite where there is none.

        The likely time of a measured cell lies within its bounds.
        """
        if len(self._timed) == 0:
            return math.inf
        seconds = self._starts + self.time.least_measured[self._timed] * self._fewest
        return float(checked_costs(self.cost, self._cells, seconds).min())

    def best(self) -> Incumbent | None:
        """Returns the cheapest that meets the deadline; of equals the one reached first.

        Where none is expected to, it is the fastest of those of which a run on changing workers
        did.
        """
        return self.in_time() or self.fastest()

    def in_time(self) -> Incumbent | None:
        """Returns the cheapest that is expected to meet the deadline, None where none is."""
        if len(self._timed) == 0:
            return None
        is_soon = keeps(self.goal, self._cells, self._seconds(self._fewest) * self._caution)
        found: list[tuple[int, Hits]] = []
        for k, cell in enumerate(self._cells):
            hits = self.tally.best[cell.batch_size] if is_soon[k] else self.tally.own.get(cell)
            if hits is not None and (is_soon[k] or self._has_kept(hits, cell)):
                found.append((k, hits))
        if not found:
            return None
        at = np.array([k for k, _ in found])
        seconds = self._starts[at] + self._epoch[at] * [hits.mid for _, hits in found]
        costs = checked_costs(self.cost, [self._cells[k] for k in at], seconds)
        equal = [found[k] for k in np.flatnonzero(costs == costs.min())]
        if not is_proportional(self.cost):  # runs of more epochs may cost the same
            cost = float(costs.min())
            same = [
                (k, hits) for k, _ in equal for hits in self._reached if self._does(hits, k, cost)
            ]
            equal = same or equal  # of a metric that rises from call to call, none is the same
        k, hits = min(equal, key=lambda pair: (pair[1].first, pair[0]))
        return self._incumbent(self._cells[k], hits)

    def fastest(self) -> Incumbent | None:
        """Returns the fastest of those of which a run on changing workers met the deadline."""
        return min(self._delivered, key=lambda known: known.seconds.mid, default=None)

    def first(self, known: Incumbent) -> int:
        """Returns the turn of the first run at the batch and recipe of one of these."""
        what = known.recipe, known.allocation.batch_size
        return next(h.first for h in self._reached if (h.recipe, h.batch_size) == what)

    def _does(self, hits: Hits, k: int, cost: float) -> bool:
        """Tells whether a recipe meets the deadline in a timed cell at no more than a cost."""
        cell, seconds = self._cells[k], float(self._starts[k] + self._epoch[k] * hits.mid)
        is_soon = bool(keeps(self.goal, [cell], np.array([seconds * self._caution[k]])).all())
        is_in_time = is_soon or self._has_kept(hits, cell)
        is_here = hits.batch_size == cell.batch_size
        return is_here and is_in_time and checked_cost(self.cost, cell, seconds) <= cost

    def all(self) -> Iterator[tuple[Incumbent, float]]:
        """Yields every one, by which was reached first, and the least deadline that it meets."""
        for hits in self._reached:
            for cell in self._cells_at(hits.batch_size):
                found = self._incumbent(cell, hits)
                seconds = cautious(self.time, cell, found.seconds.mid)
                yield found, min(seconds, hits.own.get(cell, math.inf))

    def is_measured(self, recipe: str) -> Bools:
        """Tells of each cell of the space whether a recipe is known to meet the deadline in it.

        Returns:
            Shape (cells of the space,), which nobody may change.
        """
        if recipe not in self._measured:
            self._measured[recipe] = self._known_to_meet(recipe)
        return self._measured[recipe]

    @cached_property
    def _measured(self) -> dict[str, Bools]:
        return {}

    def _known_to_meet(self, recipe: str) -> Bools:
        runs = self.tally.recipes[recipe].runs.values()
        hits = {some.hits.batch_size: some.hits for some in runs if some.hits is not None}
        mids = self._spread({batch: some.mid for batch, some in hits.items()})
        timed = np.zeros(len(self.space.cells), dtype=np.bool_)
        timed[self._timed] = True
        measured = np.zeros_like(timed)
        measured[self._timed] = keeps(self.goal, self._cells, self._seconds(mids) * self._caution)
        if math.isfinite(self.limit) or self.goal.budgets:
            index = cells_of(self.space).index
            each = (own for some in hits.values() for own in some.own.items() if own[0] in index)
            places = [index[cell] for cell, seconds in each if self._is_kept(cell, seconds)]
            measured[places] = timed[places]
        return measured

    @property
    def _delivered(self) -> Iterator[Incumbent]:
        """Configurations of which a run that changed its workers met the deadline.

        What it cost in other units than the goal's is not known of any one of them.
        """
        for hits in self._reached:
            if hits.seconds <= self.limit and not self.goal.budgets:
                for cell in self._cells_at(hits.batch_size):
                    yield self._incumbent(cell, hits)

    def _has_kept(self, hits: Hits, cell: Allocation) -> bool:
        """Tells whether one of these runs kept to deadline and budgets in a cell."""
        return self._is_kept(cell, hits.own.get(cell, math.inf))

    def _is_kept(self, cell: Allocation, seconds: float) -> bool:
        if not self.goal.budgets:
            return seconds <= self.limit
        return bool(keeps(self.goal, [cell], np.array([seconds])).all())

    @property
    def _reached(self) -> list[Hits]:
        """All batches and recipes that reached the target, in the order in which they first did."""
        runs = (runs for h in self.tally.recipes.values() for runs in h.runs.values())
        return sorted((some.hits for some in runs if some.hits), key=lambda hits: hits.first)

    @cached_property
    def _timed(self) -> Ints:
        """Places of the cells with a measured epoch time whose batch has reached the target."""
        measured = self.places[self.time.is_known[self.places]]
        batches = cells_of(self.space).batches[measured]
        return measured[np.isin(batches, list(self.tally.best))]

    @cached_property
    def _cells(self) -> list[Allocation]:
        return [self.space.cells[k] for k in self._timed]

    def _cells_at(self, batch_size: int) -> list[Allocation]:
        return [cell for cell in self._cells if cell.batch_size == batch_size]

    def _spread(self, by_batch: Mapping[int, float]) -> Floats:
        grid = cells_of(self.space)
        return grid.spread(grid.batches, by_batch)[self._timed]

    @cached_property
    def _fewest(self) -> Floats:
        """The fewest epochs that a recipe needs, shape (timed cells,) as all that follows."""
        return self._spread({batch: hits.mid for batch, hits in self.tally.best.items()})

    @cached_property
    def _starts(self) -> Floats:
        return self.startup.of_cells(self.space)[1][self._timed]

    @cached_property
    def _epoch(self) -> Floats:
        return np.exp(self.time.log_mean[self._timed])

    @cached_property
    def _caution(self) -> Floats:
        return np.exp(np.maximum(LEAST_CAUTION, CAUTION * self.time.log_sd[self._timed]))

    def _seconds(self, epochs: Floats) -> Floats:
        return self._starts + self._epoch * epochs

    def _incumbent(self, cell: Allocation, hits: Hits) -> Incumbent:
        epochs = Prediction(hits.low, hits.mid, hits.high)
        start, epoch = self.startup.predict(cell), self.time.predict(cell)
        seconds = Prediction(
            start.low + epoch.low * epochs.low,
            start.mid + epoch.mid * epochs.mid,
            start.high + epoch.high * epochs.high,
        )
        cost = bounded_cost(self.cost, cell, seconds)
        return Incumbent(cell, hits.recipe, hits.latest.record, epochs, seconds, cost)


def bounded_cost(metric: CostMetric, cell: Allocation, seconds: Prediction) -> Prediction:
    """Returns the cost of a predicted time."""
    high = checked_cost(metric, cell, seconds.high) if math.isfinite(seconds.high) else math.inf
    low, mid = (checked_cost(metric, cell, bound) for bound in (seconds.low, seconds.mid))
    return Prediction(min(low, mid), mid, max(mid, high))  # a metric may say that it may fall
