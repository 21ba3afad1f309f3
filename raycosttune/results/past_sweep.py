"""An earlier sweep, read from its journal: asked again under another cost, or used for another."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

from raycosttune.core.cost import CostMetric, NodeHours
from raycosttune.core.decision import FOUND
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.measured import space_of
from raycosttune.core.observation import EndCause, Ended, TrialRecord
from raycosttune.core.pareto import Tradeoff
from raycosttune.core.plan import NoPlan
from raycosttune.core.prior import Prior
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.core.value import read_real
from raycosttune.errors import (
    InvalidCostError,
    InvalidGoalError,
    InvalidStateError,
    InvalidWorkloadError,
)
from raycosttune.results.cost import unknown_metric
from raycosttune.results.header import (
    read_header,
    read_header_cost,
    read_header_rate,
    read_header_space,
    read_samples,
)
from raycosttune.results.journal import FOLDER, read_rows
from raycosttune.results.keys import SearchKeys, read_keys
from raycosttune.results.known import read_known
from raycosttune.results.past_plan import PastPlan
from raycosttune.results.replay import merge_rows, own_reports, read_why
from raycosttune.results.rows import Row

ANY = Space((1,), (1,))


@dataclass(frozen=True)
class PastSweep:
    """Is a sweep as its journal tells it; no trial is run and nothing is written.

    Attributes:
        path: The journal.
        goal: Its goal.
        unit: Unit of its cost.
        space: What it might choose; of an older journal, what it tried.
        learning_rate: How the learning rate followed the batch, if it did.
        samples: Samples of the job that it is used for over those of its own; see `scaled`.
        is_elsewhere: Whether that job runs on other machines; see `on_other_machines`.
        records: Its trials.
        profiles: Its profiles.
        earlier: What it began with, None where that was nothing.
        num_samples: Most trials and profiles that Tune would begin, infinite for any number.
        keys: Where its search space has workers, batch and the rest, None for older journals.
        cost: Its cost metric, None where that is none of this package's.
        why: Why each trial was started, by its id.
    """

    path: Path
    goal: Goal
    unit: str | None
    space: Space
    learning_rate: LearningRate | None
    samples: float = 1.0
    is_elsewhere: bool = False
    records: tuple[TrialRecord, ...] = field(default=(), repr=False)
    profiles: tuple[ProfileRecord, ...] = field(default=(), repr=False)
    earlier: Prior | None = field(default=None, repr=False)
    keys: SearchKeys | None = field(default=None, repr=False)
    num_samples: float = math.inf
    cost: CostMetric | None = field(default=None, repr=False)
    why: Mapping[str, str] = field(default_factory=dict, repr=False)

    def session(self, *, cost: CostMetric | None = None, goal: Goal | None = None) -> Session:
        """Returns a session that knows what the sweep measured.

        Args:
            cost: What a run costs; the sweep's own by default, which must be given where it
                is none of this package's: a journal holds no code.
            goal: Another goal than the sweep's, of the same metric and mode.

        Raises:
            InvalidCostError: If the cost is missing or breaks a law of costs.
            InvalidGoalError: If the goal is of another metric or mode.
            InvalidStateError: If the data or the machines are others than the sweep's: then
                only a new sweep can tell.
        """
        if self.samples != 1 or self.is_elsewhere:
            other = "machines" if self.is_elsewhere else "data"
            msg = (
                f"a plan must be for the data and the machines of its sweep, got other {other} "
                f"@ {self.path}. Begin a sweep on them: CostAwareSearch(goal, known=...)"
            )
            raise InvalidStateError(msg)
        metric = self.metric(cost)
        session = Session(
            self.space,
            self._goal_of(goal),
            cost=metric,
            learning_rate=self.learning_rate,
            prior=self.earlier,
            clock=lambda: 0.0,
        )
        session.num_samples = self.num_samples
        for record in self.records:
            why = self.why.get(record.trial_id, FOUND)
            session.adopt(replace(record, reports=list(record.reports)), why)
        session.profiles.update({record.trial_id: replace(record) for record in self.profiles})
        return session

    def metric(self, cost: CostMetric | None = None) -> CostMetric:
        """Returns the cost that is asked for, or else the sweep's own.

        Raises:
            InvalidCostError: If its journal doesn't hold its own.
        """
        metric = self.cost if cost is None else cost
        if metric is None:
            raise InvalidCostError(unknown_metric(self.unit, f" @ {self.path}"))
        return metric

    def _asked(self, cost: CostMetric | None, goal: Goal | None) -> Session:
        """Returns a session to ask alone; trials are read once, whatever they cost."""
        if goal is not None:
            return self.session(cost=cost, goal=goal)
        return self._own.priced(self.metric(cost))

    @cached_property
    def _own(self) -> Session:
        return self.session(cost=NodeHours())

    def plan(
        self, *, cost: CostMetric | None = None, goal: Goal | None = None
    ) -> PastPlan | NoPlan:
        """Returns the best configuration under another cost or goal; raises as `session` does.

        Its config holds what the search chose. The constants of the search space are in no
        journal: run `{**constants, **plan.config}`.
        """
        plan = self._asked(cost, goal).plan()
        if isinstance(plan, NoPlan):
            return plan
        cell = plan.allocation
        batch = self.space.user_batch(cell)
        keys = self.keys
        config = None if keys is None else keys.config(cell, batch, plan.recipe)
        known = {item.name: getattr(plan, item.name) for item in fields(plan)}
        return PastPlan(**known, config=config)

    def explain(self, *, cost: CostMetric | None = None, goal: Goal | None = None) -> str:
        """Says what the sweep shows under another cost or goal; raises as `session` does."""
        return self._asked(cost, goal).explain()

    def pareto(
        self, *, cost: CostMetric | None = None, goal: Goal | None = None
    ) -> tuple[Tradeoff, ...]:
        """Returns what no choice beats under another cost or goal; raises as `session` does."""
        return self._asked(cost, goal).pareto()

    def scaled(self, samples: float) -> "PastSweep":
        """Returns what the sweep says of the same model on another amount of data.

        Args:
            samples: Samples of the new data over those of the sweep's.

        Raises:
            InvalidStateError: If it is no positive number.
        """
        number = read_real(samples)
        if number is None or number <= 0:
            msg = f"samples must be a positive number, new ones over old ones, got {samples!r}"
            raise InvalidStateError(msg)
        return replace(self, samples=self.samples * number)

    def on_other_machines(self) -> "PastSweep":
        """Returns what the sweep says of the same job on machines of another type.

        The epochs to the target carry over, as the same batches are trained; no time does.
        """
        return replace(self, is_elsewhere=True)

    def prior(self, goal: Goal) -> Prior:
        """Returns what it says for a sweep with this goal.

        Its trials are named after its folder, so that they are no trials of the new one. What
        it began with itself is among them where that was of the same job on the same machines.

        Raises:
            InvalidGoalError: If the goal is of another metric or mode.
        """
        self._goal_of(goal)
        name, broken_off = self.name, Ended(EndCause.STOPPED, "its sweep broke off")
        records = tuple(
            replace(record, trial_id=f"{name}/{record.trial_id}", ended=record.ended or broken_off)
            for record in self.records
        )
        before, profiles = self.earlier, self.profiles
        if before is not None and before.samples == 1 and not before.is_elsewhere:
            records, profiles = (*before.records, *records), (*before.profiles, *profiles)
        return Prior(records, profiles, self.samples, self.is_elsewhere)

    @property
    def name(self) -> str:
        """Name of the sweep's folder."""
        folder = self.path.parent
        return (folder.parent if folder.name == FOLDER else folder).name

    def _goal_of(self, goal: Goal | None) -> Goal:
        if goal is None:
            return self.goal
        ours = self.goal.metric, self.goal.mode
        if (goal.metric or ours[0], goal.mode or ours[1]) != ours:
            msg = (
                f"the goal must be of the metric and mode that the sweep reported, {ours}, got "
                f"{(goal.metric, goal.mode)} @ {self.path}"
            )
            raise InvalidGoalError(msg)
        return replace(goal, metric=ours[0], mode=ours[1])


def read_sweep(path: Path | str) -> PastSweep:
    """Reads an earlier sweep.

    Args:
        path: The experiment's folder, or its journal.

    Raises:
        InvalidStateError: If there is no journal, or it can't be read.
    """
    return past_of(*read_rows(path))


def past_of(journal: Path, rows: Sequence[Row]) -> PastSweep:
    """Makes a sweep of its journal's rows; raises as `read_sweep` does."""
    try:
        header = next((row for row in rows if row["row"] == "header"), {})
        goal, unit = read_header(header)
        space, rate = read_header_space(header), read_header_rate(header)
        cost = read_header_cost(header)
        earlier, keys = read_known(rows), read_keys(header)
        told = Session(ANY, goal, clock=lambda: 0.0)  # records need no cell
    except (InvalidGoalError, InvalidStateError) as error:
        msg = f"the journal {journal} can't be read: {error}"
        raise InvalidStateError(msg) from error
    merge_rows(told, rows)
    for trial_id in told.records:
        for report in own_reports(journal, trial_id, goal):
            told.tell(trial_id, report)
    records, profiles = tuple(told.records.values()), tuple(told.profiles.values())
    space = _tried(records, profiles, journal) if space is None else space
    return PastSweep(
        journal,
        goal,
        unit,
        space,
        rate,
        records=records,
        profiles=profiles,
        earlier=earlier,
        keys=keys,
        num_samples=read_samples(rows),
        cost=cost,
        why=read_why(rows),
    )


def _tried(
    records: Sequence[TrialRecord], profiles: Sequence[ProfileRecord], journal: Path
) -> Space:
    """Returns the space of what was tried."""
    cells = {record.allocation for record in records}
    cells |= {cell for record in profiles for cell in record.profile.cells}
    try:
        return space_of(cells)
    except (InvalidWorkloadError, ValueError) as error:
        msg = f"an earlier sweep must have trials on machines of one size: {error} @ {journal}"
        raise InvalidStateError(msg) from error
