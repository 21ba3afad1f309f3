"""Runs a function on several processes that are joined as workers of one run are."""

import multiprocessing
import os
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

CONTEXT = multiprocessing.get_context("forkserver")
# The first optimizer or DistributedDataParallel of a process imports torch._dynamo, for seconds.
CONTEXT.set_forkserver_preload(
    ["torch._dynamo", "raycosttune.train.data", "raycosttune.train.model"]
)


def run_world(
    workers: int, function: Callable[..., Any], *arguments: Any, store: Path, seconds: float = 90
) -> list[Any]:
    """Calls `function(*arguments)` on each of the workers, and returns what each returned."""
    told: Any = CONTEXT.Queue()
    processes = [
        CONTEXT.Process(target=_work, args=(rank, workers, str(store), told, function, arguments))
        for rank in range(workers)
    ]
    for process in processes:
        process.start()
    try:
        answers = dict(told.get(timeout=seconds) for _ in processes)
    finally:
        for process in processes:
            process.join(5)
            process.kill()
    problems = [answer for answer in answers.values() if isinstance(answer, RemoteError)]
    if problems:
        raise problems[0]
    return [answers[rank] for rank in range(workers)]


class RemoteError(Exception):
    """Is what a worker raised, with its traceback."""


def _work(
    rank: int,
    workers: int,
    store: str,
    told: Any,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    import torch  # noqa: PLC0415 - only workers need it
    import torch.distributed as dist  # noqa: PLC0415 - in the worker

    torch.set_num_threads(1)
    os.environ.update(LOCAL_RANK=str(rank), RANK=str(rank), WORLD_SIZE=str(workers))
    if workers > 1:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{store}",
            rank=rank,
            world_size=workers,
            timeout=timedelta(seconds=60),
        )
    try:
        told.put((rank, function(*arguments)))
    except Exception:  # noqa: BLE001 - told to the test
        told.put((rank, RemoteError(traceback.format_exc())))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
