"""Zeus' batch-size policy."""

import numpy as np
from zeus._legacy.job import Job
from zeus._legacy.policy.optimizer import PruningGTSBatchSizeOptimizer

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.peer import Peer, PeerTrial

MOST_ASKED = 50


class ZeusBatch(Peer):
    """Drives Zeus' choice of a batch at one worker count, as published with its paper.

    Pruning explores down from a default batch, then up, each way until a run misses; Thompson
    sampling follows. It is given the cost as what it minimises, and a repeat of a batch is
    answered from its record at no charge, so that it ends once pruning is done: sampling from
    a record without noise names the cheapest each time.

    Args:
        space: The cells.
        goal: Target and limits.
        cost: The cost metric.
        seed: Seed of the sampling.
        workers: The worker count, one of the space's.
        default_batch: Global batch to start from; the middle one of the count's by default.

    Raises:
        InvalidWorkloadError: If the space has no cell of that worker count.
    """

    def __init__(
        self,
        space: Space,
        goal: Goal,
        cost: CostMetric,
        seed: int,
        *,
        workers: int,
        default_batch: int | None = None,
    ) -> None:
        super().__init__(space, goal, cost, seed)
        self._cells = {cell.batch_size: cell for cell in space.cells if cell.workers == workers}
        batches = sorted(self._cells)
        if not batches:
            counts = sorted({cell.workers for cell in space.cells})
            msg = f"workers must be one of {counts}, got {workers}"
            raise InvalidWorkloadError(msg)
        self._known: dict[int, PeerTrial] = {}
        self._job = Job(
            dataset="",
            network="",
            optimizer="",
            target_metric=goal.target,
            max_epochs=0,
            default_bs=default_batch or batches[(len(batches) - 1) // 2],
        )
        self._policy = PruningGTSBatchSizeOptimizer(seed=seed, verbose=False)
        self._policy.register_job(self._job, batches)

    def ask(self) -> Allocation | None:
        """See Peer."""
        for _ in range(MOST_ASKED):
            batch = self._predict()
            if batch is None or batch not in self._known:
                return None if batch is None else self._cells[batch]
            self._observe(self._known[batch])
        return None

    def tell(self, trial: PeerTrial) -> None:
        """See Peer."""
        self._known[trial.allocation.batch_size] = trial
        self._observe(trial)

    def _predict(self) -> int | None:
        try:
            with np.errstate(divide="ignore"):  # a record that repeats has no variance
                return int(self._policy.predict(self._job))
        except ValueError:  # Zeus has pruned every batch
            return None

    def _observe(self, trial: PeerTrial) -> None:
        batch = trial.allocation.batch_size
        with np.errstate(divide="ignore"):
            self._policy.observe(self._job, batch, trial.cost, converged=trial in self.reached)
