"""What Ray Train shows a training loop while it is profiled: fewer workers, no reports."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from ray.train.v2._internal.execution.train_fn_utils import (
    DistributedTrainFnUtils,
    get_train_fn_utils,
    set_train_fn_utils,
)
from ray.train.v2.api.context import DistributedTrainContext

Metrics = Mapping[str, Any]


@dataclass(frozen=True)
class Shown:
    """Is what a loop shall see.

    Attributes:
        workers: World size.
        local_workers: World size on this worker's node.
        is_whole: Whether these are all workers of the start.
    """

    workers: int
    local_workers: int
    is_whole: bool


class ProfileContext(DistributedTrainContext):
    """Is the context of a loop that sees only the first workers. Ranks stay what they are."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def get_world_size(self) -> int:
        """See ray.train.TrainContext.get_world_size."""
        return self._shown.workers

    def get_local_world_size(self) -> int:
        """See ray.train.TrainContext.get_local_world_size."""
        return self._shown.local_workers


class ProfileTrainFnUtils(DistributedTrainFnUtils):
    """Keeps what a loop asks of Ray Train among the first workers.

    The originals count on every worker of the start, and would wait for the idle ones.
    """

    def __init__(self, shown: Shown, on_report: Callable[[Metrics], None]) -> None:
        self._shown = shown
        self._on_report = on_report

    def report(self, metrics: Metrics, *_: object, **__: object) -> None:
        """Keeps the report from Ray Train, its checkpoint too."""
        self._on_report(metrics)

    def get_context(self) -> ProfileContext:
        """See ray.train.get_context."""
        return ProfileContext(self._shown)

    def get_checkpoint(self) -> None:
        """Returns none: every cell starts afresh."""

    def get_all_reported_checkpoints(self, *_: object, **__: object) -> list[Any]:
        """Returns none, as none is kept."""
        return []

    def get_preemption_info(self) -> None:
        """Returns none: the run that follows reads it."""

    def get_dataset_shard(self, dataset_info: Any) -> Any:  # noqa: ANN401 - Train's own, private
        """See ray.train.get_dataset_shard.

        Raises:
            NotImplementedError: If only a part of the workers train: the shards are cut for
                all of them, and wait for one another.
        """
        if not self._shown.is_whole:
            msg = (
                "a loop that reads Ray Data shards can only be profiled on all "
                f"workers of a start, got {self._shown.workers} of them. Start that many."
            )
            raise NotImplementedError(msg)
        return super().get_dataset_shard(dataset_info)

    def barrier(self) -> None:
        """See ray.train.collective.barrier."""
        dist.barrier()

    def broadcast_from_rank_zero(self, data: Any) -> Any:  # noqa: ANN401 - any object
        """See ray.train.collective.broadcast_from_rank_zero."""
        box = [data]
        dist.broadcast_object_list(box, src=0)
        return box[0]


@contextmanager
def showing(shown: Shown, on_report: Callable[[Metrics], None]) -> Iterator[None]:
    """Shows the code of this process, in all its threads, another Ray Train for a while."""
    original = get_train_fn_utils()
    sizes = {"WORLD_SIZE": shown.workers, "LOCAL_WORLD_SIZE": shown.local_workers}
    before = {name: os.environ.get(name) for name in sizes}
    set_train_fn_utils(ProfileTrainFnUtils(shown, on_report))
    os.environ.update({name: str(size) for name, size in sizes.items()})
    try:
        yield
    finally:
        set_train_fn_utils(original)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
