"""Profiles on real process groups of workers, without Ray."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from raycosttune.train.profile_cells import (
    TOO_LARGE,
    Config,
    InvalidProfileError,
    Profiler,
    ProfileResult,
    Settings,
)
from raycosttune.train.profile_group import ProfileLostError, Subgroup
from raycosttune.train.profile_steps import StepWatch
from tests.train.world import CONTEXT

pytestmark = pytest.mark.slow
WORKERS = 3
SAMPLES = 240
TIMEOUT = 8.0
PATIENCE = 20.0  # other tests may hold a step up, and that is no cell's fault
# What the loop does besides training, by its global batch.
GOOD, BUGGY, SHORT, RUDE, STUCK, HUGE, HUGER = 12, 13, 14, 15, 16, 60, 90
BATCHES = (GOOD, BUGGY, SHORT, RUDE, STUCK, HUGE, HUGER)


def train(config: Config) -> None:
    workers, batch = config["scaling"]["workers"], config["batch"]
    assert dist.get_world_size() == workers
    if batch == HUGE and dist.get_rank() == 0:
        raise MemoryError
    network = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    data = torch.ones(SAMPLES, 4)
    sampler: DistributedSampler[Any] = DistributedSampler(data)  # type: ignore[arg-type]  # sized
    loader: DataLoader[Any] = DataLoader(data, batch // workers, sampler=sampler)  # type: ignore[arg-type]  # as above
    try:
        for epoch in range(2 if batch == SHORT else 100):
            sampler.set_epoch(epoch)
            for number, rows in enumerate(loader):
                if dist.get_rank() == 1 and number == 2:
                    disturb(batch)
                optimizer.zero_grad()
                network(rows).mean().backward()
                optimizer.step()
                if batch == SHORT and number == 1:
                    break
    finally:
        if batch == RUDE:
            dist.destroy_process_group()


def disturb(batch: int) -> None:
    if batch == BUGGY:
        msg = "a bug of the second worker"
        raise ValueError(msg)
    if batch == STUCK:
        time.sleep(PATIENCE + 1)


@contextmanager
def show(workers: int, watch: StepWatch) -> Iterator[None]:
    del workers, watch
    yield


def settings(cells: list[tuple[int, int]], patience: float = TIMEOUT) -> Settings:
    return Settings(
        train_loop=train,
        cells=tuple(sorted(cells, key=lambda cell: (-cell[0], cell[1]))),
        steps=4,
        least_steps=4,
        warmup=1,
        samples=None,
        timeout_seconds=patience,
        workers_key="scaling/workers",
        batch_key="batch",
    )


def work(rank: int, file: str, told: "Queue[Any]", many: bool) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=WORKERS)
    patience = PATIENCE if many else TIMEOUT
    group = Subgroup("127.0.0.1", rank // 2, patience)
    if not many and rank == 1:
        time.sleep(2 * TIMEOUT)  # never comes to its first cell
        return
    cells = [(3, batch) for batch in BATCHES] + [(2, GOOD), (2, HUGE)] + [(1, GOOD), (1, 18)]
    asked = settings(cells if many else [(2, GOOD)], patience)
    profiler = Profiler(asked, group, show, time.time() - 7)
    config = {"scaling": {"workers": 99}, "batch": 99}
    results: list[ProfileResult] = []
    try:
        results.extend(profiler.results(config))
    except ProfileLostError as error:
        told.put((rank, str(error)))
        return
    assert config == {"scaling": {"workers": 99}, "batch": 99}
    total = torch.ones(1)
    dist.all_reduce(total)  # all of them are together again
    told.put((rank, (results, float(total))))


def start(tmp_path: Path, *, many: bool, answers: int) -> dict[int, Any]:
    told: Queue[Any] = CONTEXT.Queue()
    started = [
        CONTEXT.Process(target=work, args=(rank, str(tmp_path / "group"), told, many))
        for rank in range(WORKERS)
    ]
    for process in started:
        process.start()
    try:
        return dict(told.get(timeout=100) for _ in range(answers))
    finally:
        for process in started:
            process.join(20)
            process.kill()


def test_one_start_measures_many_cells_and_no_failure_loses_another(tmp_path: Path) -> None:
    told = start(tmp_path, many=True, answers=WORKERS)
    assert [total for _, total in told.values()] == [3.0] * WORKERS
    results, _ = told[0]
    assert [len(result["cells"]) for result in results] == [3, 4, 6]  # after each worker count
    (*_, result) = results
    assert result["workers"] == WORKERS
    assert 7 <= result["startup_seconds"] < result["seconds"]
    cells = {(cell["workers"], cell["batch_size"]): cell for cell in result["cells"]}
    assert set(cells) == {(3, GOOD), (3, SHORT), (3, RUDE), (2, GOOD), (1, GOOD), (1, 18)}
    assert cells.pop((3, SHORT))["steps"] == 2
    for (workers, batch), cell in cells.items():
        assert cell["steps"] == 4
        assert cell["steps_per_epoch"] == math.ceil(SAMPLES / batch)
        assert cell["nodes"] == (2 if workers == 3 else 1)
        assert 0 < cell["step_seconds"] < cell["seconds"]
    failed = {(cell["workers"], cell["batch_size"]): cell for cell in result["failed"]}
    assert failed[3, BUGGY]["reason"] == "ValueError: a bug of the second worker"
    assert failed[3, HUGE]["out_of_memory"]
    for cell in ((3, HUGER), (2, HUGE)):
        assert (failed[cell]["reason"], failed[cell]["out_of_memory"]) == (TOO_LARGE.reason, True)
        assert failed[cell]["seconds"] < PATIENCE / 4
    assert not failed[3, STUCK]["out_of_memory"]
    assert len(failed) == 5


def test_a_worker_that_never_answers_ends_the_profile(tmp_path: Path) -> None:
    told = start(tmp_path, many=False, answers=1)
    assert "every worker of a profile must answer within 8 s" in next(iter(told.values()))


def test_large_batches_get_fewer_steps_as_these_take_longer() -> None:
    asked = replace(settings([(1, 20), (2, 200), (2, 30)]), steps=10, least_steps=3)
    assert [asked.steps_at(batch) for batch in (20, 30, 200)] == [10, 7, 3]
    assert replace(asked, steps=2).steps_at(200) == 2


def test_cells_can_have_no_more_workers_than_were_started(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/one", rank=0, world_size=1)
    try:
        group = Subgroup("127.0.0.1", 0, TIMEOUT)
        profiler = Profiler(settings([(2, GOOD)]), group, show, time.time())
        with pytest.raises(InvalidProfileError, match=r"at most the 1 workers .* got 2"):
            next(profiler.results({}))
    finally:
        dist.destroy_process_group()
