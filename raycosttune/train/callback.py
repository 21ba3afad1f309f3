"""Ray Train callbacks that meter a run and hand its reports to Tune.

They run in Train's controller, where an exception would end the run: every hook logs its
own, once, and the run goes on without metering.
"""

import logging
from collections.abc import Callable
from typing import Any

from ray.train import Checkpoint
from ray.train.v2._internal.execution.callback import WorkerGroupCallback
from ray.tune.integration.ray_train import TuneReportCallback

from raycosttune.core.value import read_count
from raycosttune.train.meter import Meter

logger = logging.getLogger(__name__)


class MeterStartCallback(WorkerGroupCallback):
    """Tells a meter when workers are asked for and when they begin to train."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def before_worker_group_start(self, worker_group_context: object) -> None:
        """See ray.train's WorkerGroupCallback."""
        workers = read_count(getattr(worker_group_context, "num_workers", None))
        _guarded(lambda: self._meter.request(workers))

    def after_worker_group_training_start(self, worker_group: object) -> None:
        """See ray.train's WorkerGroupCallback."""
        del worker_group
        _guarded(self._meter.begin_training)


class MeterReportCallback(TuneReportCallback):
    """Adds what the meter measured to what Tune sees.

    It shares its meter with a MeterStartCallback: Train calls only the user hooks of an
    object that has both kinds.
    """

    def __init__(self, meter: Meter) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in Ray
        self._meter = meter

    def after_report(
        self,
        run_context: Any,  # noqa: ANN401 - Train's own type is private
        metrics: list[dict[str, Any]],
        checkpoint: Checkpoint | None,
    ) -> None:
        """See ray.train.UserCallback.after_report."""
        path = None if checkpoint is None else str(checkpoint.path)
        measured: dict[str, Any] = {}
        _guarded(lambda: measured.update(self._meter.report(metrics[0], path)))
        told = [{**metrics[0], **measured}, *metrics[1:]]
        super().after_report(run_context, told, checkpoint)


_failed: set[str] = set()


def _guarded(hook: Callable[[], None]) -> None:
    try:
        hook()
    except Exception as error:
        kind = f"{type(error).__name__}: {error}"
        if kind not in _failed:
            _failed.add(kind)
            logger.exception("a run can't be metered; it trains on")
