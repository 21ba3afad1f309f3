"""The switch for shares that follow the speeds of the workers."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import ray
from ray.train.v2._internal.execution.callback import (
    ReportCallback,
    WorkerCallback,
    WorkerGroupCallback,
)

from raycosttune.core.cost import CostMetric, WorkerHours
from raycosttune.core.memory import is_out_of_memory
from raycosttune.core.rebalance import Balance, Equal, Policy
from raycosttune.errors import InvalidRebalanceError
from raycosttune.train import keys
from raycosttune.train.settings import Settings, check_policy, install

logger = logging.getLogger(__name__)
ANSWER_SECONDS = 5.0
SMALLER = 0.8
Place = Literal["workers", "controller"]
PLACES = get_args(Place)


class RebalanceCallback(WorkerGroupCallback, ReportCallback, WorkerCallback):
    """Lets the shares of a batch follow the speeds of the workers.

    Put it among the callbacks of a run whose loop uses `prepare_data_loader` and
    `prepare_model`; without it the shares stay equal. It adds to each report what was measured
    of the workers (names in `raycosttune.train.keys`), and never raises into a run. Where a
    worker runs out of memory, its share is capped below what it had: with
    `FailureConfig(max_failures=...)` the run goes on from its last checkpoint.

    Args:
        policy: Turns what was measured into shares; `Balance()` by default.
        every_steps: Steps between two adjustments within an epoch; at its end only by default.
        plan: Who plans: the "workers" among themselves in about a millisecond, or the
            "controller" of the run, whose plans hold an epoch late.
        cost: Prices the run in its reports.

    Raises:
        InvalidRebalanceError: If an argument is unusable.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        every_steps: int | None = None,
        plan: Place = "workers",
        cost: CostMetric | None = None,
    ) -> None:
        self._policy: Policy = Balance() if policy is None else policy
        self._every_steps = every_steps
        self._place: str = plan
        self._cost: CostMetric = WorkerHours() if cost is None else cost
        self._check()
        self._caps: dict[str, int] = {}
        self._nodes = 1
        self._requested_at: float | None = None
        self._held_since = 0.0
        self._paid_seconds = 0.0
        self._group: Any = None

    def _check(self) -> None:
        cost: object = self._cost
        check_policy(self._policy, self._every_steps)
        if self._place not in PLACES:
            msg = f'plan must be "workers" or "controller", got {self._place!r}.'
            raise InvalidRebalanceError(msg)
        if not isinstance(cost, CostMetric):
            msg = (
                f"cost must have a unit and turn (allocation, seconds) into a cost, got "
                f"{self._cost!r}. Take WorkerHours() or NodeHours()."
            )
            raise InvalidRebalanceError(msg)

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out the workers: a copy goes to each of them."""
        return {**self.__dict__, "_group": None}

    def before_worker_group_start(self, worker_group_context: object) -> None:
        """See ray.train's WorkerGroupCallback."""
        del worker_group_context
        self._requested_at, self._held_since = time.time(), time.monotonic()

    def before_init_train_context(self, workers: list[Any]) -> dict[str, list[Any]]:
        """See ray.train's ExecutionGroupCallback."""
        _guarded(lambda: self._see(workers))
        return {}

    def _see(self, workers: list[Any]) -> None:
        self._nodes = len({worker.metadata.node_id for worker in workers}) or 1

    def after_worker_group_start(self, worker_group: Any) -> None:  # noqa: ANN401 - private
        """See ray.train's WorkerGroupCallback."""
        self._group = worker_group

    def before_worker_group_shutdown(self, worker_group: object) -> None:
        """See ray.train's WorkerGroupCallback."""
        del worker_group
        self._group = None
        if self._requested_at is not None:
            self._paid_seconds += time.monotonic() - self._held_since
            self._requested_at = None

    def after_init_train_context(self) -> None:
        """See ray.train's WorkerCallback; runs on each worker."""
        _guarded(self._install)

    def _install(self) -> None:
        from raycosttune.train.received import Received  # noqa: PLC0415 - on a worker only
        from raycosttune.train.worker_report import measure_reports  # noqa: PLC0415 - as above

        policy = Received() if self._place == "controller" else self._policy
        install(
            Settings(
                policy=policy,
                every_steps=self._every_steps,
                caps=self._caps,
                requested_at=self._requested_at,
                paid_seconds=self._paid_seconds,
            )
        )
        measure_reports(self._cost, self._nodes)

    def after_report(self, training_report: object, metrics: list[dict[str, Any]]) -> None:
        """See ray.train's ReportCallback."""
        del training_report
        if self._place == "controller":
            _guarded(lambda: self._plan(metrics))

    def _plan(self, metrics: list[dict[str, Any]]) -> None:
        from raycosttune.train.received import measured, receive  # noqa: PLC0415 - needs torch

        if self._group is None or keys.SHARES not in metrics[0]:
            return
        first = self._group.get_workers()[0]
        told = ray.get(first.execute_async(measured), timeout=ANSWER_SECONDS)
        if told is not None:
            logs, shares, total = told
            first.execute_async(receive, self._policy.plan(logs, shares, total))

    def after_worker_group_poll_status(self, worker_group_status: Any) -> None:  # noqa: ANN401 - Ray's, private
        """See ray.train's WorkerGroupCallback."""
        _guarded(lambda: self._cap(worker_group_status.errors))

    def _cap(self, errors: Mapping[int, Exception]) -> None:
        if not errors:
            return
        from raycosttune.train.received import own_share  # noqa: PLC0415 - needs torch

        workers = [] if self._group is None else self._group.get_workers()
        for rank, error in errors.items():
            if rank >= len(workers) or not is_out_of_memory(error):
                continue
            told = ray.get(workers[rank].execute_async(own_share), timeout=ANSWER_SECONDS)
            if told is not None:
                name, share = told
                self._caps[name] = max(min(int(SMALLER * share), share - 1), 1)
                logger.warning(
                    "worker %d ran out of memory with %d samples a step; from its next start on "
                    "it gets at most %d.",
                    *(rank, share, self._caps[name]),
                )


def measuring(callbacks: Sequence[object]) -> list[RebalanceCallback]:
    """Returns what measures the workers where none of the callbacks does; shares stay equal."""
    if any(isinstance(callback, RebalanceCallback) for callback in callbacks):
        return []
    return [RebalanceCallback(Equal())]


_failed: set[str] = set()


def _guarded(hook: Callable[[], None]) -> None:
    """Runs a hook; logs what it raises, each kind once."""
    try:
        hook()
    except Exception as error:
        kind = f"{type(error).__name__}: {error}"
        if kind not in _failed:
            _failed.add(kind)
            logger.exception("the workers can't be balanced; the run trains on")
