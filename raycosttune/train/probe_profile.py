"""A short real profile of a job: memory, compute, loading, and the exchange of two workers."""

import logging
import math

from raycosttune.advise import JobProfile, Memory, Pair, fit_compute_line
from raycosttune.advise.quantity import count, positive
from raycosttune.train.probe_load import parts_of
from raycosttune.train.probe_memory import probe_memory
from raycosttune.train.probe_step import time_alone, time_pair

STEPS = 10
logger = logging.getLogger(__name__)


def profile_job(
    target: str,
    batch_size: int,
    *,
    device: str = "cpu",
    steps: int = STEPS,
    threads: int = 1,
    pair: bool = True,
    memory: bool = True,
    memory_bytes: float | None = None,
) -> JobProfile:
    """Times and measures real steps, each in processes of their own on this machine.

    Memory comes first: a batch that one worker can't hold is timed by as much of it as it can,
    and what the whole would take follows from the line through these. What comes next is logged.

    Args:
        target: `module:function`, which takes nothing and makes a job: see `job_of`.
        batch_size: Global batch.
        device: "cpu", "cuda" or one of several.
        steps: Steps timed, after a few that are not.
        threads: Of PyTorch in a worker on the CPU; a worker of Ray Train that reserves one CPU
            has one.
        pair: Whether to time two workers as well, with half of the batch each.
        memory: Whether to measure memory too, which takes longest.
        memory_bytes: What a worker may use; by default what its device has, or the system
            leaves to this process.

    Raises:
        InvalidAdviceError: If the job can't be made, not even one sample fits into memory, or
            an argument is unusable.
        ProbeError: If a step fails.
    """
    parts_of(target)  # before any process starts
    batch = count("batch_size", batch_size)
    if memory_bytes is not None:
        positive("memory_bytes", memory_bytes)
    count("steps", steps)
    count("threads", threads)
    held = None
    if memory:
        logger.info("measuring the memory of steps at a few batches")
        held = _memory(target, batch, device, memory_bytes)
    most = batch if held is None else min(batch, held.largest_batch)
    logger.info("timing the steps and the loading of one worker")
    alone = time_alone(target, most, device=device, steps=steps, threads=threads)
    timed = {int(samples): float(seconds) for samples, seconds in alone["compute_seconds"]}
    two = None
    if pair:
        logger.info("timing the steps and the exchange of two workers")
        share = min(most, math.ceil(batch / 2))
        told = time_pair(target, share, device=device, steps=steps, threads=threads)
        two = Pair(share, **told)
    made_up = alone["made_up"]
    return JobProfile(
        batch_size=batch,
        samples=alone["samples"] if made_up is None else None,
        parameter_bytes=alone["parameter_bytes"],
        compute=fit_compute_line(timed),
        loading_seconds=0.0 if made_up else alone["loading_seconds"] * batch / most,
        waiting_seconds=0.0 if made_up else alone["waiting_seconds"] * batch / most,
        loaders=alone["loaders"],
        pair=two,
        memory=held,
        made_up=None if made_up is None else tuple(made_up),
    )


def _memory(target: str, batch: int, device: str, memory_bytes: float | None) -> Memory:
    probe = probe_memory(target, batch, device=device, memory_bytes=memory_bytes)
    return Memory(probe.line, probe.memory_bytes, probe.largest_batch)
