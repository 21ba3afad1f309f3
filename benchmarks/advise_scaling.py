"""Steps of one and of two workers, and of two on a slow link, predicted and measured."""

import itertools
import math
import os
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from raycosttune.advise import Cluster, Link, bucketed_exposed_seconds, ring_seconds
from raycosttune.train.probe_child import run_children
from raycosttune.train.probe_job import Stepper
from raycosttune.train.probe_load import load_job
from raycosttune.train.probe_profile import profile_job
from raycosttune.train.probe_step import joined, time_pair

TRAIN = "advise_scaling:train"
WARMUP = 5
BACKWARD = 2 / 3  # of the compute: a forward pass, and two of its size backwards
BUCKET = 25 * 2**20  # bytes, of DistributedDataParallel
Figures = dict[str, Any]


def train(target: str, batch_size: int, steps: int) -> float:
    """Trains as users do, on this worker's part of each batch; returns seconds of a step."""
    torch.set_num_threads(1)
    rank, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if workers > 1:
        joined(torch.device("cpu"))
    job = load_job(target)
    stepper = Stepper(job, "cpu", DistributedDataParallel if workers > 1 else None)
    share = batch_size // workers
    order = [k % job.samples for k in range(rank * share, share * (WARMUP + steps + rank))]
    ends = []
    for batch in DataLoader(job.dataset, share, sampler=order, **job.loader):
        stepper.step(batch)
        ends.append(time.perf_counter())
    if workers > 1:
        dist.destroy_process_group()
    took = [after - before for before, after in itertools.pairwise(ends)]
    return statistics.median(took[WARMUP - 1 :])


def measured(
    target: str, batch_size: int, workers: int, steps: int, prefix: Sequence[str] = ()
) -> float:
    """Returns seconds of a step in a run of its own."""
    arguments = {"target": target, "batch_size": batch_size, "steps": steps}
    return float(max(run_children(TRAIN, arguments, workers=workers, prefix=prefix)))


def check(target: str, batch_size: int, steps: int, rounds: int) -> list[Figures]:
    """Predicts steps of one and two workers at two batches from a profile at the first.

    Profiles and runs take turns, so that slow moments of the machine hit both.
    """
    cells = [(n, b) for n in (1, 2) for b in (batch_size, 2 * batch_size)]
    ratios: dict[tuple[int, int], list[float]] = {cell: [] for cell in cells}
    seconds: dict[tuple[int, int], list[float]] = {cell: [] for cell in cells}
    for _ in range(rounds):
        profile = profile_job(target, batch_size, steps=steps, memory=False)
        for workers, batch in cells:
            found = measured(target, batch, workers, steps)
            seconds[workers, batch].append(found)
            predicted = profile.step_seconds(workers, batch, Cluster(2))
            ratios[workers, batch].append(predicted / found)
    return [
        {
            "job": target.partition(":")[2],
            "workers": workers,
            "batch_size": batch,
            "measured_seconds": statistics.median(seconds[workers, batch]),
            "ratio": statistics.median(ratios[workers, batch]),
            "each": ratios[workers, batch],
        }
        for workers, batch in cells
    ]


@contextmanager
def throttled(bits_per_second: float) -> Iterator[list[str]]:
    """Yields a command's prefix that puts each of two workers into a network of its own.

    They are joined by a virtual cable; each end sends no faster than told, by a token bucket of
    the kernel. Needs the rights to make network namespaces.
    """
    name = f"rct{os.getpid() % 10000}"
    spaces = [f"{name}-{rank}" for rank in (0, 1)]
    try:
        for space in spaces:
            _system("ip", "netns", "add", space)
        ends = [f"{name}n{rank}" for rank in (0, 1)]
        _system(
            *("ip", "link", "add", ends[0], "netns", spaces[0], "type", "veth"),
            *("peer", "name", ends[1], "netns", spaces[1]),
        )
        for rank, (space, end) in enumerate(zip(spaces, ends, strict=True)):
            _system("ip", "-n", space, "addr", "add", f"10.91.0.{rank + 1}/24", "dev", end)
            _system("ip", "-n", space, "link", "set", end, "up")
            _system("ip", "-n", space, "link", "set", "lo", "up")
            rate = f"{bits_per_second:.0f}bit"
            _system(
                *("tc", "-n", space, "qdisc", "add", "dev", end, "root", "tbf"),
                *("rate", rate, "burst", "128kb", "latency", "500ms"),
            )
        inside = f'exec ip netns exec {name}-$RANK env GLOO_SOCKET_IFNAME={name}n$RANK "$@"'
        yield ["sh", "-c", inside, "sh"]
    finally:
        for space in spaces:
            _system("ip", "netns", "del", space, check=False)


def check_throttled(
    target: str, batch_size: int, bytes_per_second: float, steps: int, rounds: int
) -> Figures:
    """Predicts a step of two workers on a slow link from their compute and the link's rate.

    The exchange is a ring's on the link, in the buckets of PyTorch. Steps with it and without it
    take turns, so that slow moments of the machine hit both.
    """
    size = load_job(target).parameter_bytes
    exchange = ring_seconds(size, 2, Link(bytes_per_second))
    buckets = math.ceil(size / BUCKET)
    ratios, found = [], []
    for _ in range(rounds):
        with throttled(8 * bytes_per_second) as prefix:
            how = {"steps": steps, "threads": 1}
            pair = time_pair(target, batch_size // 2, device="cpu", prefix=prefix, **how)
        compute = pair["compute_seconds"]
        predicted = compute + bucketed_exposed_seconds(BACKWARD * compute, exchange, buckets)
        found.append(pair["step_seconds"])
        ratios.append(predicted / found[-1])
    return {
        "job": target.partition(":")[2],
        "batch_size": batch_size,
        "bytes_per_second": bytes_per_second,
        "exchange_seconds": exchange,
        "measured_seconds": statistics.median(found),
        "ratio": statistics.median(ratios),
        "each": ratios,
    }


def _system(*command: str, check: bool = True) -> None:
    subprocess.run(command, check=check, capture_output=True)
