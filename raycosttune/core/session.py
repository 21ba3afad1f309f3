"""The one stateful object: asked for trials, told what they show, asked what to do."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raycosttune.core.abilities import Abilities
from raycosttune.core.book import Book
from raycosttune.core.choice import Start, choose, crowd, nothing_left, with_recipe
from raycosttune.core.cost import CostMetric, NodeHours
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.decision import (
    Answer,
    Continue,
    Decision,
    Finished,
    Run,
    Stop,
    StopCause,
    Wait,
)
from raycosttune.core.estimate import Estimate, estimate
from raycosttune.core.experiment import Experiment
from raycosttune.core.explain import explain
from raycosttune.core.goal import Goal, check_named
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.limits import affordable, overdue, reached_limit, used_up
from raycosttune.core.moment import Moment, Moments
from raycosttune.core.node_type import Free
from raycosttune.core.observation import TrialRecord
from raycosttune.core.pareto import Tradeoff, pareto
from raycosttune.core.plan import NoPlan, Plan, cut_short, make_plan, unbegun
from raycosttune.core.prediction import Prediction
from raycosttune.core.prior import Prior
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.profiling import left_of
from raycosttune.core.proposer import NoHyperparameters, Proposer
from raycosttune.core.rehearsal import NumberedRecipes
from raycosttune.core.space import Space
from raycosttune.core.state import Writer, session_from_data, session_to_data
from raycosttune.core.stopping import decide_without_cost
from raycosttune.core.wish import Wish
from raycosttune.errors import InvalidCostError, RayCostTuneError


class Session(Book):
    """Chooses workers and batch for trials, and judges them.

    Args:
        space: The legal cells.
        goal: Target and limits, with metric and mode set.
        cost: What a run costs; NodeHours by default.
        proposer: Proposes the other hyperparameters; none by default.
        learning_rate: How the learning rate follows the batch, if it does.
        max_concurrent: Most trials that run at once while nothing is known to reach the
            target; afterwards as many run as pay beside each other, up to it.
        abilities: What whoever drives the session can do beyond starting and stopping runs.
        wishes: Configurations to run before the session chooses its own.
        prior: What an earlier sweep showed, if anything.
        clock: Returns seconds that never fall.

    Attributes:
        num_samples: Most trials and profiles that its driver begins, infinite for any number.

    Raises:
        InvalidGoalError: If the goal has no metric or mode.
        InvalidCostError: If the cost metric breaks a law of costs.
    """

    def __init__(  # noqa: PLR0913 - all that shapes a sweep
        self,
        space: Space,
        goal: Goal,
        *,
        cost: CostMetric | None = None,
        proposer: Proposer | None = None,
        learning_rate: LearningRate | None = None,
        max_concurrent: int | None = None,
        abilities: Abilities | None = None,
        wishes: Sequence[Wish] = (),
        prior: Prior | None = None,
        clock: Callable[[], float],
    ) -> None:
        check_named(goal)
        metric: CostMetric = cost if cost is not None else NodeHours()
        for each in (metric, *(budget.cost for budget in goal.budgets)):
            check_cost_metric(each, space.cells)
        super().__init__(space, goal, metric, clock, prior)
        self.max_concurrent, self.num_samples = max_concurrent, math.inf
        self._proposer = proposer if proposer is not None else NoHyperparameters()
        self.learning_rate = learning_rate
        self._abilities, self._wishes, self._write = abilities or Abilities(), wishes, Writer()
        self._moments = Moments(self, self._proposer, self._abilities, tuple(wishes))

    @property
    def moment(self) -> Moment:
        """What is known and worth doing now."""
        return self._moments.exact

    @property
    def can_resize(self) -> bool:
        """Whether runs may change their workers."""
        return self._abilities.resize

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
        """Answers what a new trial shall do; the same again for a known trial.

        Args:
            trial_id: Name of the trial.
            free_workers: Workers that the cluster can hold beside the running trials.

        Returns:
            Run, or Wait while something runs, or Finished; also where the cost metric or the
            proposer fails after trials were paid for.

        Raises:
            RayCostTuneError: If the cost metric or the proposer fails before the first trial.
        """
        try:
            return self._answer(trial_id, free_workers)
        except RayCostTuneError as error:
            if self.records or self.profiles:
                return Finished(str(error), is_failure=True)
            raise

    def _answer(self, trial_id: str, free_workers: Free) -> Answer:
        if (known := self._known_answer(trial_id)) is not None:
            return known
        moment = self._moments.weighed
        if reason := self._limit() or moment.lost:
            return Finished(reason)
        if self._abilities.profile and self.live_profiles:
            return Wait("a profile runs")
        if self.live and (reason := crowd(moment.known, self.max_concurrent)):
            return Wait(reason)
        if (profile := self._due_profile(free_workers, moment)) is not None:
            profile = with_recipe(self.known, profile, self._proposer)
            self.profiles[trial_id] = ProfileRecord(trial_id, profile, started=self.elapsed_seconds)
            self._forget()
            return profile
        if not (choices := self._choices(moment)):
            moment = self.moment  # only everything known may say that nothing pays
            choices = self._choices(moment)
        answer = choose(moment.known, choices, self._proposer, free_workers)
        return self._start(trial_id, answer) if isinstance(answer, Start) else answer

    def _known_answer(self, trial_id: str) -> Run | Profile | None:
        if trial_id in self.profiles:
            return self.profiles[trial_id].profile
        record = self.records.get(trial_id)
        return None if record is None else self._run(record, self._why.get(trial_id, "restored"))

    def decide(
        self, trial_id: str, *, free_workers: Free = None, can_resize: bool = True
    ) -> Decision:
        """Decides whether a trial runs on; an unknown one does. See Moment.decide."""
        record = self.records.get(trial_id)
        if record is None or not record.is_live or record.allocation not in self.known.grid.index:
            return Continue()
        try:
            decision = self._moments.decide(record, free_workers, can_resize=can_resize)
            goes_on = self.goal.is_limited and not isinstance(decision, Stop)
            if goes_on and (reason := self._limit()):
                return Stop(StopCause.BUDGET, reason)
        except InvalidCostError:
            return decide_without_cost(self.known, record, self.elapsed_seconds)
        return decision

    def overdue(self, unheard: Mapping[str, float]) -> dict[str, Stop]:
        """Returns what runs beyond a limit without a report, and why; see limits.overdue."""
        try:
            return overdue(self.known, unheard, **self._so_far())
        except InvalidCostError:
            elapsed = self.elapsed_seconds
            return overdue(self.known, unheard, spent=None, elapsed_seconds=elapsed)

    def plan(self) -> Plan | NoPlan:
        """Returns the best configuration so far."""
        try:
            return cut_short(self._plan, self._early)
        except InvalidCostError as error:
            return NoPlan(f"nothing can be compared: {error}", math.nan, self.cost.unit)

    @property
    def _plan(self) -> Plan | NoPlan:
        told = self.known, self.learning_rate, self.spent, self.moment.likely
        return unbegun(make_plan(*told), self.known, lambda: self.ahead)

    @property
    def _early(self) -> str:
        return used_up(self.known, self.num_samples, lambda: self.ahead)

    def estimate(self) -> Estimate:
        """Returns what the sweep has cost, and what is likely and at most still to come.

        Raises:
            InvalidCostError: If the cost metric fails.
        """
        return estimate(self, self._copy)

    def priced(self, cost: CostMetric) -> "Session":
        """Returns a session under another cost that knows the same trials, without reading them.

        The two share their trials: nobody may tell them anything more.

        Raises:
            InvalidCostError: If the cost metric breaks a law of costs.
        """
        told = {"cost": cost, "proposer": self._proposer, "clock": self._age.clock}
        other: Session = self._like(told)
        other.prior, other.learning_rate, other._age = self.prior, self.learning_rate, self._age
        other.num_samples = self.num_samples
        other.records, other.profiles, other._why = self.records, self.profiles, self._why
        other._archive = self._archive.priced(cost, self.records)
        return other

    def _copy(self, clock: Callable[[], float], *, has_own_recipes: bool) -> "Session":
        """Returns a session that knows the same; recipes may be mere numbers."""
        proposer = self._proposer
        if not has_own_recipes and not isinstance(proposer, NoHyperparameters):
            proposer = NumberedRecipes()
        told = {"cost": self.cost, "prior": self.prior, "proposer": proposer, "clock": clock}
        copy = self._like(told)
        copy.load_state(self.state())
        return copy

    def _like(self, other: dict[str, Any]) -> "Session":
        """Returns an empty session that may do the same, with some other arguments."""
        same: dict[str, Any] = {"abilities": self._abilities, "wishes": self._wishes}
        most = self.max_concurrent
        return Session(self.space, self.goal, max_concurrent=most, **same, **other)

    @property
    def ahead(self) -> Experiment | Profile | str:
        """The run or profile that comes next, or why none does."""
        what = self._limit() or self.moment.lost or self._due_profile(None, self.moment)
        return what or next(iter(self._choices(self.moment)), nothing_left(self.known))

    def explain(self) -> str:
        """Says what was tried and why, what comes next, and the plan."""
        if math.isnan((plan := self.plan()).spent):  # the cost metric fails
            return str(plan)
        told = self.ahead, self._plan, self.prior, self.moment.surface
        return explain(self.known, self._why, *told, early=self._early)

    def pareto(self) -> tuple[Tradeoff, ...]:
        """Returns what no other choice beats in cost, time and metric; raises as `estimate`."""
        return pareto(self.known, self.learning_rate, self.moment.surface)

    def metric_at(self, batch_size: int, epochs: float) -> Prediction | None:
        """Predicts the best value that a run reports within some epochs; see Moment.metric_at."""
        return self.moment.metric_at(batch_size, epochs)

    def state(self) -> dict[str, Any]:
        """Returns everything that is not an argument, as JSON-able data that nobody may change."""
        records = map(self._write, self.records.values())
        told = records, self.profiles.values(), self._why, self.elapsed_seconds
        basis = self._archive.basis
        return session_to_data(*told, None if basis is None else basis.data)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved state.

        Raises:
            InvalidStateError: If the state can't be read; then nothing is changed.
        """
        read = session_from_data(state)
        self._open(read.records, read.profiles, read.why)
        if read.basis is not None:
            self._archive.settle(self.known, *read.basis)
        self._age.resume(read.elapsed_seconds)

    def _start(self, trial_id: str, start: Start) -> Run:
        cell, why = start.experiment.allocation, start.experiment.why
        turn, since = len(self.records), self.elapsed_seconds
        record = TrialRecord(trial_id, cell, start.recipe, turn, started=since)
        run = self._run(record, why)
        self.records[trial_id], self._why[trial_id] = record, why
        self._forget()
        return run

    def _run(self, record: TrialRecord, why: str) -> Run:
        recipe = dict(record.recipe)  # the caller may change its own
        if self.learning_rate is not None:
            recipe = self.learning_rate.apply(recipe, record.allocation.batch_size)
        return Run(record.allocation, recipe, why)

    def _due_profile(self, free_workers: Free, moment: Moment) -> Profile | None:
        left = left_of(self.goal, **self._so_far())
        return None if self.live else moment.profile(free_workers, left)

    def _choices(self, moment: Moment) -> list[Experiment]:
        """Ranks the runs that pay and that the sweep can still afford."""
        return affordable(moment.known, moment.ranked, **self._so_far())

    def _limit(self) -> str:
        return reached_limit(self.known, **self._so_far())

    def _so_far(self) -> dict[str, float]:
        return {"spent": self.spent, "elapsed_seconds": self.elapsed_seconds}
