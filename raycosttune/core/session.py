"""The one stateful object: asked for trials, told what they show, asked what to do."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from raycosttune.core.abilities import Abilities
from raycosttune.core.archive import Archive
from raycosttune.core.choice import Start, choose, crowd, nothing_left
from raycosttune.core.cost import CostMetric, NodeHours, check_cost_metric
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
from raycosttune.core.explain import FOUND, explain
from raycosttune.core.goal import Goal, check_named
from raycosttune.core.held import present
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.limits import is_affordable, reached_limit
from raycosttune.core.moment import Moment
from raycosttune.core.observation import Observation, TrialRecord
from raycosttune.core.plan import NoPlan, Plan, make_plan
from raycosttune.core.planner import Planner
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.profiling import left_of
from raycosttune.core.proposer import NoHyperparameters, Proposer
from raycosttune.core.rehearsal import NumberedRecipes
from raycosttune.core.space import Space
from raycosttune.core.state import Writer, session_from_data, session_to_data
from raycosttune.core.stopping import decide
from raycosttune.errors import InvalidCostError, RayCostTuneError


class Session:
    """Chooses workers and batch for trials, and judges them.

    Args:
        space: The legal cells.
        goal: Target and limits, with metric and mode set.
        cost: What a run costs; NodeHours by default.
        proposer: Proposes the other hyperparameters; none by default.
        learning_rate: How the learning rate follows the batch, if it does.
        max_concurrent: Most trials that run at once while nothing is known to reach the
            target; afterwards as many run as pay for themselves, up to it where given.
        abilities: What whoever drives the session can do beyond starting and stopping runs.
        clock: Returns seconds that never fall.

    Raises:
        InvalidGoalError: If the goal has no metric or mode.
        InvalidCostError: If the cost metric breaks a law of costs.
    """

    def __init__(
        self,
        space: Space,
        goal: Goal,
        *,
        cost: CostMetric | None = None,
        proposer: Proposer | None = None,
        learning_rate: LearningRate | None = None,
        max_concurrent: int | None = None,
        abilities: Abilities | None = None,
        clock: Callable[[], float],
    ) -> None:
        check_named(goal)
        self.space = space
        self.goal = goal
        self.cost: CostMetric = cost if cost is not None else NodeHours()
        check_cost_metric(self.cost, space.cells)
        self.records: dict[str, TrialRecord] = {}
        self.profiles: dict[str, ProfileRecord] = {}
        self.max_concurrent = max_concurrent
        self._proposer = proposer if proposer is not None else NoHyperparameters()
        self._learning_rate = learning_rate
        self._clock = clock
        self._started = clock()
        self._elapsed_before = 0.0
        self._why: dict[str, str] = {}
        self._abilities = abilities if abilities is not None else Abilities()
        self._moment: Moment | None = None
        self._archive, self._write = Archive(space, goal, self.cost), Writer()

    @property
    def moment(self) -> Moment:
        """What is known and worth doing now, worked out when first read after a change."""
        if self._moment is None:
            known = self._archive.known(self.records, tuple(self.profiles.values()))
            self._moment = Moment(known, self._proposer, self._abilities)
        return self._moment

    @property
    def known(self) -> Knowledge:
        """Everything that the records say."""
        return self.moment.known

    @property
    def planner(self) -> Planner | None:
        """Plans the whole bill, where profiles can be made and an epoch time is known."""
        return self.moment.planner

    @property
    def live(self) -> list[TrialRecord]:
        """The trials that may still report; profiles are in `live_profiles`."""
        return [trial.record for trial in self.known.live]

    @property
    def live_profiles(self) -> list[ProfileRecord]:
        """The profiles that have neither shown anything nor ended."""
        return [record for record in self.profiles.values() if record.is_live]

    @property
    def committed_workers(self) -> int:
        """Workers that running trials and profiles hold, as far as they have reported."""
        trials = (present(record, self.space).workers for record in self.live)
        profiles = (record.profile.held.workers for record in self.live_profiles)
        return sum(trials) + sum(profiles)

    @property
    def spent(self) -> float:
        """What all trials have cost up to their last reports, in the cost's unit."""
        return self._archive.spent(self.records, tuple(self.profiles.values()))

    @property
    def elapsed_seconds(self) -> float:
        """Wall time of the sweep; time between a crash and a restore is not counted."""
        return self._elapsed_before + self._clock() - self._started

    def ask(self, trial_id: str, *, free_workers: int | None = None) -> Answer:
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
            if not self.records and not self.profiles:
                raise
            return Finished(str(error), is_failure=True)

    def _answer(self, trial_id: str, free_workers: int | None) -> Answer:
        if (known := self._known_answer(trial_id)) is not None:
            return known
        if reason := self._limit() or self.moment.lost:
            return Finished(reason)
        if self._abilities.profile and self.live_profiles:
            return Wait("a profile runs")
        if self.live and (reason := crowd(self.known, self.max_concurrent)):
            return Wait(reason)
        if (profile := self._due_profile(free_workers)) is not None:
            self.profiles[trial_id] = ProfileRecord(trial_id, profile)
            self._moment = None
            return profile
        answer = choose(self.known, self._choices(), self._proposer, free_workers)
        return self._start(trial_id, answer) if isinstance(answer, Start) else answer

    def _known_answer(self, trial_id: str) -> Run | Profile | None:
        if trial_id in self.profiles:
            return self.profiles[trial_id].profile
        record = self.records.get(trial_id)
        return None if record is None else self._run(record, self._why.get(trial_id, "restored"))

    def tell(self, trial_id: str, observation: Observation) -> bool:
        """Takes in what a trial showed, or the end of a profile that showed nothing.

        Returns:
            Whether it was new: not so for an unknown or ended trial, or a report of an
            attempt and epoch that is known.
        """
        record = self.records.get(trial_id) or self.profiles.get(trial_id)
        is_new = record is not None and record.take(observation)
        if is_new:
            self._moment = None
        return is_new

    def tell_profile(self, trial_id: str, profiled: Profiled) -> bool:
        """Takes in what a profile showed, which ends it; tells whether it was new."""
        record = self.profiles.get(trial_id)
        is_new = record is not None and record.show(profiled)
        if is_new:
            self._moment = None
        return is_new

    def decide(self, trial_id: str) -> Decision:
        """Decides whether a trial runs on; an unknown one does."""
        record = self.records.get(trial_id)
        if record is None or not record.is_live or record.allocation not in self.space.cells:
            return Continue()
        try:
            decision = decide(self.known, record, self.planner)
            if not isinstance(decision, Stop) and (reason := self._limit()):
                return Stop(StopCause.BUDGET, reason)
        except InvalidCostError:
            return Continue()  # what runs is paid for: let it reach the target
        return decision

    def plan(self) -> Plan | NoPlan:
        """Returns the best configuration so far."""
        try:
            return make_plan(self.known, self._learning_rate, self.spent)
        except InvalidCostError as error:
            return NoPlan(f"nothing can be compared: {error}", math.nan, self.cost.unit)

    def estimate(self) -> Estimate:
        """Returns what the sweep has cost, and what is likely and at most still to come.

        Raises:
            InvalidCostError: If the cost metric fails.
        """
        return estimate(self, self._copy)

    def _copy(self, clock: Callable[[], float], *, has_own_recipes: bool) -> "Session":
        """Returns a session that knows the same; recipes may be mere numbers."""
        proposer = self._proposer
        if not has_own_recipes and not isinstance(proposer, NoHyperparameters):
            proposer = NumberedRecipes()
        copy = Session(self.space, self.goal, cost=self.cost, proposer=proposer, clock=clock)
        copy.max_concurrent, copy._abilities = self.max_concurrent, self._abilities
        copy.load_state(self.state())
        return copy

    @property
    def ahead(self) -> Experiment | Profile | str:
        """The run or profile that comes next, or why none does."""
        what = self._limit() or self.moment.lost or self._due_profile(None)
        return what or next(iter(self._choices()), nothing_left(self.known))

    def explain(self) -> str:
        """Says what was tried and why, what comes next, and the plan."""
        return explain(self.known, self._why, self.ahead, self.plan())

    def state(self) -> dict[str, Any]:
        """Returns everything that is not an argument, as JSON-able data that nobody may change."""
        records = map(self._write, self.records.values())
        return session_to_data(records, self.profiles.values(), self._why, self.elapsed_seconds)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved state.

        Raises:
            InvalidStateError: If the state can't be read; then nothing is changed.
        """
        read = session_from_data(state)
        self.records, self.profiles, self._why = read.records, read.profiles, read.why
        self._elapsed_before, self._started = read.elapsed_seconds, self._clock()
        self._archive = Archive(self.space, self.goal, self.cost)
        self._moment = None

    def adopt(self, record: TrialRecord, why: str = FOUND) -> None:
        """Takes in a trial that a journal knows and this session does not."""
        self.records.setdefault(record.trial_id, record)
        self._why.setdefault(record.trial_id, why)
        self._moment = None

    def _start(self, trial_id: str, start: Start) -> Run:
        cell, why = start.experiment.allocation, start.experiment.why
        record = TrialRecord(trial_id, cell, start.recipe, len(self.records))
        run = self._run(record, why)
        self.records[trial_id], self._why[trial_id] = record, why
        self._moment = None
        return run

    def _run(self, record: TrialRecord, why: str) -> Run:
        recipe = record.recipe
        if self._learning_rate is not None:
            recipe = self._learning_rate.apply(recipe, record.allocation.batch_size)
        return Run(record.allocation, recipe, why)

    def _due_profile(self, free_workers: int | None) -> Profile | None:
        if self.live:
            return None
        left = left_of(self.goal, spent=self.spent, elapsed_seconds=self.elapsed_seconds)
        return self.moment.profile(free_workers, left)

    def _choices(self) -> list[Experiment]:
        """Ranks the runs that pay and that the sweep can still afford."""
        so_far = {"spent": self.spent, "elapsed_seconds": self.elapsed_seconds}
        ranked = self.moment.ranked
        return [choice for choice in ranked if is_affordable(self.known, choice, **so_far)]

    def _limit(self) -> str:
        return reached_limit(self.known, spent=self.spent, elapsed_seconds=self.elapsed_seconds)
