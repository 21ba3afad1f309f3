"""An earlier sweep, read from its journal: asked again under another cost, or used for another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.measured import measured_space, workers_per_node
from raycosttune.core.observation import EndCause, Ended
from raycosttune.core.plan import NoPlan, Plan
from raycosttune.core.prior import Prior
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.core.value import read_real
from raycosttune.errors import (
    InvalidCostError,
    InvalidGoalError,
    InvalidStateError,
    InvalidWorkloadError,
)
from raycosttune.results.journal import FOLDER, journal_of, read_journal
from raycosttune.results.replay import merge_rows, read_run_reports
from raycosttune.results.rows import Row, read_header, read_header_rate, read_header_space

COSTS: dict[str, CostMetric] = {metric.unit: metric for metric in (NodeHours(), WorkerHours())}


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
        rows: The rows of the journal.
        lost: Rows of reports that Tune lost and the runs' own journals have, by trial.
    """

    path: Path
    goal: Goal
    unit: str | None
    space: Space
    learning_rate: LearningRate | None
    samples: float = 1.0
    rows: Sequence[Row] = field(default=(), repr=False)
    lost: Mapping[str, Sequence[Row]] = field(default_factory=dict, repr=False)

    def session(self, *, cost: CostMetric | None = None, goal: Goal | None = None) -> Session:
        """Returns a session that knows what the sweep measured.

        Args:
            cost: What a run costs; the sweep's own by default, which must be given where it
                was neither node-hours nor worker-hours: a journal holds no metric.
            goal: Another goal than the sweep's, of the same metric and mode.

        Raises:
            InvalidCostError: If the cost is missing or breaks a law of costs.
            InvalidGoalError: If the goal is of another metric or mode.
        """
        metric = COSTS.get(self.unit or "") if cost is None else cost
        if metric is None:
            msg = (
                f"cost must be given, got none: the sweep was scored in {self.unit!r}, and its "
                "journal holds no metric"
            )
            raise InvalidCostError(msg)
        session = Session(
            self.space,
            self._goal_of(goal),
            cost=metric,
            learning_rate=self.learning_rate,
            clock=lambda: 0.0,
        )
        merge_rows(session, self.rows)
        for trial_id, rows in self.lost.items():
            for report in read_run_reports(rows, self.goal.metric or ""):
                session.tell(trial_id, report)
        return session

    def plan(self, *, cost: CostMetric | None = None, goal: Goal | None = None) -> Plan | NoPlan:
        """Returns the best configuration under another cost or goal; raises as `session` does."""
        return self.session(cost=cost, goal=goal).plan()

    def explain(self, *, cost: CostMetric | None = None, goal: Goal | None = None) -> str:
        """Says what the sweep shows under another cost or goal; raises as `session` does."""
        return self.session(cost=cost, goal=goal).explain()

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

    def prior(self, goal: Goal) -> Prior:
        """Returns what it says for a sweep with this goal.

        Its trials are named after its folder, so that they are no trials of the new one.

        Raises:
            InvalidGoalError: If the goal is of another metric or mode.
        """
        self._goal_of(goal)
        session, name = self.session(cost=NodeHours()), self.name
        records = [
            replace(record, trial_id=f"{name}/{record.trial_id}")
            for record in session.records.values()
        ]
        for record in records:
            record.take(Ended(EndCause.STOPPED, "its sweep broke off"))  # nothing where it has
        return Prior(tuple(records), tuple(session.profiles.values()), self.samples)

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
    journal = journal_of(path)
    if not journal.is_file():
        msg = f"an earlier sweep must have a journal, found none @ {journal}"
        raise InvalidStateError(msg)
    try:
        rows = read_journal(journal)
        header = next((row for row in rows if row["row"] == "header"), {})
        goal, unit = read_header(header)
        space, rate = read_header_space(header), read_header_rate(header)
    except (OSError, InvalidGoalError, InvalidStateError) as error:
        msg = f"the journal {journal} can't be read: {error}"
        raise InvalidStateError(msg) from error
    asked = [row for row in rows if row["row"] == "asked"]
    space = _tried(rows, journal) if space is None else space
    return PastSweep(journal, goal, unit, space, rate, rows=rows, lost=_lost(journal, asked))


def _tried(rows: Sequence[Row], journal: Path) -> Space:
    """Returns the space of the cells that a journal names."""
    probe = Session(ANY, Goal(target=0.0, metric="any", mode="max"), clock=lambda: 0.0)
    merge_rows(probe, rows)
    cells = {record.allocation for record in probe.records.values()}
    cells |= {cell for record in probe.profiles.values() for cell in record.profile.cells}
    try:
        pairs = {(cell.workers, cell.batch_size) for cell in cells}
        return measured_space(pairs, workers_per_node(cells))
    except (InvalidWorkloadError, ValueError) as error:
        msg = f"an earlier sweep must have trials on machines of one size: {error} @ {journal}"
        raise InvalidStateError(msg) from error


ANY = Space((1,), (1,))


def _lost(journal: Path, asked: Sequence[Row]) -> dict[str, list[Row]]:
    """Reads what the runs wrote themselves; a journal of theirs that is damaged is left out."""
    found: dict[str, list[Row]] = {}
    for row in asked:
        own = journal.parent / "trials" / f"{row.get('trial_id')}.jsonl"
        try:
            found[str(row.get("trial_id"))] = read_journal(own)
        except (InvalidStateError, OSError):
            continue
    return found
