"""The one stateful object: asked for trials, told what they show, asked what to do."""

import math
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from raycosttune.core.choice import choose_recipe, experiments, nothing_left
from raycosttune.core.cost import CostMetric, NodeHours, check_cost_metric, checked_cost
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
from raycosttune.core.digest import Digests
from raycosttune.core.estimate import Estimate, estimate
from raycosttune.core.experiment import Experiment
from raycosttune.core.explain import explain
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.limits import hopeless, is_affordable, reached_limit
from raycosttune.core.observation import Ended, Observation, Recipe, Report, TrialRecord
from raycosttune.core.plan import NoPlan, Plan, make_plan
from raycosttune.core.proposer import NoHyperparameters, Proposer
from raycosttune.core.rehearsal import NumberedRecipes
from raycosttune.core.space import Space
from raycosttune.core.state import (
    VERSION,
    check_version,
    record_from_data,
    record_to_data,
)
from raycosttune.core.stopping import decide
from raycosttune.core.value import checked, read_amount
from raycosttune.errors import (
    InvalidCostError,
    InvalidGoalError,
    InvalidStateError,
    RayCostTuneError,
)


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
        clock: Callable[[], float],
    ) -> None:
        if goal.metric is None or goal.mode is None:
            msg = 'Goal.metric and Goal.mode must be set: metric="accuracy", mode="max"'
            raise InvalidGoalError(msg)
        self.space = space
        self.goal = goal
        self.cost: CostMetric = cost if cost is not None else NodeHours()
        check_cost_metric(self.cost, space.cells)
        self.records: dict[str, TrialRecord] = {}
        self.max_concurrent = max_concurrent
        self._proposer = proposer if proposer is not None else NoHyperparameters()
        self._learning_rate = learning_rate
        self._clock = clock
        self._started = clock()
        self._elapsed_before = 0.0
        self._why: dict[str, str] = {}
        self._known: Knowledge | None = None
        self._digests = Digests(goal)

    @property
    def known(self) -> Knowledge:
        """Everything that the records say, fitted when first read after a change."""
        if self._known is None:
            records = tuple(self.records.values())
            self._known = Knowledge(records, self.space, self.goal, self.cost, self._digests)
        return self._known

    @property
    def live(self) -> list[TrialRecord]:
        """The trials that may still report."""
        return [record for record in self.records.values() if record.is_live]

    @property
    def spent(self) -> float:
        """What all trials have cost up to their last reports, in the cost's unit."""
        return math.fsum(
            checked_cost(self.cost, record.allocation, record.seconds)
            for record in self.records.values()
        )

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
            if not self.records:
                raise
            return Finished(str(error), is_failure=True)

    def _answer(self, trial_id: str, free_workers: int | None) -> Answer:
        if trial_id in self.records:
            return self._run(self.records[trial_id], self._why.get(trial_id, "restored"))
        if reason := self._limit() or hopeless(self.known):
            return Finished(reason)
        live = self.live
        limit = self.max_concurrent
        if self.known.incumbent is None and limit is None:
            limit = 1
        if live and limit is not None and len(live) >= limit:
            return Wait(f"{len(live)} trials run")
        choices = [choice for choice in self._experiments() if self._is_affordable(choice)]
        if live and choices and free_workers is not None:
            needed = choices[0].allocation.workers
            if needed > free_workers:
                return Wait(f"{needed} workers are not free")
        room = math.inf if free_workers is None else free_workers
        fitting = [choice for choice in choices if choice.allocation.workers <= room]
        for choice in fitting or choices:
            recipe = choose_recipe(self.known, choice, self._proposer)
            if recipe is not None:
                return self._start(trial_id, choice, recipe)
        reason = nothing_left(self.known)
        return Wait(reason) if live else Finished(reason)

    def tell(self, trial_id: str, observation: Observation) -> bool:
        """Takes in what a trial showed.

        Returns:
            Whether it was new: not so for an unknown or ended trial, or a report of an
            attempt and epoch that is known.
        """
        record = self.records.get(trial_id)
        if record is None or not record.is_live:
            return False
        match observation:
            case Report():
                cleaned = observation.cleaned()
                seen = {(report.attempt, report.epoch) for report in record.reports}
                if (cleaned.attempt, cleaned.epoch) in seen:
                    return False
                record.reports.append(cleaned)
            case Ended():
                record.ended = observation.cleaned()
            case _:
                assert_never(observation)
        self._known = None
        return True

    def decide(self, trial_id: str) -> Decision:
        """Decides whether a trial runs on; an unknown one does."""
        record = self.records.get(trial_id)
        if record is None or not record.is_live or record.allocation not in self.space.cells:
            return Continue()
        try:
            decision = decide(self.known, record)
            if isinstance(decision, Continue) and (reason := self._limit()):
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
        proposer, most = self._proposer, self.max_concurrent
        if not has_own_recipes and not isinstance(proposer, NoHyperparameters):
            proposer = NumberedRecipes()
        args = self.space, self.goal
        copy = Session(*args, cost=self.cost, proposer=proposer, max_concurrent=most, clock=clock)
        copy.load_state(self.state())
        return copy

    def explain(self) -> str:
        """Says what was tried and why, what comes next, and the plan."""
        choices = [choice for choice in self._experiments() if self._is_affordable(choice)]
        ahead = f"it {choices[0].why}" if choices else nothing_left(self.known)
        ahead = self._limit() or hopeless(self.known) or ahead
        return explain(self.known, self._why, ahead, self.plan())

    def state(self) -> dict[str, Any]:
        """Returns everything that is not an argument, as JSON-able data."""
        return {
            "version": VERSION,
            "elapsed_seconds": self.elapsed_seconds,
            "records": [record_to_data(record) for record in self.records.values()],
            "why": dict(self._why),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved state.

        Raises:
            InvalidStateError: If the state can't be read; then nothing is changed.
        """
        check_version(state)
        try:
            records = [record_from_data(data) for data in state["records"]]
            elapsed = checked(state, "elapsed_seconds", read_amount)
            why = {str(key): str(value) for key, value in state["why"].items()}
        except InvalidStateError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            msg = f"a state must have records, elapsed_seconds and why, got {error!r}"
            raise InvalidStateError(msg) from error
        self.records = {record.trial_id: record for record in records}
        self._elapsed_before, self._started = elapsed, self._clock()
        self._why = why
        self._known = None

    def adopt(self, record: TrialRecord, why: str = "was found in the journal") -> None:
        """Takes in a trial that a journal knows and this session does not."""
        self.records.setdefault(record.trial_id, record)
        self._why.setdefault(record.trial_id, why)
        self._known = None

    def _start(self, trial_id: str, experiment: Experiment, recipe: Recipe) -> Run:
        record = TrialRecord(trial_id, experiment.allocation, recipe, len(self.records))
        run = self._run(record, experiment.why)
        self.records[trial_id] = record
        self._why[trial_id] = experiment.why
        self._known = None
        return run

    def _run(self, record: TrialRecord, why: str) -> Run:
        recipe = record.recipe
        if self._learning_rate is not None:
            recipe = self._learning_rate.apply(recipe, record.allocation.batch_size)
        return Run(record.allocation, recipe, why)

    def _experiments(self) -> list[Experiment]:
        return experiments(self.known, self._proposer)

    def _limit(self) -> str:
        return reached_limit(self.known, spent=self.spent, elapsed_seconds=self.elapsed_seconds)

    def _is_affordable(self, experiment: Experiment) -> bool:
        return is_affordable(
            self.known,
            experiment,
            spent=self.spent,
            elapsed_seconds=self.elapsed_seconds,
        )
