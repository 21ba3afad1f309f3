"""Everything that the records of a sweep say, at one moment."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from raycosttune.core.accuracy_surrogate import AccuracySurrogate
from raycosttune.core.array import Floats, Ints
from raycosttune.core.broken import is_broken
from raycosttune.core.cells import Cells, cells_of
from raycosttune.core.cost import (
    CostMetric,
    checked_cost,
    checked_costs,
    held,
    hourly,
    is_proportional,
    may_fall,
)
from raycosttune.core.demonstrations import Demonstrations
from raycosttune.core.digest import Digest, Digests
from raycosttune.core.goal import Goal
from raycosttune.core.incumbent import Demonstrated, Incumbent
from raycosttune.core.keeping import keeps
from raycosttune.core.observation import Recipe, TrialRecord
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.space import Allocation, Space
from raycosttune.core.startup import Startups, fitted_startup
from raycosttune.core.step_model import Bools
from raycosttune.core.tally import Tally
from raycosttune.core.time_surrogate import TimeSurrogate
from raycosttune.core.times import Times, fitted_times, guessed_paces

HOUR = 3600.0


class Knowledge:
    """Holds what the records add up to, and the surrogates fitted to it when first asked for.

    Args:
        records: Every trial, in the order of their start.
        space: The legal cells.
        goal: Target and limits.
        cost: The cost metric.
        digests: Sums the records up, kept from one moment to the next; fresh by default.
        profiles: Every profile, likewise.
        tally: What the records and profiles add up to; added up here by default.
        earlier: What trials of an earlier sweep of the same job say; the tally has them.
    """

    def __init__(
        self,
        records: Sequence[TrialRecord],
        space: Space,
        goal: Goal,
        cost: CostMetric,
        digests: Digests | None = None,
        profiles: Sequence[ProfileRecord] = (),
        tally: Tally | None = None,
        earlier: tuple[Digest, ...] = (),
    ) -> None:
        self.records = records
        self.space = space
        self.goal = goal
        self.cost = cost
        self.profiles = profiles
        self.earlier = earlier
        self.limit = goal.deadline_seconds or math.inf
        self.digest_of = digests or Digests(goal)
        trials = map(self.digest_of, records)
        self.tally = Tally.of(trials, space, goal, profiles) if tally is None else tally

    @cached_property
    def digests(self) -> tuple[Digest, ...]:
        """What each trial says, earlier ones too; what they say together is in `tally`."""
        return (*self.earlier, *map(self.digest_of, self.records))

    @property
    def live(self) -> tuple[Digest, ...]:
        """The trials that may still report."""
        return self.tally.live

    @cached_property
    def times(self) -> Times:
        """Epoch time by class of recipe and cell."""
        paces = guessed_paces(self.space, self.cost)
        return fitted_times(self.space, self.tally.epoch_seconds, paces)

    @property
    def time(self) -> TimeSurrogate:
        """Epoch time by cell, of a recipe not tried yet where some affect it."""
        return self.times.unknown

    def time_of(self, recipe: str | None) -> TimeSurrogate:
        """Epoch time by cell with a recipe, None or another key for one not tried yet."""
        if not self.space.affects_time or recipe not in self.recipes:
            return self.times.unknown
        return self.times.of(self.class_of(recipe))

    def class_of(self, recipe: str) -> str:
        """Returns the class of epoch times of a recipe that was tried."""
        return self.space.time_class(self.recipes[recipe]) if self.space.affects_time else ""

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The classes of the recipes that reported, sorted; one where nothing is declared."""
        return tuple(sorted({self.class_of(recipe) for recipe in self.tally.epochs})) or ("",)

    @cached_property
    def startup(self) -> Startups:
        """Start-up by type of machine and worker count."""
        return fitted_startup(self.tally.startup_seconds)

    @cached_property
    def starts(self) -> tuple[Floats, Floats]:
        """Lower bound and likely start-up of each cell of the space, both of shape (cells,)."""
        return self.startup.of_cells(self.space)

    @cached_property
    def samples_per_epoch(self) -> float | None:
        """Samples of an epoch as profiles show them, None before the first."""
        found = (record.samples_per_epoch for record in self.profiles)
        return next((samples for samples in found if samples is not None), None)

    @property
    def period(self) -> float:
        """Epochs between evaluations, 1 before the first."""
        return self.tally.period if math.isfinite(self.tally.period) else 1.0

    @cached_property
    def hourly(self) -> Floats | None:
        """What each cell of the space costs for an hour, None where that is not all it hangs on."""
        return hourly(self.cost, self.space.cells) if is_proportional(self.cost) else None

    @cached_property
    def rates(self) -> Floats:
        """What a second in each of `cells` costs, where it is held for an hour."""
        return self.costs_of(self.places, np.full(len(self.places), HOUR)) / HOUR

    @cached_property
    def accuracy(self) -> AccuracySurrogate:
        """Epochs to the target by batch and recipe."""
        batches = tuple(self.grid.at_batch)
        return AccuracySurrogate(batches, self.tally.epochs, self.tally.violation)

    @cached_property
    def recipes(self) -> dict[str, Recipe]:
        """The recipes tried, by key."""
        return {key: history.recipe for key, history in self.tally.recipes.items()}

    @cached_property
    def cells(self) -> tuple[Allocation, ...]:
        """The cells that may still be tried: those that fail again and again are dropped."""
        if not self.tally.failures and not self.tally.out_of_memory:
            return self.space.cells
        return tuple(cell for cell in self.space.cells if not is_broken(self.tally, cell))

    @cached_property
    def grid(self) -> Cells:
        """The cells of the space as arrays."""
        return cells_of(self.space)

    @cached_property
    def places(self) -> Ints:
        """Places of these cells in the space, shape (cells,)."""
        if self.cells is self.space.cells:
            return np.arange(len(self.cells))
        return np.array([self.grid.index[cell] for cell in self.cells], dtype=np.int64)

    @cached_property
    def plans(self) -> Demonstrated | Demonstrations:
        """The configurations with known epochs and known epoch time."""
        if not self.space.affects_time:
            return self._plans("")
        return Demonstrations({name: self._plans(name) for name in self.classes}, self.class_of)

    def _plans(self, name: str) -> Demonstrated:
        where, tally, time = (
            (self.space, self.places),
            self.tally.of_class(name),
            self.times.of(name),
        )
        return Demonstrated(tally, *where, time, self.startup, self.cost, self.goal)

    @cached_property
    def incumbent(self) -> Incumbent | None:
        """The cheapest configuration measured to reach the target by the deadline."""
        return self.plans.best()

    @cached_property
    def measured(self) -> tuple[Incumbent, ...]:
        """Every configuration with known epochs and known epoch time that meets the deadline."""
        found = (run for run, deadline in self.demonstrated if deadline <= self.limit)
        return tuple(run for run in found if self.affords(run.allocation, run.seconds.mid))

    @cached_property
    def demonstrated(self) -> tuple[tuple[Incumbent, float], ...]:
        """Every configuration with known epochs and epoch time, and the least deadline it meets."""
        return tuple(self.plans.all())

    @property
    def is_delivered(self) -> bool:
        """Whether a run has reached the target by the deadline, on whatever workers."""
        return self.tally.is_delivered

    @property
    def remaining_runs(self) -> int:
        """Runs still to be paid for after the search: one model may already be in hand."""
        return self.goal.planned_runs - self.is_delivered

    @property
    def misses(self) -> Counter[Allocation]:
        """How often runs in a cell ended before the target."""
        return self.tally.misses

    @cached_property
    def guessed_scale(self) -> float:
        """Seconds behind a relative epoch time while none is measured.

        The fastest cell is guessed to need half the deadline.
        """
        if self.goal.deadline_seconds is None:
            return 1.0
        fastest = min(
            self.time.predict(cell).mid * self.accuracy.samples(None, cell.batch_size).mean
            for cell in self.cells
        )
        return self.goal.deadline_seconds / 2 / fastest

    def cost_of(self, cell: Allocation, seconds: float) -> float:
        """Returns the cost of holding a cell for so many seconds, checked."""
        return checked_cost(self.cost, cell, seconds)

    def least_seconds(self, cell: Allocation, epochs: float, recipe: str | None = None) -> float:
        """Bounds the time to so many epochs of a recipe in a cell from below."""
        return self.startup.predict(cell).low + self.time_of(recipe).least(cell) * epochs

    def least_seconds_of(self, places: Ints, epochs: Floats | float, time: TimeSurrogate) -> Floats:
        """Bounds the time to so many epochs in some cells from below.

        Args:
            places: Places of the cells in the space, shape (k,).
            epochs: Shape (k,), or the same for all.
            time: Epoch times of the recipe or its class.

        Returns:
            Shape (k,).
        """
        return self.starts[0][places] + np.exp(time.log_least[places]) * epochs

    def costs_of(self, places: Ints, seconds: Floats) -> Floats:
        """Returns the costs of holding some cells, checked.

        Args:
            places: Places of the cells in the space, shape (k,).
            seconds: For how long, shape (k, ...).

        Returns:
            Of the shape of `seconds`.
        """
        if self.hourly is not None:
            return held(self.hourly[places], seconds)
        return checked_costs(self.cost, [self.space.cells[k] for k in places], seconds)

    def keeps(self, places: Ints, seconds: Floats) -> Bools:
        """Tells of some cells whether runs of so many seconds keep to deadline and budgets.

        Args:
            places: Places of the cells in the space, shape (k,).
            seconds: How long, shape (k, ...).

        Returns:
            Of the shape of `seconds`.
        """
        cells = [self.space.cells[k] for k in places] if self.goal.budgets else ()
        return keeps(self.goal, cells, seconds)

    def least_costs_of(self, places: Ints, seconds: Floats) -> Floats:
        """Bounds what it costs to hold some cells for at least so long; as `costs_of`."""
        return np.zeros_like(seconds) if may_fall(self.cost) else self.costs_of(places, seconds)

    def cost_to_beat(self, incumbent: Incumbent) -> float:
        """Returns what a run costs by the best plan known, the rival one of the goal included."""
        rival = self.goal.rival_cost
        return incumbent.cost.mid if rival is None else min(incumbent.cost.mid, rival)

    def affords(self, cell: Allocation, seconds: float) -> bool:
        """Tells whether a run keeps to the budgets, whatever the deadline."""
        paid = ((checked_cost(b.cost, cell, seconds), b.at_most) for b in self.goal.budgets)
        return all(cost <= most for cost, most in paid)

    def is_open(self, cell: Allocation) -> bool:
        """Tells whether a cell is one of `cells`."""
        return cell in self.grid.index and not is_broken(self.tally, cell)
