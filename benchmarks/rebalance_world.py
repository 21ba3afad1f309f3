"""Workers of a benchmark: processes that gloo joins, whose epochs their parent clocks."""

import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, Self

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["torch", "raycosttune.train.data", "raycosttune.train.model"])
MOST_SECONDS = 300.0  # between two signs of life
TICK = "tick"
Tell = Callable[[], None]


class WorkerError(RuntimeError):
    """Says that a worker raised, ended or fell silent."""


@dataclass(frozen=True)
class Run:
    """Is what came of a job.

    Attributes:
        answers: What it returned on each worker.
        ticks: Seconds of this process's clock at which the last worker told: once before the
            first epoch, and at the end of each.
    """

    answers: list[Any]
    ticks: list[float]

    @property
    def epoch_seconds(self) -> list[float]:
        """Seconds of each epoch."""
        return [end - begin for begin, end in pairwise(self.ticks)]


class World:
    """Holds workers that run one job after the other together.

    Args:
        workers: How many.
        cores: Core on which each is pinned, None to leave that to the system.
    """

    def __init__(self, workers: int, cores: list[int] | None = None) -> None:
        self.workers = workers
        self._folder = tempfile.TemporaryDirectory()
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        store = str(Path(self._folder.name) / "store")
        for rank in range(workers):
            mine, theirs = CONTEXT.Pipe()
            core = None if cores is None else cores[rank]
            arguments = (rank, workers, store, core, theirs)
            process = CONTEXT.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(mine)
            self._processes.append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pipe in self._pipes:
            pipe.close()  # the end for a worker that waits for a job
        for process in self._processes:
            process.join(5)
            process.kill()
            process.join()
        self._folder.cleanup()

    def run(self, job: Callable[..., Any], *arguments: object) -> Run:
        """Calls `job(tell, rank, *arguments)` on each worker.

        Args:
            job: Runs on the workers; calls `tell` before its first epoch and after each.
            *arguments: More for it.

        Raises:
            WorkerError: If a worker raises, ends or falls silent.
        """
        for pipe in self._pipes:
            pipe.send((job, arguments))
        answers: dict[int, Any] = {}
        ticks = [0] * self.workers
        heard: list[float] = []
        while len(answers) < self.workers:
            for rank, message in self._hear(set(range(self.workers)) - answers.keys()):
                if message == TICK:
                    ticks[rank] += 1
                    heard += [time.perf_counter()] * (min(ticks) > len(heard))
                else:
                    answers[rank] = message[0]
        return Run([answers[rank] for rank in range(self.workers)], heard)

    def _hear(self, ranks: set[int]) -> list[tuple[int, Any]]:
        ready = wait([self._pipes[rank] for rank in ranks], timeout=MOST_SECONDS)
        if not ready:
            msg = f"workers must tell something within {MOST_SECONDS:.0f} s, got nothing"
            raise WorkerError(msg)
        found = []
        for rank in ranks:
            if self._pipes[rank] in ready:
                try:
                    message = self._pipes[rank].recv()
                except EOFError:
                    message = "it ended"
                if isinstance(message, str) and message != TICK:
                    msg = f"worker {rank} must train to the end, got: {message}"
                    raise WorkerError(msg)
                found.append((rank, message))
        return found


def _serve(rank: int, workers: int, store: str, core: int | None, pipe: Connection) -> None:
    """Runs jobs until the parent closes its end; an answer is told as a tuple."""
    import torch
    import torch.distributed as dist

    if core is not None:
        os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)
    os.environ.update(LOCAL_RANK=str(rank), RANK=str(rank), WORLD_SIZE=str(workers))
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=workers,
        timeout=timedelta(seconds=MOST_SECONDS),
    )
    while True:
        try:
            job, arguments = pipe.recv()
        except EOFError:
            break
        try:
            pipe.send((job(lambda: pipe.send(TICK), rank, *arguments),))
        except BrokenPipeError:  # the parent is gone
            break
        except Exception:  # noqa: BLE001 - told to the parent
            pipe.send(traceback.format_exc())
    dist.destroy_process_group()
