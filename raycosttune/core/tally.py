"""What all trials and profiles add up to, so that nobody reads them one by one."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from raycosttune.core.accuracy_surrogate import noise_scales
from raycosttune.core.cells import cells_of
from raycosttune.core.digest import Digest
from raycosttune.core.duplicate import duplicate
from raycosttune.core.epochs import Seen
from raycosttune.core.goal import Goal
from raycosttune.core.held import present, resized
from raycosttune.core.history import History
from raycosttune.core.observation import EndCause, Ended
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.readings import Readings
from raycosttune.core.recipe_epochs import RecipeEpochs
from raycosttune.core.runs import Hits, Runs
from raycosttune.core.space import Allocation, Space
from raycosttune.core.step_model import Bools
from raycosttune.core.timings import Timings
from raycosttune.core.turned import turned

OFTEN = ("recipes", "epochs", "_timings")  # what every report changes
SELDOM = ("best", "own", "misses", "failures", "late_starts", "ends")


class Tally:
    """Adds trials up, in any order; what it holds is replaced, not changed, where one is added.

    Args:
        space: The legal cells.
        goal: Target and limits.

    Attributes:
        recipes: What the trials of each recipe say, by its key.
        epochs: Epochs to the target of those that reported.
        violation: The least log slack under which no recipe's runs contradict each other.
        live: The trials that may still report.
        best: Of the runs that reached the target, those of the recipe that needs the fewest
            epochs, by batch.
        own: The same by cell, of the recipes that a run in it met the deadline with.
        misses: How often runs in a cell ended before the target.
        failures: How often each cell failed, or passed the deadline, before a report.
        late_starts: How often so many workers of a type had not begun to train by the deadline.
        ends: How often runs in a cell went to their end: by themselves, at the deadline, with
            the last legal epoch, or after they had turned.
        out_of_memory: The cells that ran out of memory.
        own_ends: How many runs ended by themselves before the target.
        last_own_end: The most epochs that one of these made.
        given_up: How many runs were stopped before the target.
        period: Epochs between evaluations, infinite before the first.
        is_delivered: Whether a run has reached the target by the deadline.
        has_values: Whether any value of the goal's metric was seen.
    """

    def __init__(self, space: Space, goal: Goal) -> None:
        batches = [cell.batch_size for cell in space.cells]
        self._space, self._cells = space, cells_of(space)
        self._limit = goal.deadline_seconds or math.inf
        self._most_epochs = goal.max_epochs or math.inf
        self._noise_scales = noise_scales(min(batches), max(batches))
        self.recipes: dict[str, History] = {}
        self.epochs: dict[str, RecipeEpochs] = {}
        self.violation = 0.0
        self._timings = Timings[tuple[str, int]]()
        self.live: tuple[Digest, ...] = ()
        self.best: dict[int, Hits] = {}
        self.own: dict[Allocation, Hits] = {}
        self.misses = Counter[Allocation]()
        self.failures = Counter[Allocation]()
        self.late_starts = Counter[tuple[str, int]]()
        self.ends = Counter[Allocation]()
        self.out_of_memory: tuple[Allocation, ...] = ()
        self.own_ends, self.last_own_end = 0, 0.0
        self.given_up = 0
        self.period = math.inf
        self.is_delivered = self.has_values = self._is_shared = False

    @property
    def epoch_seconds(self) -> Mapping[tuple[str, int], Readings]:
        """Seconds of single epochs by the class of their recipe and their cell's place.

        Those of cells that aren't in the space are left out.
        """
        return self._timings.epochs

    @property
    def is_timed(self) -> bool:
        """Whether any epoch was timed but first ones, which may hold one-off work."""
        return self._timings.is_sure

    @property
    def startup_seconds(self) -> Mapping[tuple[str, int], Readings]:
        """Seconds of start-ups by type of machine and worker count."""
        return self._timings.starts

    @classmethod
    def of(
        cls, trials: Iterable[Digest], space: Space, goal: Goal, profiles: Sequence[ProfileRecord]
    ) -> "Tally":
        """Adds trials up in the order of their start, and profiles."""
        tally = cls(space, goal)
        for turn, trial in enumerate(trials):
            tally.add(trial, turn)
        for profile in profiles:
            tally.add_profile(profile)
        return tally

    def copy(self) -> "Tally":
        """Returns one to which more can be added while this one stays as it is."""
        self._is_shared = True
        other = duplicate(self)
        for name in OFTEN:
            vars(other)[name] = vars(self)[name].copy()
        return other

    def _unshare(self) -> None:
        """Has what only ends and successes change for itself, where a copy has it, too."""
        if self._is_shared:
            for name in SELDOM:
                own, shared = type(vars(self)[name])(), vars(self)[name]
                dict.update(own, shared)  # a counter's own update adds up one by one
                vars(self)[name] = own
            self._is_shared = False

    def add(self, trial: Digest, turn: int) -> None:
        """Adds a trial.

        Args:
            trial: What it says.
            turn: Its turn among the trials, by their start.
        """
        record = trial.record
        self._add_times(trial)
        self._add_run(trial, turn)
        self.period = min(self.period, trial.period)
        self.has_values |= bool(trial.gaps)
        if record.ended is None:
            self.live += (trial,)
        else:
            self._add_end(trial, record.ended)

    def _add_end(self, trial: Digest, end: Ended) -> None:
        self._unshare()
        record, cell, cause = trial.record, trial.record.allocation, end.cause
        if trial.reached is None and cause is EndCause.STOPPED:
            self.given_up += 1
        if cause is EndCause.OUT_OF_MEMORY:
            self.out_of_memory += (present(record, self._space),)
        if not record.reports:
            is_late = record.seconds >= self._limit
            if cause is EndCause.FAILED or is_late:
                self.failures[cell] += 1
            if is_late and end.is_starting:
                self.late_starts[cell.node_type, cell.workers] += 1
            return
        is_own = cause is EndCause.FINISHED
        is_last = record.epoch >= self._most_epochs or record.run_seconds >= self._limit
        self.ends[cell] += is_own or is_last or turned(trial.gaps) is not None
        self.misses[cell] += trial.reached is None
        if is_own and record.reports[-1].value is not None:
            self.own_ends += 1
            self.last_own_end = max(self.last_own_end, record.epoch)

    def add_profile(self, profile: ProfileRecord) -> None:
        """Adds what a profile showed."""
        if profile.shown is None:
            return
        recipe = profile.profile.recipe
        if recipe is not None or not self._space.affects_time:  # else nobody knows of which class
            name = self._space.time_class(recipe or {})
            for cell, seconds in profile.epoch_seconds.items():
                self._timings.add_epochs(self._placed(name, cell), (seconds,))
        if profile.epoch_seconds:
            startup = (profile.shown.startup_seconds,)
            held = profile.profile.held
            self._timings.add_starts((held.node_type, held.workers), startup)
        self.out_of_memory += profile.shown.out_of_memory

    def assume(
        self,
        seconds: Mapping[tuple[str, Allocation], float],
        startups: Mapping[tuple[str, int], float],
    ) -> None:
        """Adds an epoch time for each of some classes and cells, a start-up by type and workers."""
        for (name, cell), epoch in seconds.items():
            self._timings.add_epochs(self._placed(name, cell), (epoch,))
        for where, startup in startups.items():
            self._timings.add_starts(where, (startup,))

    def expect(self, trial: Digest, turn: int, seen: Mapping[int, Seen]) -> None:
        """Adds the epochs by batch that a trial's recipe is expected to need, without a run."""
        key, recipe = trial.recipe, trial.record.recipe
        history = History(key, recipe, turn, self._noise_scales, reported=turn, expected=seen)
        self.recipes[key], self.epochs[key] = history, history.epochs
        self.violation = max(self.violation, history.epochs.violation)

    def of_class(self, name: str) -> "Tally":
        """Returns one that holds the recipes of a class alone; it is only read."""
        if not self._space.affects_time:
            return self
        other, class_of = duplicate(self), self._space.time_class
        other.recipes = {k: h for k, h in self.recipes.items() if class_of(h.recipe) == name}
        other.best, other.own = {}, {}
        runs = (runs for history in other.recipes.values() for runs in history.runs.values())
        for hits in (some.hits for some in runs if some.hits is not None):
            other.best[hits.batch_size] = min(
                hits, other.best.get(hits.batch_size, hits), key=_needed
            )
            for cell, seconds in hits.own.items():
                if seconds <= self._limit:
                    other.own[cell] = min(hits, other.own.get(cell, hits), key=_needed)
        return other

    def tried(self, recipe: str | None) -> Bools:
        """Tells whether a recipe runs or reported in each cell, shape (cells,)."""
        tried = np.zeros(len(self._space.cells), dtype=np.bool_)
        if recipe in self.recipes:
            tried[list(self.recipes[recipe].tried)] = True
        return tried

    def hits(self, batch_size: int, recipe: str) -> Hits | None:
        """Returns what runs of a recipe at a batch say that reached the target."""
        runs = self.runs(batch_size, recipe)
        return None if runs is None else runs.hits

    def runs(self, batch_size: int, recipe: str | None) -> Runs | None:
        """Returns what the runs of a recipe at a batch say, None where none reported."""
        history = None if recipe is None else self.recipes.get(recipe)
        return None if history is None else history.runs.get(batch_size)

    def _add_times(self, trial: Digest) -> None:
        record = trial.record
        name = self._space.time_class(record.recipe)
        self._timings.add(
            trial, lambda n: self._placed(name, resized(self._space, record.allocation, n))
        )

    def _placed(self, name: str, cell: Allocation) -> tuple[str, int] | None:
        place = self._cells.index.get(cell)
        return None if place is None else (name, place)

    def _add_run(self, trial: Digest, turn: int) -> None:
        key, recipe = trial.recipe, trial.record.recipe
        place = self._cells.index.get(trial.record.allocation)
        before = self.recipes.get(key) or History(key, recipe, turn, self._noise_scales)
        history = self.recipes[key] = before.plus(trial, turn, place, self._limit)
        if trial.epochs is not None:
            epochs = self.epochs[key] = history.epochs
            self.violation = max(self.violation, epochs.violation)  # more runs never lower it
        hits = self.hits(trial.record.allocation.batch_size, key)
        if trial.reached is None or hits is None:
            return
        self._unshare()
        self.is_delivered |= trial.seconds_to_target <= self._limit
        self.best[hits.batch_size] = self._fewest(self.best.get(hits.batch_size), hits, None)
        for cell, seconds in hits.own.items():
            if seconds <= self._limit:
                self.own[cell] = self._fewest(self.own.get(cell), hits, cell)

    def _fewest(self, now: Hits | None, hits: Hits, cell: Allocation | None) -> Hits:
        """Returns those with the fewest epochs once some have changed, of all or of a cell."""
        if now is None or _needed(hits) <= _needed(now):
            return hits
        if now.recipe != hits.recipe:
            return now
        batch = hits.batch_size
        rivals = (h.runs[batch].hits for h in self.recipes.values() if batch in h.runs)
        return min(
            (
                rival
                for rival in rivals
                if rival and (cell is None or rival.own.get(cell, math.inf) <= self._limit)
            ),
            key=_needed,
        )


def _needed(hits: Hits) -> tuple[float, int]:
    """Ranks runs by their epochs, equal ones by which came first."""
    return hits.mid, hits.first
