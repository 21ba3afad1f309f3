"""What a session knows at one moment, and what is worth doing by that."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from raycosttune.core.abilities import Abilities
from raycosttune.core.book import Book
from raycosttune.core.choice import experiments, has_recipes, is_over, ranking, still_open
from raycosttune.core.decision import Continue, Decision
from raycosttune.core.experiment import Experiment
from raycosttune.core.going import going
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.likely import likely_gap
from raycosttune.core.limits import hopeless
from raycosttune.core.metric_surface import MetricSurface
from raycosttune.core.node_type import Free
from raycosttune.core.observation import TrialRecord
from raycosttune.core.planner import Planner
from raycosttune.core.prediction import Prediction
from raycosttune.core.profile import Profile
from raycosttune.core.profiling import UNLIMITED, Left, choose_profile
from raycosttune.core.proposer import Proposer
from raycosttune.core.stopping import decide
from raycosttune.core.value import read_real
from raycosttune.core.verdict import lost
from raycosttune.core.wish import Wish, wished
from raycosttune.errors import InvalidGoalError, InvalidSpaceError


class Moment:
    """Works out each answer when it is first asked for, and once.

    Args:
        known: What the records say.
        proposer: Proposes the other hyperparameters.
        abilities: What whoever drives the session can do.
        wishes: What a user wants run.
        before: The moment whose fits `known` rests on, None for its own.
    """

    def __init__(
        self,
        known: Knowledge,
        proposer: Proposer,
        abilities: Abilities,
        wishes: Sequence[Wish] = (),
        before: "Moment | None" = None,
    ) -> None:
        self.known = known
        self._before = before
        self._proposer, self._abilities, self._wishes = proposer, abilities, wishes
        self._profiles: dict[tuple[object, Left], Profile | None] = {}

    @cached_property
    def forecast(self) -> Planner | None:
        """Tells what is likely of each run, where an epoch time is known."""
        if not self.known.cells or self.known.time.is_empty:
            return None
        recipes, can_resize = has_recipes(self._proposer), self._abilities.resize
        return Planner(self.known, recipes=recipes, can_resize=can_resize)

    @property
    def likely(self) -> float | None:
        """What an untried cell is likely to save at most, None without a plan to save on."""
        incumbent = self.known.incumbent
        if incumbent is None or self.forecast is None:
            return None
        return likely_gap(self.forecast.outlook(incumbent.recipe), incumbent)

    @cached_property
    def surface(self) -> MetricSurface | None:
        """What is likely of the metric, None before a value of it and an epoch time are known.

        It has the recipe of the plan, or else of the run that came nearest to the target.
        """
        if self.forecast is None or not self.known.tally.has_values:
            return None
        plan, told = self.known.incumbent, (each for each in self.known.digests if each.gaps)
        best = plan or min(told, key=lambda trial: min(gap for _, gap in trial.gaps))
        return MetricSurface(self.forecast.outlook(best.recipe))

    def metric_at(self, batch_size: int, epochs: float) -> Prediction | None:
        """Predicts the best value that a run at a batch reports within some epochs.

        Args:
            batch_size: Global batch.
            epochs: How many.

        Returns:
            Median and 90 % interval, infinite where it is open: above, as a run ends there, where
            the target may be reached (for a metric that falls, below); see MetricSurface. A value
            that breaks a bound of the goal counts as not reached.
            None before a value of the metric and an epoch time are known.

        Raises:
            InvalidSpaceError: If the batch is none of those that may still be tried.
            InvalidGoalError: If the epochs are no positive number.
            InvalidCostError: If the cost metric fails.
        """
        batches = sorted({cell.batch_size for cell in self.known.cells})
        if batch_size not in batches:
            left = batches or "which are none"
            msg = f"batch_size must be one of those left to try, {left}, got {batch_size!r}"
            raise InvalidSpaceError(msg)
        number = read_real(epochs)
        if number is None or number <= 0:
            msg = f"epochs must be a positive number, got {epochs!r}"
            raise InvalidGoalError(msg)
        return None if self.surface is None else self.surface.predict(batch_size, number)

    @property
    def planner(self) -> Planner | None:
        """Plans the whole bill, where profiles can be made and an epoch time is known."""
        return self.forecast if self._profiles_pay else None

    @property
    def _profiles_pay(self) -> bool:
        """Whether the whole bill is planned; limits in other units it doesn't know."""
        return self._abilities.profile and not self.known.goal.budgets

    def decide(self, record: TrialRecord, free_workers: Free, *, can_resize: bool) -> Decision:
        """Decides on a trial after its latest report.

        Args:
            record: The trial.
            free_workers: Workers that it may have beside its own, None for any number.
            can_resize: Whether its workers can be changed.
        """
        able = can_resize and self._abilities.resize
        goes = going(record, self.known.space, free_workers=free_workers, can_resize=able)
        return decide(self.known, record, goes, planner=self.planner, forecast=self.forecast)

    @cached_property
    def lost(self) -> str:
        """Why no further trial makes sense, or nothing."""
        recipes = has_recipes(self._proposer)
        return hopeless(self.known) or lost(self.known, self.planner, recipes=recipes)

    @cached_property
    def ranked(self) -> Sequence[Experiment]:
        """The runs to make: those that the user wants, then those that pay, best first."""
        paying = self._paying
        if not self._wishes or is_over(self.known):
            return paying
        return [*wished(self.known, self._wishes, paying), *paying]

    @cached_property
    def places(self) -> Sequence[int]:
        """Places of the cells of `ranked` in the space."""
        return [self.known.grid.index[run.allocation] for run in self.ranked]

    @property
    def _paying(self) -> Sequence[Experiment]:
        before = self._before
        if before is None or not before.ranked:
            return experiments(self.known, self._proposer, self.planner)
        if self.known.live or self.planner is not None:
            return ranking(self.known, self._proposer, self.planner)
        return still_open(self.known, before.ranked, before.places)

    def profile(self, free_workers: Free, left: Left = UNLIMITED) -> Profile | None:
        """Returns the profile to make, None where none can be made or pays.

        Args:
            free_workers: Workers that are free, None for enough.
            left: What the sweep may still cost and take.
        """
        if not self._profiles_pay:
            return None
        if self._before is not None:
            return self._before.profile(free_workers, left)
        by_type = free_workers if isinstance(free_workers, Mapping) else {"": free_workers}
        key = tuple(by_type.items()), left
        if key not in self._profiles:
            made = choose_profile(self.known, self.planner, free_workers, left)
            self._profiles = {key: made}
        return self._profiles[key]


class Moments:
    """Keeps the present moment, by all that is known and as runs that go on are weighed.

    Args:
        book: What the sweep was told.
        proposer: See `Moment`, as the others.
        abilities: What whoever drives the session can do.
        wishes: What a user wants run.
    """

    def __init__(
        self, book: Book, proposer: Proposer, abilities: Abilities, wishes: Sequence[Wish]
    ) -> None:
        self._book, self._driven, self._wishes = book, (proposer, abilities), wishes
        self._exact: Moment | None = None
        self._before: Moment | None = None
        self._weighed: Moment | None = None

    @property
    def exact(self) -> Moment:
        """The moment of all that is known, worked out when first read after a change."""
        if self._exact is None or self._exact.known is not self._book.known:
            self._exact = Moment(self._book.known, *self._driven, self._wishes)
        return self._exact

    @property
    def weighed(self) -> Moment:
        """The same, by the fits of a `Basis` where one holds."""
        if (settled := self._book.settled) is None:
            return self.exact
        if self._before is None or self._before.known is not settled.known:
            self._before = Moment(settled.known, *self._driven)
        if self._weighed is None or self._weighed.known.tally is not self._book.known.tally:
            rests = settled.rests(self._book.known)
            self._weighed = Moment(rests, *self._driven, self._wishes, self._before)
        return self._weighed

    def decide(self, record: TrialRecord, free_workers: Free, *, can_resize: bool) -> Decision:
        """Decides on a trial; only all that is known may stop or move it. See Moment.decide."""
        decision = self.weighed.decide(record, free_workers, can_resize=can_resize)
        if isinstance(decision, Continue) or self.weighed is self.exact:
            return decision
        return self.exact.decide(record, free_workers, can_resize=can_resize)
