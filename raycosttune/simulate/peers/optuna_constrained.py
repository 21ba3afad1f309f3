"""Optuna's samplers that take constraints."""

import math
import statistics

import optuna
from optuna.samplers import BaseSampler, GPSampler, TPESampler

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.space import Space
from raycosttune.simulate.peer import PeerTrial
from raycosttune.simulate.peers.optuna_peer import STARTUP, OptunaPeer


class ConstrainedPeer(OptunaPeer):
    """Minimises log cost under constraints on the target, the deadline and the grid's holes.

    Optuna must be at least 5.0, the first version with `Trial.set_constraint`.
    """

    def __init__(
        self, space: Space, goal: Goal, cost: CostMetric, seed: int, *, sampler: BaseSampler
    ) -> None:
        super().__init__(space, goal, cost, seed, sampler=sampler)
        self._has_holes = len(space.cells) < len(space.workers) * len(space.batches)
        self._costs: list[float] = []
        self._limits: list[dict[str, float]] = []

    def tell_run(self, asked: optuna.Trial, trial: PeerTrial) -> None:
        """See OptunaPeer."""
        log_cost, limits = math.log(max(trial.cost, 1e-30)), self._measured(trial)
        self._costs.append(log_cost)
        self._limits.append(limits)
        self._tell(asked, log_cost, limits, is_hole=False)

    def tell_hole(self, asked: optuna.Trial) -> None:
        """See OptunaPeer.

        A hole has no cost, shortfall or seconds; the mean of the runs bends no model.
        """
        names = self._limits[0] if self._limits else self._measured(None)
        means = {
            name: statistics.fmean([limits[name] for limits in self._limits] or [0.0])
            for name in names
        }
        self._tell(asked, statistics.fmean(self._costs or [0.0]), means, is_hole=True)

    def _tell(
        self, asked: optuna.Trial, log_cost: float, limits: dict[str, float], *, is_hole: bool
    ) -> None:
        for name, excess in limits.items():
            asked.set_constraint(name, excess)
        if self._has_holes:
            asked.set_constraint("hole", 1.0 if is_hole else -1.0)
        self._study.tell(asked, log_cost)

    def _measured(self, trial: PeerTrial | None) -> dict[str, float]:
        """Returns how far a run is beyond each limit, at most 0 where it keeps it."""
        deadline = self.goal.deadline_seconds
        short, excess = 0.0, 0.0
        if trial is not None:
            short = trial.shortfall if math.isfinite(trial.shortfall) else abs(self.goal.target)
            seconds = trial.seconds
            if not trial.is_reached and trial.reports:
                seconds += trial.reports[-1].training_seconds
            excess = math.log(max(seconds, 1e-9) / deadline) if deadline else 0.0
        limits = {"target": short / (abs(self.goal.target) or 1.0)}
        return limits | {"deadline": excess} if deadline else limits


class ConstrainedTpe(ConstrainedPeer):
    """Runs multivariate TPE with constraints.

    It is given what Tpe is given but for the penalty, and two constraints: shortfall to the
    target, and log of seconds over the deadline, where a run that missed counts with its next
    evaluation.
    """

    def __init__(self, space: Space, goal: Goal, cost: CostMetric, seed: int) -> None:
        sampler = TPESampler(seed=seed, multivariate=True, n_startup_trials=STARTUP)
        super().__init__(space, goal, cost, seed, sampler=sampler)


class ConstrainedGp(ConstrainedPeer):
    """Runs Gaussian processes with constraints, expected improvement times feasibility.

    It is given what ConstrainedTpe is given; both are told the log of the cost, which is
    smoother than the cost.
    """

    def __init__(self, space: Space, goal: Goal, cost: CostMetric, seed: int) -> None:
        sampler = GPSampler(seed=seed, n_startup_trials=STARTUP, warn_independent_sampling=False)
        super().__init__(space, goal, cost, seed, sampler=sampler)
