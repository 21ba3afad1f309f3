"""Optuna's tree-structured Parzen estimator, alone and with Hyperband."""

import math

import optuna
from optuna.pruners import HyperbandPruner
from optuna.samplers import TPESampler
from optuna.trial import TrialState

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.space import Space
from raycosttune.simulate.peer import PeerTrial
from raycosttune.simulate.peers.optuna_peer import STARTUP, OptunaPeer

MISS_FACTOR = 1e4
HOLE_COST = 1e30


class Tpe(OptunaPeer):
    """Minimises the cost of a run with multivariate TPE.

    It is given ordered grids, what is known of holes and repeats at no charge, 5 random
    proposals first in place of 10, and a penalty for a run that missed: `MISS_FACTOR` times
    what it cost.
    """

    def __init__(self, space: Space, goal: Goal, cost: CostMetric, seed: int) -> None:
        sampler = TPESampler(seed=seed, multivariate=True, n_startup_trials=STARTUP)
        super().__init__(space, goal, cost, seed, sampler=sampler)

    def tell_run(self, asked: optuna.Trial, trial: PeerTrial) -> None:
        """See OptunaPeer."""
        factor = 1.0 if self.is_met(trial) else MISS_FACTOR
        self._study.tell(asked, trial.cost * factor)

    def tell_hole(self, asked: optuna.Trial) -> None:
        """See OptunaPeer."""
        self._study.tell(asked, HOLE_COST)


class HyperbandTpe(OptunaPeer):
    """Minimises the cost of a run with multivariate TPE, and prunes with Hyperband.

    It is given what Tpe is given, and the best shortfall to the target after each evaluation
    to prune by. A run that missed counts as pruned, whoever cut it, a hole as pruned at once.
    """

    def __init__(self, space: Space, goal: Goal, cost: CostMetric, seed: int) -> None:
        sampler = TPESampler(seed=seed, multivariate=True, n_startup_trials=STARTUP)
        super().__init__(space, goal, cost, seed, sampler=sampler, pruner=HyperbandPruner())

    def prunes(self, trial: PeerTrial) -> bool:
        """See Peer."""
        if self._asked is None or not math.isfinite(trial.shortfall):
            return False
        self._asked.report(trial.shortfall, len(trial.reports))
        return self._asked.should_prune()

    def tell_run(self, asked: optuna.Trial, trial: PeerTrial) -> None:
        """See OptunaPeer."""
        if asked is not self._asked and math.isfinite(trial.shortfall):
            asked.report(trial.shortfall, len(trial.reports))
        if self.is_met(trial):
            self._study.tell(asked, trial.cost)
        else:
            self._study.tell(asked, state=TrialState.PRUNED)

    def tell_hole(self, asked: optuna.Trial) -> None:
        """See OptunaPeer."""
        self._study.tell(asked, state=TrialState.PRUNED)
