"""Times compute, exchange and loading in a few real steps of one worker and of two."""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from raycosttune.train.probe_child import run_children
from raycosttune.train.probe_given import MadeUp
from raycosttune.train.probe_job import Job, Stepper
from raycosttune.train.probe_load import load_job

HERE = "raycosttune.train.probe_step"
WARMUP = 3
SHARES = (1, 2, 4)  # what the batch is divided by where one worker is timed
FEWEST = 2  # samples: batch normalisation refuses to train on one


def time_alone(
    target: str, batch_size: int, *, device: str, steps: int, threads: int
) -> dict[str, Any]:
    """Times one worker in a process of its own: see `measure_alone`."""
    arguments = {"target": target, "batch_size": batch_size, "device": device}
    arguments |= {"steps": steps, "threads": threads}
    (told,) = run_children(f"{HERE}:measure_alone", arguments)
    return dict(told)


def time_pair(
    target: str,
    batch_size: int,
    *,
    device: str,
    steps: int,
    threads: int,
    prefix: Sequence[str] = (),
) -> dict[str, float]:
    """Times two workers on this machine, joined by gloo or NCCL: see `measure_pair`.

    A prefix of their command may put each behind a link of its own.
    """
    arguments = {"target": target, "batch_size": batch_size, "device": device}
    arguments |= {"steps": steps, "threads": threads}
    told = run_children(f"{HERE}:measure_pair", arguments, workers=2, prefix=prefix)
    return {name: max(each[name] for each in told) for name in told[0]}


def measure_alone(
    target: str, batch_size: int, device: str, steps: int, threads: int
) -> dict[str, Any]:
    """Times one worker in this process.

    Returns:
        `compute_seconds`, pairs of samples and seconds; for a batch, `loading_seconds` where
        nothing else is done, and `waiting_seconds`, what the loop waits for it; `loaders`,
        processes that load; `samples` of an epoch and `parameter_bytes`; `made_up`, the shape of
        samples that stand for data, else None.
    """
    torch.set_num_threads(threads)
    job = load_job(target)
    stepper = Stepper(job, device)
    sizes = sorted({max(FEWEST, batch_size // share) for share in SHARES})
    sizes = sizes if len(sizes) > 1 else [FEWEST, 2 * FEWEST]
    batches = {size: job.batch(size) for size in sizes}
    timed: dict[int, list[float]] = {size: [] for size in sizes}
    for step in range(WARMUP + steps):
        for size, batch in batches.items():  # in turn, so that a slow moment hits all
            seconds = timed_step(stepper, partial(stepper.step, batch))
            if step >= WARMUP:
                timed[size].append(seconds)

    def train(batch: Any) -> None:  # noqa: ANN401 - as the dataset has it
        stepper.step(batch)
        stepper.wait()

    return {
        "compute_seconds": [(size, statistics.median(found)) for size, found in timed.items()],
        "loading_seconds": statistics.median(_gaps(job, batch_size, steps, lambda _: None)),
        "waiting_seconds": statistics.median(_gaps(job, batch_size, steps, train)),
        "loaders": int(job.loader.get("num_workers", 0)),
        "samples": job.samples,
        "parameter_bytes": job.parameter_bytes,
        "made_up": job.dataset.shape if isinstance(job.dataset, MadeUp) else None,
    }


def measure_pair(
    target: str, batch_size: int, device: str, steps: int, threads: int
) -> dict[str, float]:
    """Times this worker of two, with the exchange and without, in turn.

    Returns:
        `step_seconds` and `compute_seconds` without the exchange; `exchange_seconds` of the
        gradients where nothing else is done, and `latency_seconds` of one number.
    """
    torch.set_num_threads(threads)
    place = torch.device(device)
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        torch.cuda.set_device(place)
    joined(place)
    job = load_job(target)
    stepper = Stepper(job, str(place), DistributedDataParallel)
    batch = job.batch(batch_size, first=dist.get_rank() * batch_size)
    gradient = torch.zeros(max(1, job.parameter_bytes // 4), device=place)
    number = torch.zeros(1, device=place)
    ways: dict[str, Callable[[], object]] = {
        "step_seconds": lambda: stepper.step(batch),
        "compute_seconds": lambda: _unsynchronised(stepper, batch),
        "exchange_seconds": lambda: dist.all_reduce(gradient),
        "latency_seconds": lambda: dist.all_reduce(number),
    }
    timed: dict[str, list[float]] = {name: [] for name in ways}
    for step in range(WARMUP + steps):
        for name, way in ways.items():
            dist.barrier()
            seconds = timed_step(stepper, way)
            if step >= WARMUP:
                timed[name].append(seconds)
    dist.destroy_process_group()
    return {name: statistics.median(found) for name, found in timed.items()}


def joined(place: torch.device) -> None:
    """Joins the processes that `run_children` started: by NCCL where each has a GPU, else gloo."""
    is_apart = place.type == "cuda" and torch.cuda.device_count() >= int(os.environ["WORLD_SIZE"])
    dist.init_process_group(
        "nccl" if is_apart else "gloo",
        init_method=f"file://{os.environ['RAYCOSTTUNE_STORE']}",
        rank=int(os.environ["RANK"]),
        world_size=int(os.environ["WORLD_SIZE"]),
        timeout=timedelta(seconds=120),
    )


def timed_step(stepper: Stepper, step: Callable[[], object]) -> float:
    """Returns the seconds of a step, to its end on the device."""
    stepper.wait()
    began = time.perf_counter()
    step()
    stepper.wait()
    return time.perf_counter() - began


def _unsynchronised(stepper: Stepper, batch: Any) -> None:  # noqa: ANN401 - as the dataset has it
    model = stepper.model
    with model.no_sync() if isinstance(model, DistributedDataParallel) else nullcontext():
        stepper.step(batch)


def _gaps(job: Job, batch_size: int, steps: int, use: Callable[[Any], object]) -> Iterator[float]:
    """Yields what each batch of a loader was waited for, but for the first ones."""
    wanted = WARMUP + steps
    order = [number % job.samples for number in range(batch_size * wanted)]
    batches = iter(DataLoader(job.dataset, batch_size, sampler=order, **job.loader))
    for step in range(wanted):
        began = time.perf_counter()
        batch = next(batches)
        waited = time.perf_counter() - began
        if step >= WARMUP:
            yield waited
        use(batch)
