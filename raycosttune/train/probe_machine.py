"""What the machine at hand has: memory for a process, and its cores."""

import ctypes
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from raycosttune.errors import InvalidAdviceError

KIB = 1024
PROC = Path("/proc")
GROUPS = Path("/sys/fs/cgroup")


def peak_bytes(device: torch.device) -> float:
    """Returns the most memory that this process has held on a device.

    On CUDA that is what the allocator held, and what lies beside it, such as the context.
    """
    if device.type != "cuda":
        return own_peak_bytes()
    free, total = torch.cuda.mem_get_info(device)
    beside = total - free - torch.cuda.memory_reserved(device)
    return float(torch.cuda.max_memory_reserved(device) + max(beside, 0))


@dataclass
class Growth:
    """Holds by how much memory grew at most within a block, once this is over."""

    bytes: float = 0.0


@contextmanager
def growth_bytes(device: torch.device) -> Iterator[Growth]:
    """Measures the memory that a block takes at most beside what is there; 0 where none can."""
    growth = Growth()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        yield growth
        growth.bytes = float(torch.cuda.max_memory_allocated(device) - before)
        return
    is_reset = _reset_own_peak()
    before = int(own_peak_bytes())
    yield growth
    growth.bytes = max(0.0, own_peak_bytes() - before) if is_reset else 0.0


def _reset_own_peak() -> bool:
    """Gives free memory back and has the kernel forget the peak so far; tells whether it did."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
        (PROC / "self" / "clear_refs").write_text("5")
    except (AttributeError, OSError):  # another C library, or another system
        return False
    return True


def limit_own_bytes(limit: float) -> None:
    """Has this process run out of memory on the CPU before it takes more than a limit."""
    if sys.platform == "linux":
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = int(limit) if hard == resource.RLIM_INFINITY else min(int(limit), hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def own_peak_bytes(proc: Path = PROC) -> float:
    """Returns the most memory that this process has held, but for pages of files.

    The system drops such pages where it must, so they don't count towards what fits.

    Args:
        proc: Where the kernel tells of processes. Without it, pages of files count.
    """
    told = _table(proc / "self" / "status")
    if "VmHWM" in told:
        return KIB * max(0.0, told["VmHWM"] - told.get("RssFile", 0.0) - told.get("RssShmem", 0.0))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(most if sys.platform == "darwin" else most * KIB)


def check_device(device: str) -> None:
    """Refuses a device that PyTorch does not have here.

    Raises:
        InvalidAdviceError: If it is no CPU and no CUDA device at hand.
    """
    found = [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    if device not in ["cpu", *(["cuda", *found] if found else [])]:
        here = ", ".join(["cpu", *found])
        msg = f"--device must be one that PyTorch has here ({here}), got {device!r}"
        raise InvalidAdviceError(msg)


def available_bytes(device: str, proc: Path = PROC, groups: Path = GROUPS) -> float:
    """Returns what a process on a device may use.

    Args:
        device: "cpu", "cuda" or one of several: then all that the device has.
        proc: Where the kernel tells of processes.
        groups: Where it tells of control groups.

    Returns:
        For the CPU, the least of what the system has left, the limits of the control groups
        that this process is in, and its own limit of data.
    """
    if device.startswith("cuda"):
        return float(torch.cuda.mem_get_info(torch.device(device))[1])
    told = _table(proc / "meminfo")
    limits = [told["MemAvailable"] * KIB] if "MemAvailable" in told else []
    limits += [float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))]
    limits += _group_limits(proc / "self" / "cgroup", groups)
    own = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return min([*limits, float(own)] if own != resource.RLIM_INFINITY else limits)


def _group_limits(told: Path, groups: Path) -> Iterator[float]:
    """Yields the limits of all groups, up to the root: version 2, then version 1."""
    try:
        lines = told.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        place = Path(path.lstrip("/"))
        for each in (place, *place.parents):
            try:
                yield float((root / each / name).read_text())
            except (OSError, ValueError):  # no such group here, or "max"
                continue


def _table(path: Path) -> dict[str, float]:
    """Reads lines such as "VmHWM: 12 kB"; empty where there is no such file."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines)
    words = ((name, rest.split()) for name, _, rest in pairs)
    return {name: float(rest[0]) for name, rest in words if rest and rest[0].isdecimal()}
