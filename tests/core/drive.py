"""A simulated cluster that drives a session, and surfaces of the assumed shape to train on."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from raycosttune.core.constraint import Constraint
from raycosttune.core.cost import CostMetric
from raycosttune.core.decision import Continue, Decision, Finished, Run, Stop, StopCause
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.observation import EndCause, Ended, Recipe, Report, TrialRecord
from raycosttune.core.proposer import Proposer, Scored
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space

NODE_FACTOR = 3.0


@dataclass(frozen=True)
class Job:
    """Is a training job whose every quantity is known."""

    epoch_seconds: Mapping[Allocation, float]
    epochs: Mapping[int, float]
    startup_seconds: float = 0.0

    def needed(self, cell: Allocation, recipe: Recipe) -> int:
        """Returns the epochs after which a run reports the target."""
        factor = recipe.get("factor", 1.0)
        assert isinstance(factor, float)
        return math.ceil(self.epochs[cell.batch_size] * factor)

    def seconds(self, cell: Allocation, recipe: Recipe | None = None) -> float:
        """Returns the time to the target."""
        epochs = self.needed(cell, recipe or {})
        return self.startup_seconds + self.epoch_seconds[cell] * epochs

    def report(self, goal: Goal, cell: Allocation, recipe: Recipe, epoch: int) -> Report:
        """Returns what a run reports after an epoch."""
        start = self.startup_seconds if epoch == 1 else 0.0
        is_reached = epoch >= self.needed(cell, recipe)
        value = goal.target if is_reached else goal.target - goal.sign
        return Report(float(epoch), value, self.epoch_seconds[cell] + start, start)

    def record(
        self, goal: Goal, cell: Allocation, name: str, *, epochs: int | None = None
    ) -> TrialRecord:
        """Returns a whole run of a cell, or its first epochs."""
        until = epochs if epochs is not None else self.needed(cell, {})
        reports = [self.report(goal, cell, {}, k) for k in range(1, until + 1)]
        cause = EndCause.REACHED if epochs is None else EndCause.STOPPED
        return TrialRecord(name, cell, {}, 0, reports, Ended(cause))


class Factors:
    """Proposes recipes that need other multiples of the job's epochs, in turn."""

    def __init__(self, factors: Sequence[float]) -> None:
        self.factors = factors

    def propose(self, index: int, records: Sequence[Scored]) -> Recipe:
        """Returns the recipe of an index."""
        del records
        return {"factor": self.factors[index % len(self.factors)], "lr": 0.1}


class Simulation:
    """Drives a session over a job, on a clock that only training moves."""

    def __init__(
        self,
        space: Space,
        goal: Goal,
        job: Job,
        *,
        cost: CostMetric | None = None,
        proposer: Proposer | None = None,
        learning_rate: LearningRate | None = None,
        max_concurrent: int | None = None,
    ) -> None:
        self.space, self.goal, self.job = space, goal, job
        self.cost, self.proposer, self.learning_rate = cost, proposer, learning_rate
        self.max_concurrent = max_concurrent
        self.now = 0.0
        self.stops: list[StopCause] = []
        self.session = self.fresh_session()

    def fresh_session(self) -> Session:
        """Returns an empty session with the same arguments."""
        return Session(
            self.space,
            self.goal,
            cost=self.cost,
            proposer=self.proposer,
            learning_rate=self.learning_rate,
            max_concurrent=self.max_concurrent,
            clock=lambda: self.now,
        )

    def step(self, trial_id: str) -> Decision:
        """Trains an epoch, and ends the trial where the session says so."""
        record = self.session.records[trial_id]
        report = self.job.report(self.goal, record.allocation, record.recipe, int(record.epoch) + 1)
        self.now += report.seconds
        self.session.tell(trial_id, report)
        decision = self.session.decide(trial_id)
        if isinstance(decision, Stop):
            self.stops.append(decision.cause)
            is_reached = decision.cause is StopCause.REACHED
            cause = EndCause.REACHED if is_reached else EndCause.STOPPED
            self.session.tell(trial_id, Ended(cause, decision.why))
        return decision

    def train(self, trial_id: str, most: int = 500) -> None:
        """Trains until the session stops the trial."""
        for _ in range(most):
            if not isinstance(self.step(trial_id), Continue):
                return
        self.session.tell(trial_id, Ended(EndCause.FINISHED))

    def run(self, most: int = 60) -> Finished:
        """Runs one trial after the other until the sweep is over."""
        for k in range(most):
            answer = self.session.ask(f"t{k}")
            if not isinstance(answer, Run):
                assert isinstance(answer, Finished)
                return answer
            self.train(f"t{k}")
        message = f"no end after {most} trials"
        raise AssertionError(message)


def goal(
    *,
    target: float = 1.0,
    deadline_seconds: float | None = None,
    sweep_deadline_seconds: float | None = None,
    sweep_budget: float | None = None,
    planned_runs: int = 10,
    max_epochs: int | None = None,
    tolerance: float = 0.03,
    constraints: tuple[Constraint, ...] = (),
) -> Goal:
    """Returns a goal whose metric and mode are set."""
    return Goal(
        target=target,
        metric="accuracy",
        mode="max",
        deadline_seconds=deadline_seconds,
        sweep_deadline_seconds=sweep_deadline_seconds,
        sweep_budget=sweep_budget,
        planned_runs=planned_runs,
        max_epochs=max_epochs,
        tolerance=tolerance,
        constraints=constraints,
    )


def amdahl(space: Space, *, startup_seconds: float = 0.0, noise_scale: float = 100.0) -> Job:
    """Returns a plain job: compute that divides, steps that cost, batches that need epochs."""
    return Job(
        {c: 100 * (1 / c.workers + 8 / c.batch_size + 0.02) for c in space.cells},
        {c.batch_size: 5 * (1 + c.batch_size / noise_scale) for c in space.cells},
        startup_seconds,
    )


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Draws a space in which every batch splits over every worker count."""
    workers = draw(st.sets(st.sampled_from((1, 2, 4, 8)), min_size=1, max_size=3))
    batches = draw(st.sets(st.sampled_from((32, 64, 128, 256)), min_size=1, max_size=4))
    per_node = draw(st.sampled_from((None, 1, 2, 4)))
    return Space(tuple(workers), tuple(batches), workers_per_node=per_node)


@st.composite
def jobs(draw: st.DrawFn, space: Space) -> Job:
    """Draws a job of the assumed shape; extremes of every slope are likely."""
    seconds = draw(st.floats(0.1, 1000))
    first, second = (_separable(draw, space) for _ in range(2))
    nodes = sorted({cell.nodes for cell in space.cells})
    jumps = sorted(draw(st.lists(st.floats(1, NODE_FACTOR), min_size=len(nodes))))
    jump = {count: jumps[k] / jumps[0] for k, count in enumerate(nodes)}
    batches = sorted({cell.batch_size for cell in space.cells})
    rising = _path(draw, batches)
    least = draw(st.floats(1, 8))
    return Job(
        {c: seconds * max(first[c], second[c]) * jump[c.nodes] for c in space.cells},
        {b: least * rise for b, rise in zip(batches, rising, strict=True)},
        draw(st.sampled_from((0.0, 5.0))),
    )


@st.composite
def spaces_and_jobs(draw: st.DrawFn) -> tuple[Space, Job]:
    """Draws a space and a job on it."""
    space = draw(spaces())
    return space, draw(jobs(space))


def _separable(draw: st.DrawFn, space: Space) -> dict[Allocation, float]:
    """Draws f(n) g(b), both with slopes in [-1, 0]; the larger of two is of the shape too."""
    batches = sorted({cell.batch_size for cell in space.cells})
    over_n = dict(zip(space.workers, _path(draw, space.workers), strict=True))
    over_b = dict(zip(batches, _path(draw, batches), strict=True))
    scale = draw(st.floats(0.3, 1))
    return {c: scale / over_n[c.workers] / over_b[c.batch_size] for c in space.cells}


def _path(draw: st.DrawFn, axis: Sequence[int]) -> list[float]:
    """Draws a sequence that starts at 1 and rises with slopes in [0, 1] in log-log."""
    path = [1.0]
    for before, after in itertools.pairwise(axis):
        slope = draw(st.sampled_from((0.0, 1.0)) | st.floats(0, 1))
        path.append(path[-1] * (after / before) ** slope)
    return path
