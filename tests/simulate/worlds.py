"""Measured jobs to simulate, and policies that do as they are told."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st

from raycosttune.core.cost import SECONDS_PER_HOUR, CostMetric, WorkerHours
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
from raycosttune.core.measured import measured_space
from raycosttune.core.node_type import Free, free_of
from raycosttune.core.observation import Ended, Observation, Report
from raycosttune.core.profile import Profile, Profiled
from raycosttune.core.space import Allocation
from raycosttune.simulate.noise import Noise
from raycosttune.simulate.outcome import Outcome
from raycosttune.simulate.peer import Choice
from raycosttune.simulate.policy import Policy
from raycosttune.simulate.run import simulate
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.workload import Curve, Workload

EVALUATIONS = 8
FEW = settings(max_examples=25)


@dataclass(frozen=True)
class Rounded:
    """Bills every begun hour of every worker: monotone, but not linear."""

    unit: str = "begun worker-hours"

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        """Returns workers times begun hours."""
        return allocation.workers * math.ceil(seconds / SECONDS_PER_HOUR)


def curve(needed: int, evaluations: int = EVALUATIONS) -> Curve:
    """Returns a curve that reaches 1 at its evaluation `needed`, if it gets so far."""
    epochs = range(1, evaluations + 1)
    return Curve(tuple(map(float, epochs)), tuple(min(k / needed, 1.0) for k in epochs))


@st.composite
def tables(draw: st.DrawFn, *, startup: bool = True, per_node: int | None = 2) -> TableWorkload:
    """Draws a job with any times and start-ups, with holes; one batch at least reaches 1."""
    workers = sorted(draw(st.sets(st.sampled_from((1, 2, 3, 4)), min_size=1)))
    batches = sorted(draw(st.sets(st.sampled_from((16, 32, 64)), min_size=1)))
    pairs = [(n, b) for n in workers for b in batches]
    kept = draw(st.sets(st.sampled_from(pairs), min_size=1))
    space = measured_space(kept, per_node)
    epochs = {cell: draw(st.floats(60, 6000)) for cell in space.cells}
    needed = {b: draw(st.integers(1, EVALUATIONS + 2)) for b in space.batches}
    needed[space.batches[0]] = min(needed[space.batches[0]], EVALUATIONS)
    return TableWorkload(
        name="drawn",
        space=space,
        epochs=epochs,
        steps={cell: seconds / 10 for cell, seconds in epochs.items()},
        curves={b: curve(k) for b, k in needed.items()},
        startups={n: draw(st.floats(0, 600)) if startup else 0.0 for n in space.workers},
    )


def one_batch(times: dict[int, float], needed: int = 4, startup: float = 0.0) -> TableWorkload:
    """Returns a job of one batch, given the seconds of an epoch by workers."""
    space = measured_space({(n, 64) for n in times}, None)
    epochs = {cell: times[cell.workers] for cell in space.cells}
    steps = {cell: seconds / 10 for cell, seconds in epochs.items()}
    return TableWorkload("one", space, epochs, steps, {64: curve(needed)}, {}, startup)


@dataclass
class Script:
    """Answers what it was given, one trial at a time or all at once, and notes what it hears.

    Attributes:
        answers: What to run or profile, in turn.
        stop_after: Reports after which a run is stopped, by trial.
        is_eager: Whether it starts the next trial as soon as it fits.
    """

    answers: Sequence[Allocation | Profile]
    stop_after: Sequence[int] = ()
    is_eager: bool = False
    asked: list[str] = field(default_factory=list)
    heard: dict[str, list[Observation]] = field(default_factory=dict)
    profiled: dict[str, Profiled] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer | Profile:
        """See Policy."""
        if len(self.asked) == len(self.answers):
            return Finished("the script is over")
        answer = self.answers[len(self.asked)]
        held = answer.held if isinstance(answer, Profile) else answer
        if self.live and (
            not self.is_eager or held.workers > free_of(free_workers or 0, held.node_type)
        ):
            return Wait("something runs")
        self.asked.append(trial_id)
        self.live.add(trial_id)
        return answer if isinstance(answer, Profile) else Run(answer, {}, "as written")

    def tell(self, trial_id: str, observation: Observation) -> None:
        """See Policy."""
        self.heard.setdefault(trial_id, []).append(observation)
        if isinstance(observation, Ended):
            self.live.remove(trial_id)

    def tell_profile(self, trial_id: str, profiled: Profiled) -> None:
        """See ProfilingPolicy."""
        self.live.remove(trial_id)
        self.profiled[trial_id] = profiled

    def decide(self, trial_id: str) -> Decision:
        """See Policy."""
        index = self.asked.index(trial_id)
        most = self.stop_after[index] if index < len(self.stop_after) else math.inf
        reports = self.reports(trial_id)
        if (reports[-1].value or 0.0) >= 1:
            return Stop(StopCause.REACHED, "reached")
        return Stop(StopCause.COST, "as written") if len(reports) >= most else Continue()

    def plan(self) -> Choice | None:
        """See Policy."""
        for trial_id, answer in zip(self.asked, self.answers, strict=False):
            reached = any((report.value or 0.0) >= 1 for report in self.reports(trial_id))
            if reached and isinstance(answer, Allocation):
                return Choice(answer)
        return None

    def reports(self, trial_id: str) -> list[Report]:
        """Returns what a trial reported."""
        return [told for told in self.heard.get(trial_id, ()) if isinstance(told, Report)]


def driven(
    script: Policy,
    workload: Workload,
    *,
    cost: CostMetric | None = None,
    workers: int | None = None,
    noise: Noise | None = None,
    seed: int = 0,
) -> Outcome:
    """Simulates a sweep of a policy, charged in worker-hours unless another cost is given."""
    metric = cost or WorkerHours()
    return simulate(
        lambda _: script, workload, cost=metric, workers=workers, noise=noise, seed=seed
    )
