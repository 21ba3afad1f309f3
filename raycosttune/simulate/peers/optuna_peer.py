"""What the peers from Optuna share: the grid as integers, holes, repeats."""

import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.peer import Peer, PeerTrial

MOST_ASKED = 50
STARTUP = 5  # random proposals first; Optuna's own 10 would be half of the 20 trials replayed


class OptunaPeer(Peer):
    """Asks an Optuna study for cells; a child says what the study is told.

    Workers and batch are indices into their sorted grids. A hole of the grid and a cell that
    was already run cost nothing: the study is told what is known and asked on, at most
    `MOST_ASKED` times in a row.

    Args:
        space: The cells.
        goal: Target and limits.
        cost: The cost metric.
        seed: Seed of the sampler, part of the study's name.
        sampler: Proposes.
        pruner: Cuts runs; none by default.
    """

    def __init__(
        self,
        space: Space,
        goal: Goal,
        cost: CostMetric,
        seed: int,
        *,
        sampler: BaseSampler,
        pruner: BasePruner | None = None,
    ) -> None:
        super().__init__(space, goal, cost, seed)
        self._study = _quiet_study(sampler, pruner or optuna.pruners.NopPruner(), seed)
        self._grid: dict[str, BaseDistribution] = {
            "workers": IntDistribution(0, len(space.workers) - 1),
            "batch": IntDistribution(0, len(space.batches) - 1),
        }
        self._cells = frozenset(space.cells)
        self._known: dict[Allocation, PeerTrial] = {}
        self._asked: optuna.Trial | None = None

    def ask(self) -> Allocation | None:
        """See Peer."""
        if len(self._known) == len(self._cells):
            return None
        for _ in range(MOST_ASKED):
            asked = self._study.ask(self._grid)
            cell = self._cell(asked.params)
            if cell not in self._cells:
                self.tell_hole(asked)
            elif cell in self._known:
                self.tell_run(asked, self._known[cell])
            else:
                self._asked = asked
                return cell
        return None

    def tell(self, trial: PeerTrial) -> None:
        """See Peer."""
        self._known[trial.allocation] = trial
        if self._asked is not None:
            self.tell_run(self._asked, trial)
        self._asked = None

    def tell_run(self, asked: optuna.Trial, trial: PeerTrial) -> None:
        """Tells the study what a run showed, its own or an earlier one of the same cell."""
        raise NotImplementedError

    def tell_hole(self, asked: optuna.Trial) -> None:
        """Tells the study that a pair of workers and batch is no cell."""
        raise NotImplementedError

    def is_met(self, trial: PeerTrial) -> bool:
        """Tells whether a run reached the target by the deadline."""
        limit = self.goal.deadline_seconds
        return trial.is_reached and (limit is None or trial.seconds <= limit)

    def _cell(self, params: dict[str, int]) -> Allocation:
        workers = self.space.workers[params["workers"]]
        return self.space.allocation(workers, self.space.batches[params["batch"]])


def _quiet_study(sampler: BaseSampler, pruner: BasePruner, seed: int) -> optuna.Study:
    """Makes a study without Optuna's line about it; Hyperband draws brackets from its name."""
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(verbosity, optuna.logging.WARNING))
    try:
        return optuna.create_study(sampler=sampler, pruner=pruner, study_name=f"sweep-{seed}")
    finally:
        optuna.logging.set_verbosity(verbosity)
