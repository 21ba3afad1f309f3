"""Runs a sweep on a virtual clock."""

import heapq
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import assert_never

from raycosttune.core.cost import CostMetric, checked_cost
from raycosttune.core.decision import Finished, Resize, Run, Stop, StopCause, Wait
from raycosttune.core.held import resized
from raycosttune.core.node_type import Free, free_of
from raycosttune.core.observation import EndCause, Ended, Report, Resized
from raycosttune.core.profile import Profile, Profiled
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.noise import Evaluation, Noise
from raycosttune.simulate.outcome import Moment, Outcome, SimulatedTrial
from raycosttune.simulate.policy import HasAllocation, Policy, ProfilingPolicy
from raycosttune.simulate.workload import Workload

MOST_TRIALS = 1000


def simulate(
    start: Callable[[Callable[[], float]], Policy],
    workload: Workload,
    *,
    cost: CostMetric,
    workers: Free = None,
    deadline_seconds: float | None = None,
    noise: Noise | None = None,
    seed: int = 0,
) -> Outcome:
    """Runs a sweep of a policy on a workload.

    A start on n workers is paid from the request for them: n workers for their start-up and
    for everything that follows, idle ones included.

    Args:
        start: Makes the policy, given the virtual clock in seconds.
        workload: What is trained.
        cost: What the sweep is charged in.
        workers: Size of the cluster, by type of machine where there are several; by default
            one trial of the largest cell fits, of each type.
        deadline_seconds: Limit of a run that counts as a delivered model.
        noise: How runs differ from the workload; not at all by default.
        seed: Number of the world: the same one gives every policy the same runs.

    Returns:
        What happened.

    Raises:
        InvalidWorkloadError: If the policy starts what the workload has not, or more workers
            than are free.
        TypeError: If a policy that can't be told profiles asks for one.
    """
    simulation = _Simulation(workload, cost, workers, deadline_seconds, noise or Noise(), seed)
    return simulation.run(start(lambda: simulation.now))


class _Simulation:
    def __init__(
        self,
        workload: Workload,
        cost: CostMetric,
        workers: Free,
        deadline_seconds: float | None,
        noise: Noise,
        seed: int,
    ) -> None:
        self.now = 0.0
        self._workload, self._cost, self._noise, self._seed = workload, cost, noise, seed
        self._deadline = deadline_seconds
        self._cells = frozenset(workload.space.cells)
        self._free: dict[str, float] = {}
        for kind in workload.space.types:
            most = max((c.workers for c in self._cells if c.node_type == kind.name), default=0)
            self._free[kind.name] = most if workers is None else free_of(workers, kind.name)
        self._runs: Counter[Allocation] = Counter()
        self._profiles: Counter[Allocation] = Counter()
        self._events: list[tuple[float, int, Iterator[float]]] = []
        self._order = itertools.count()
        self._delivered = False
        self._outcome = Outcome()

    def run(self, policy: Policy) -> Outcome:
        """Drives the policy until nothing runs and nothing further starts."""
        self._fill(policy)
        while self._events:
            self.now, _, trial = heapq.heappop(self._events)
            self._go_on(trial)
            self._fill(policy)
        self._outcome.seconds = self.now
        self._outcome.plan = policy.plan()
        return self._outcome

    def _go_on(self, trial: Iterator[float]) -> None:
        seconds = next(trial, None)
        if seconds is not None:
            heapq.heappush(self._events, (self.now + seconds, next(self._order), trial))

    def _fill(self, policy: Policy) -> None:
        """Starts trials until the policy waits, has finished, or the cluster is full."""
        while not self._outcome.why:
            if len(self._outcome.trials) >= MOST_TRIALS:
                self._outcome.why = f"{MOST_TRIALS} trials were started, the most a sweep may"
                return
            trial_id = f"trial-{len(self._outcome.trials):04}"
            match policy.ask(trial_id, free_workers=self._room):
                case Run(allocation=cell):
                    self._go_on(self._run(policy, self._start(trial_id, cell)))
                case Profile() as profile:
                    trial = self._start(trial_id, profile.held, *profile.cells)
                    self._go_on(self._profile(policy, trial, profile))
                case Wait(why=why):
                    if not self._events:
                        self._outcome.why = f"nothing runs, and it waits: {why}"
                    return
                case Finished(why=why):
                    self._outcome.why = why
                case unknown:
                    assert_never(unknown)

    @property
    def _room(self) -> Free:
        """What is free, a number where there is but one type of machine."""
        return dict(self._free) if self._workload.space.node_types else self._free[""]

    def _start(self, trial_id: str, held: Allocation, *timed: Allocation) -> SimulatedTrial:
        for cell in (held, *timed):
            if cell not in self._cells:
                msg = (
                    f"a trial must be in a cell of {self._workload.name}, got {cell}. "
                    "Give the policy the workload's own space."
                )
                raise InvalidWorkloadError(msg)
        free = self._free[held.node_type]
        if held.workers > free:
            msg = (
                f"a trial must fit into the cluster, got {held} with {free} workers free. "
                "Simulate a larger one, or give the policy a space with max_workers."
            )
            raise InvalidWorkloadError(msg)
        trial = SimulatedTrial(trial_id, held, self.now)
        self._outcome.trials.append(trial)
        self._free[held.node_type] -= held.workers
        return trial

    def _run(self, policy: Policy, trial: SimulatedTrial) -> Iterator[float]:
        """Yields the seconds to each report, and makes it when resumed."""
        cell = trial.allocation
        repetition = self._runs[cell]
        self._runs[cell] += 1
        ended = Ended(EndCause.FINISHED)
        startup = self._workload.startup_seconds(cell.workers)
        first = self._workload.epoch_seconds(cell)
        for evaluation in self._noise.run(
            self._workload, cell, seed=self._seed, repetition=repetition
        ):
            pace = self._workload.epoch_seconds(trial.allocation) / first
            report = _report(evaluation, pace, startup, trial)
            startup = 0.0
            yield report.seconds
            trial.seconds += report.seconds
            trial.held_seconds += report.seconds
            trial.reports += 1
            policy.tell(trial.trial_id, report)
            decision = policy.decide(trial.trial_id)
            if isinstance(decision, Stop):
                ended = _ended(decision)
                break
            if isinstance(decision, Resize) and self._resize(trial, decision.workers):
                startup = self._workload.startup_seconds(decision.workers)
                policy.tell(trial.trial_id, Resized(decision.workers, trial.resizes))
        in_time = self._deadline is None or trial.seconds <= self._deadline
        self._delivered |= ended.cause is EndCause.REACHED and in_time
        policy.tell(trial.trial_id, ended)
        self._end(policy, trial, ended.cause)

    def _resize(self, trial: SimulatedTrial, workers: int) -> bool:
        """Changes a trial's workers unless they aren't free."""
        before, free = trial.allocation, self._free[trial.allocation.node_type]
        if workers - before.workers > free or workers == before.workers:
            return False
        after = resized(self._workload.space, before, workers)
        if after not in self._cells:
            msg = f"a trial must be resized to a cell of {self._workload.name}, got {after}"
            raise InvalidWorkloadError(msg)
        trial.paid += checked_cost(self._cost, before, trial.held_seconds)
        trial.allocation, trial.held_seconds = after, 0.0
        trial.resizes += 1
        self._free[before.node_type] += before.workers - workers
        return True

    def _profile(self, policy: Policy, trial: SimulatedTrial, profile: Profile) -> Iterator[float]:
        """Yields the seconds of a profile, and tells what it showed when resumed."""
        if not isinstance(policy, ProfilingPolicy):
            msg = "a policy that asks for a Profile must have tell_profile(trial_id, profiled)"
            raise TypeError(msg)
        trial.is_profile = True
        factors = {
            cell: self._noise.profile(cell, seed=self._seed, repetition=self._profiles[cell])
            for cell in profile.cells
        }
        self._profiles.update(factors.keys())
        startup = self._workload.startup_seconds(trial.allocation.workers)
        steps = sum(self._workload.step_seconds(cell) * factors[cell] for cell in profile.cells)
        seconds = startup + profile.steps * steps
        yield seconds
        trial.seconds = trial.held_seconds = seconds
        epochs = {cell: self._workload.epoch_seconds(cell) * f for cell, f in factors.items()}
        policy.tell_profile(trial.trial_id, Profiled(epochs, seconds, startup))
        self._end(policy, trial, EndCause.FINISHED)

    def _end(self, policy: Policy, trial: SimulatedTrial, cause: EndCause) -> None:
        trial.cause = cause
        self._free[trial.allocation.node_type] += trial.allocation.workers
        plan = policy.plan()
        chosen = plan.allocation if isinstance(plan, HasAllocation) else None
        self._outcome.moments.append(Moment(self._spent(), chosen, self._delivered))

    def _spent(self) -> float:
        return math.fsum(
            trial.paid + checked_cost(self._cost, trial.allocation, trial.held_seconds)
            for trial in self._outcome.trials
        )


def _report(evaluation: Evaluation, pace: float, startup: float, trial: SimulatedTrial) -> Report:
    return Report(
        evaluation.epoch,
        evaluation.value,
        seconds=startup + evaluation.seconds * pace,
        startup_seconds=startup,
        attempt=trial.resizes + 1,
        checkpoint=trial.trial_id,
        workers=trial.allocation.workers,
        noise_scale=evaluation.noise_scale,
    )


def _ended(decision: Stop) -> Ended:
    is_reached = decision.cause is StopCause.REACHED
    return Ended(EndCause.REACHED if is_reached else EndCause.STOPPED, decision.why)
