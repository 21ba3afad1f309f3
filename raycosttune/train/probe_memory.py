"""Measures the memory of real steps at a few batches, each in a process of its own."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch.distributed as dist

from raycosttune.advise import MemoryLine, fit_memory_line, largest_batch
from raycosttune.advise.quantity import count, positive
from raycosttune.errors import InvalidAdviceError, RayCostTuneError
from raycosttune.train.probe_child import ProbeError, ProbeMemoryError, run_children
from raycosttune.train.probe_job import Stepper
from raycosttune.train.probe_load import load_job
from raycosttune.train.probe_machine import available_bytes, limit_own_bytes, peak_bytes

STEPS = 4  # an allocator keeps some of what earlier steps freed
RESERVE = 0.05  # of the memory: what a step takes varies from run to run
HEADROOM = 1.2  # of the memory: where a probe itself is stopped, as the system shall not be
ENOUGH = 1.1  # what seems to fit over what was measured
MOST_RUNGS, MOST_GROWTH = 6, 32  # from the first batch on, as a probe shall not take long
MEASURE = "raycosttune.train.probe_memory:measure_step"
# Has glibc return large pieces at once: what a step needs, without what the allocator keeps.
LEAN = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}


@dataclass(frozen=True)
class MemoryProbe:
    """Is what was found about memory.

    Attributes:
        line: Bytes of a step against the samples of a worker, as extended beyond what was measured.
        peak_bytes: Measured peaks by samples.
        failed_batch: Fewest samples that were too many, None where all that were tried fit.
        memory_bytes: What a worker may use.
    """

    line: MemoryLine
    peak_bytes: Mapping[int, float]
    failed_batch: int | None
    memory_bytes: float

    @property
    def largest_batch(self) -> int:
        """The most samples of a worker, with a reserve.

        Raises:
            InvalidAdviceError: If not even one fits.
        """
        return largest_batch(self.memory_bytes * (1 - RESERVE), self.line, self.failed_batch)

    @property
    def fitting(self) -> int:
        """The same, but 0 where not even one fits."""
        try:
            return self.largest_batch
        except InvalidAdviceError:
            return 0


def probe_memory(
    target: str,
    batch_size: int,
    *,
    memory_bytes: float | None = None,
    device: str = "cpu",
    steps: int = STEPS,
    prefix: Sequence[str] = (),
) -> MemoryProbe:
    """Takes steps of one sample, of a batch, and of what then seems to fit.

    The line goes through one sample, two where a model refuses one, and the largest batch that
    was measured. Allocators keep small pieces that they are given back and return large ones, so
    memory bends downwards, and the line lies above it further on. How much they keep differs from
    run to run: so the batch is measured where glibc returns all, which says what seems to fit, and
    only this as a worker would run it. Beyond 32 times the first batch nothing is measured.

    Memory that runs out is a bound. Where PyTorch's process group exists, all ranks must call
    this together; the answer is the same on all, and fits on all.

    Args:
        target: `module:function`, which makes the job.
        batch_size: Samples of a worker to begin with.
        memory_bytes: What a worker may use; by default what its device has, or the system
            leaves to this process.
        device: "cpu", "cuda" or one of several.
        steps: Steps at each batch.
        prefix: Of the processes' command, such as one that limits their memory.

    Raises:
        InvalidAdviceError: If not even one sample fits, or an argument is unusable.
        ProbeError: If a step fails for another reason.
    """
    given = available_bytes(device) if memory_bytes is None else memory_bytes
    memory = positive("memory_bytes", given)
    arguments = {"target": target, "steps": count("steps", steps), "device": device}
    arguments["limit_bytes"] = memory * HEADROOM

    def measure(samples: int, variables: Mapping[str, str] | None = None) -> float:
        told = arguments | {"samples": samples}
        (peak,) = run_children(MEASURE, told, prefix=prefix, variables=variables)
        return float(peak)

    try:
        batch = count("batch_size", batch_size)
        need = partial(measure, variables=LEAN) if device == "cpu" else None
        probe = climb(measure, batch, memory, need)
    except RayCostTuneError as error:
        _agree(error)
        raise
    return _agree(probe)


def measure_step(target: str, samples: int, steps: int, device: str, limit_bytes: float) -> float:
    """Takes steps in this process and returns its peak: what CUDA's allocator held, or its own."""
    if device == "cpu":
        limit_own_bytes(limit_bytes)
    job = load_job(target)
    stepper = Stepper(job, device)
    for step in range(steps):
        stepper.step(job.batch(samples, first=step * samples))
        stepper.wait()
    return peak_bytes(stepper.device)


def climb(
    measure: Callable[[int], float],
    batch_size: int,
    memory_bytes: float,
    need: Callable[[int], float] | None = None,
) -> MemoryProbe:
    """Measures until what seems to fit is hardly more than what was measured.

    Args:
        measure: Returns the peak of steps of so many samples, or raises `ProbeMemoryError`.
        batch_size: Samples to begin with, after one.
        memory_bytes: What a worker may use.
        need: Returns what such steps can't do without, where that is known apart.

    Raises:
        InvalidAdviceError: If not even one sample fits.
    """
    try:
        peaks = _first(measure)
    except ProbeMemoryError as error:
        msg = f"memory_bytes must hold a step of one sample, got {memory_bytes:.4g}: {error}"
        raise InvalidAdviceError(msg) from error
    failed: int | None = None
    begin = wanted = max(batch_size, min(peaks) + 1)
    if need is not None:
        leap = min(_leap(need, begin, peaks, memory_bytes), MOST_GROWTH * batch_size)
        wanted = max(begin, leap)
    for _ in range(MOST_RUNGS):
        most, enough = max(peaks), 1.0
        try:
            peak = measure(wanted)
        except ProbeMemoryError:
            failed, wanted = wanted, max(math.isqrt(most * wanted), begin * (begin < wanted))
        else:
            # Memory bends: below a batch that doesn't fit, the line through it promises too much.
            seen = peaks | {wanted: peak}
            if peak > memory_bytes:
                failed = wanted
            else:
                peaks, most, enough = seen, wanted, ENOUGH
            found = MemoryProbe(_line(seen), seen, failed, memory_bytes)
            wanted = min(found.fitting, MOST_GROWTH * batch_size)
        if wanted <= most * enough:
            break
    return MemoryProbe(_line(peaks), peaks, failed, memory_bytes)


def _leap(
    need: Callable[[int], float], batch: int, peaks: Mapping[int, float], memory_bytes: float
) -> int:
    """Returns what seems to fit by what one batch can't do without, 0 where it doesn't itself."""
    try:
        seen = {**peaks, batch: need(batch)}
    except ProbeMemoryError:
        return 0
    return MemoryProbe(_line(seen), seen, None, memory_bytes).fitting


def _first(measure: Callable[[int], float]) -> dict[int, float]:
    """Returns the peak of the fewest samples: batch normalisation refuses to train on one."""
    try:
        return {1: measure(1)}
    except ProbeMemoryError:
        raise
    except ProbeError:
        return {2: measure(2)}


def _line(peaks: Mapping[int, float]) -> MemoryLine:
    """Returns the line through the smallest and the largest batch."""
    least, most = min(peaks), max(peaks)
    try:
        return fit_memory_line({least: peaks[least], most: peaks[most]})
    except InvalidAdviceError:  # no more fit, or they take no more
        return MemoryLine(0.0, peaks[least] / least)


def _agree(found: MemoryProbe | RayCostTuneError) -> MemoryProbe:
    """Returns what fits on all ranks, or raises what one of them raised."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        if isinstance(found, RayCostTuneError):
            raise found
        return found
    told: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(told, found)
    for rank, each in enumerate(told):
        if isinstance(each, RayCostTuneError):
            each.add_note(f"on rank {rank}")
            raise each
    failed = [each.failed_batch for each in told if each.failed_batch is not None]
    return MemoryProbe(
        line=MemoryLine(
            max(each.line.fixed_bytes for each in told),
            max(each.line.sample_bytes for each in told),
        ),
        peak_bytes={
            samples: max(each.peak_bytes.get(samples, 0.0) for each in told)
            for samples in sorted(set().union(*(each.peak_bytes for each in told)))
        },
        failed_batch=min(failed, default=None),
        memory_bytes=min(each.memory_bytes for each in told),
    )
