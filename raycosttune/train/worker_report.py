"""Adds to a training loop's reports what was measured of its workers."""

import json
import logging
import time
from pathlib import Path
from typing import Any

from ray.train import Checkpoint
from ray.train.v2._internal.execution.train_fn_utils import (
    DistributedTrainFnUtils,
    get_train_fn_utils,
    set_train_fn_utils,
)

from raycosttune.core.cost import CostMetric, checked_cost
from raycosttune.core.space import Allocation
from raycosttune.train import keys
from raycosttune.train.current import CURRENT
from raycosttune.train.place import STATE_FILE
from raycosttune.train.rebalancer import Rebalancer
from raycosttune.train.settings import heed_idle_policy, installed

logger = logging.getLogger(__name__)
Metrics = dict[str, Any]


class MeasuredTrainFnUtils(DistributedTrainFnUtils):
    """Is what Ray Train offers a loop, with what was measured in each report.

    Args:
        cost: Prices the workers that are held.
        nodes: Machines that they fill.
    """

    def __init__(self, cost: CostMetric, nodes: int) -> None:
        self._cost = cost
        self._nodes = nodes
        self._began_at, self._began = time.time(), time.monotonic()

    def report(
        self,
        metrics: Metrics,
        checkpoint: Checkpoint | None = None,
        *more: Any,  # noqa: ANN401 - Train's own
        **options: Any,  # noqa: ANN401 - Train's own
    ) -> None:
        """See ray.train.report."""
        rebalancer = CURRENT.rebalancer
        if rebalancer is None:
            heed_idle_policy()
        else:
            metrics = {**metrics, **self._measured(rebalancer)}
            if checkpoint is not None:
                _keep(rebalancer, checkpoint)
        super().report(metrics, checkpoint, *more, **options)

    def _measured(self, rebalancer: Rebalancer) -> Metrics:
        latest = rebalancer.latest
        if latest is None:
            return {}
        try:
            return {
                keys.SHARES: list(latest.shares),
                keys.COMPUTE_SECONDS: list(latest.compute_seconds),
                keys.IDLE_SECONDS: list(latest.idle_seconds),
                keys.IMBALANCE: latest.imbalance,
                **({} if latest.noise_scale is None else {keys.NOISE_SCALE: latest.noise_scale}),
                **self._paid(len(latest.shares), rebalancer.batch_size),
            }
        except Exception:
            logger.exception("what was measured of the workers can't be reported")
            return {}

    def _paid(self, workers: int, batch_size: int) -> Metrics:
        settings = installed()
        asked_at = self._began_at if settings.requested_at is None else settings.requested_at
        before = settings.paid_seconds + max(self._began_at - asked_at, 0.0)
        seconds = before + time.monotonic() - self._began  # a clock that is set changes no cost
        held = Allocation(workers, batch_size, self._nodes)
        return {
            keys.COST: checked_cost(self._cost, held, seconds),
            keys.COST_UNIT: self._cost.unit,
        }


def _keep(rebalancer: Rebalancer, checkpoint: Checkpoint) -> None:
    """Puts the shares into a checkpoint that is about to be stored."""
    try:
        if getattr(checkpoint.filesystem, "type_name", "") == "local":
            (Path(checkpoint.path) / STATE_FILE).write_text(json.dumps(rebalancer.state()))
    except Exception:
        logger.exception("the shares can't be kept in the checkpoint; a restart begins equal")


def measure_reports(cost: CostMetric, nodes: int) -> None:
    """Lets the reports of this process carry what was measured; once, however often called."""
    if not isinstance(get_train_fn_utils(), MeasuredTrainFnUtils):
        set_train_fn_utils(MeasuredTrainFnUtils(cost, nodes))
