"""The one adapter through which other tuners are driven: ask, tell, and the cuts we use."""

import math
from dataclasses import dataclass, field
from typing import assert_never

from raycosttune.core.cost import CostMetric, checked_cost
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
from raycosttune.core.goal import Goal
from raycosttune.core.node_type import Free
from raycosttune.core.observation import Ended, Observation, Report
from raycosttune.core.profile import Profile, Profiled
from raycosttune.core.space import Allocation, Space


@dataclass
class PeerTrial:
    """Is one run as a peer sees it.

    Attributes:
        allocation: Workers and batch.
        cost: What it has cost so far.
        seconds: Wall time so far.
        training_seconds: The part after the start-up.
        epochs: Epochs done.
        shortfall: How far the best value is from the target, at most 0 where it is reached.
        is_reached: Whether the target was reached.
        is_over: Whether it has ended.
        reports: Its reports.
    """

    allocation: Allocation
    cost: float = 0.0
    seconds: float = 0.0
    training_seconds: float = 0.0
    epochs: float = 0.0
    shortfall: float = math.inf
    is_reached: bool = False
    is_over: bool = False
    reports: list[Report] = field(default_factory=list)

    @property
    def epoch_seconds(self) -> float:
        """Mean seconds of an epoch."""
        return self.training_seconds / self.epochs if self.epochs else math.inf


@dataclass(frozen=True)
class Choice:
    """Names the cell that a peer recommends."""

    allocation: Allocation


class Peer:
    """Is another tuner; a child says at least what to try next.

    Args:
        space: The cells.
        goal: Target and limits.
        cost: The cost metric.
        seed: For its own random numbers.

    Attributes:
        trials: Its ended runs, in the order of their ends.
        times: Seconds of an epoch by profiled cell.
        startups: Start-up seconds by worker count, as seen.
    """

    def __init__(self, space: Space, goal: Goal, cost: CostMetric, seed: int) -> None:
        self.space, self.goal, self.cost, self.seed = space, goal, cost, seed
        self.trials: list[PeerTrial] = []
        self.times: dict[Allocation, float] = {}
        self.startups: dict[int, float] = {}

    def ask(self) -> Allocation | Profile | None:
        """Returns the next cell to run or what to profile, None when it has finished."""
        raise NotImplementedError

    def tell(self, trial: PeerTrial) -> None:
        """Takes in an ended run; it is in `trials` already."""

    def prunes(self, trial: PeerTrial) -> bool:  # noqa: ARG002 - a child may
        """Tells whether a running trial shall be cut, beside the cuts that every peer has."""
        return False

    def choose(self) -> Allocation | None:
        """Returns the recommended cell: the cheapest that reached the target in time."""
        return min(self.reached, key=lambda trial: trial.cost).allocation if self.reached else None

    @property
    def reached(self) -> list[PeerTrial]:
        """The runs that reached the target by the deadline."""
        limit = self.goal.deadline_seconds or math.inf
        return [trial for trial in self.trials if trial.is_reached and trial.seconds <= limit]

    @property
    def incumbent_cost(self) -> float:
        """Cost of the cheapest run that reached the target by the deadline."""
        return min((trial.cost for trial in self.reached), default=math.inf)

    def startup(self, workers: int) -> float:
        """Returns the start-up of a worker count, of the nearest seen where it wasn't."""
        if not self.startups:
            return 0.0
        return self.startups[min(self.startups, key=lambda seen: abs(seen - workers))]

    def cost_of(self, cell: Allocation, seconds: float) -> float:
        """Returns the cost of holding a cell."""
        return checked_cost(self.cost, cell, seconds)


class PeerPolicy:
    """Drives a peer as a session is driven, one trial at a time.

    Every peer gets: a run ends at its target; it is cut when the next evaluation would pass
    the deadline, or when it has cost as much as the cheapest run that reached the target.

    Args:
        peer: The tuner.
        trials: Most runs, profiles not counted.
    """

    def __init__(self, peer: Peer, trials: int) -> None:
        self._peer = peer
        self._most = trials
        self._runs: dict[str, PeerTrial] = {}
        self._is_profiling = False

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
        """See Policy."""
        del free_workers
        if self._is_profiling or any(not run.is_over for run in self._runs.values()):
            return Wait("one trial at a time")
        if len(self._runs) >= self._most:
            return Finished(f"{self._most} trials were made")
        match self._peer.ask():
            case None:
                return Finished("it proposes nothing further")
            case Profile() as profile:
                self._is_profiling = True
                return profile
            case Allocation() as cell:
                self._runs[trial_id] = PeerTrial(cell)
                return Run(cell, {}, type(self._peer).__name__)
            case unknown:
                assert_never(unknown)

    def tell(self, trial_id: str, observation: Observation) -> None:
        """See Policy."""
        trial, peer = self._runs[trial_id], self._peer
        if isinstance(observation, Ended):
            trial.is_over = True
            peer.trials.append(trial)
            peer.tell(trial)
        if not isinstance(observation, Report):
            return
        trial.reports.append(observation)
        trial.seconds += observation.seconds
        trial.training_seconds += observation.training_seconds
        trial.epochs = observation.epoch
        trial.cost = peer.cost_of(trial.allocation, trial.seconds)
        if observation.startup_seconds:
            peer.startups[trial.allocation.workers] = observation.startup_seconds
        if observation.value is not None:
            short = peer.goal.sign * (peer.goal.target - observation.value)
            trial.shortfall = min(trial.shortfall, short)
            trial.is_reached |= peer.goal.is_reached(observation.value)

    def tell_profile(self, trial_id: str, profiled: Profiled) -> None:
        """See ProfilingPolicy."""
        del trial_id
        self._is_profiling = False
        self._peer.times.update(profiled.epoch_seconds)
        most = max(cell.workers for cell in profiled.epoch_seconds)
        if profiled.startup_seconds:
            self._peer.startups[most] = profiled.startup_seconds

    def decide(self, trial_id: str) -> Decision:
        """See Policy."""
        trial, peer = self._runs[trial_id], self._peer
        if trial.is_reached:
            return Stop(StopCause.REACHED, "reached the target")
        limit = peer.goal.deadline_seconds
        if limit is not None and trial.seconds + trial.reports[-1].training_seconds > limit:
            return Stop(StopCause.DEADLINE, "the next evaluation would pass the deadline")
        if trial.cost >= peer.incumbent_cost:
            return Stop(StopCause.COST, "has cost as much as the best run")
        if peer.prunes(trial):
            return Stop(StopCause.COST, "was pruned")
        return Continue()

    def plan(self) -> Choice | None:
        """See Policy."""
        cell = self._peer.choose()
        return None if cell is None else Choice(cell)
