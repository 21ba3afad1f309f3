"""The largest batch under a limit of memory, predicted and found by trying."""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from raycosttune.train.probe_child import ProbeMemoryError, run_children
from raycosttune.train.probe_memory import MEASURE, probe_memory

GROUPS = Path("/sys/fs/cgroup")
STEPS = 6
NEAR = 0.02  # of the batch, to which what fits is found
BAR = 0.9  # of what fits, which a prediction shall reach
NO_LIMIT = 2.0**50


@contextmanager
def limited(memory_bytes: float) -> Iterator[tuple[str, list[str]]]:
    """Yields how memory is limited, and the prefix of a command that is limited so."""
    name = f"raycosttune-advise-{os.getpid()}"
    for folder, file in (
        (GROUPS / "memory" / name, "memory.limit_in_bytes"),
        (GROUPS / name, "memory.max"),
    ):
        try:
            folder.mkdir()
            (folder / file).write_text(str(int(memory_bytes)))
        except OSError:
            if folder.is_dir():
                folder.rmdir()
            continue
        enter = f'echo $$ > {folder}/cgroup.procs && exec "$@"'
        try:
            yield f"cgroup, {file}", ["sh", "-c", enter, "sh"]
        finally:
            folder.rmdir()
        return
    limit = f'ulimit -d {int(memory_bytes) // 1024} && exec "$@"'
    yield "RLIMIT_DATA", ["bash", "-c", limit, "bash"]


def fits(target: str, samples: int, prefix: Sequence[str]) -> bool:
    """Tells whether steps of so many samples survive."""
    arguments = {"target": target, "samples": samples, "steps": STEPS, "device": "cpu"}
    try:
        run_children(MEASURE, arguments | {"limit_bytes": NO_LIMIT}, prefix=prefix)
    except ProbeMemoryError:
        return False
    return True


def largest(target: str, begin: int, prefix: Sequence[str]) -> int:
    """Returns the most samples that survive, by bisection around a guess that may be too small."""
    low, high, at = 0, 0, begin
    while not (low and high):
        if fits(target, at, prefix):
            low = at
            at = math.ceil(at / BAR)
        else:
            high = at
            at = max(1, math.floor(at * BAR))
            if high == 1:
                return 0
    while high - low > max(1, NEAR * low):
        middle = (low + high) // 2
        if fits(target, middle, prefix):
            low = middle
        else:
            high = middle
    return low


def check(target: str, batch_size: int, memory_bytes: float) -> dict[str, Any]:
    """Predicts the largest batch of a job under a limit, then finds it."""
    probe = probe_memory(target, batch_size, memory_bytes=memory_bytes)
    with limited(memory_bytes) as (way, prefix):
        measured = largest(target, probe.largest_batch, prefix)
    return {
        "job": target.partition(":")[2],
        "limited_by": way,
        "memory_bytes": memory_bytes,
        "probed": {str(samples): peak for samples, peak in probe.peak_bytes.items()},
        "fixed_bytes": probe.line.fixed_bytes,
        "sample_bytes": probe.line.sample_bytes,
        "predicted": probe.largest_batch,
        "measured": measured,
        "ratio": probe.largest_batch / measured,
    }
