import os
import resource
import sys
from pathlib import Path

import pytest
import torch

from raycosttune.train.probe_machine import (
    available_bytes,
    growth_bytes,
    limit_own_bytes,
    own_peak_bytes,
    peak_bytes,
)

CPU = torch.device("cpu")


def machine(folder: Path, group: str, limits: dict[str, str]) -> tuple[Path, Path]:
    proc, groups = folder / "proc", folder / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\nOdd\n")
    (proc / "self" / "cgroup").write_text(group)
    for path, limit in limits.items():
        (groups / path).parent.mkdir(parents=True, exist_ok=True)
        (groups / path).write_text(limit)
    return proc, groups


@pytest.mark.parametrize(
    ("group", "limits", "expected"),
    [
        ("0::/\n", {}, 8e6 * 1024),
        ("0::/a/b\n", {"a/memory.max": "5000\n", "a/b/memory.max": "max\n"}, 5000),
        ("0::/a/b\n", {"a/memory.max": "5000\n", "a/b/memory.max": "4000\n"}, 4000),
        ("3:cpu:/x\n4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "3000"}, 3000),
        ("4:cpu,memory:/gone\n", {"memory/memory.limit_in_bytes": "2000"}, 2000),
    ],
)
def test_the_least_limit_holds(
    tmp_path: Path, group: str, limits: dict[str, str], expected: float
) -> None:
    found = available_bytes("cpu", *machine(tmp_path, group, limits))
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found == min(expected, physical)


def test_without_a_kernel_to_ask_all_memory_is_there(tmp_path: Path) -> None:
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert available_bytes("cpu", tmp_path, tmp_path) == physical
    assert own_peak_bytes(tmp_path) > 0


def test_pages_of_files_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text(
        "Name:\tx\nVmHWM:\t 1000 kB\nRssFile:\t 300 kB\nRssShmem:\t 100 kB\n"
    )
    assert own_peak_bytes(tmp_path) == 600 * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_what_a_block_takes_is_found() -> None:
    with growth_bytes(CPU) as growth:
        block = torch.ones(20_000_000)
        del block
    if growth.bytes:  # the kernel may refuse to forget a peak
        assert growth.bytes == pytest.approx(80e6, rel=0.2)
    assert peak_bytes(CPU) > 80e6


@pytest.mark.skipif(sys.platform != "linux", reason="limits data as Linux does")
def test_a_limit_lets_memory_run_out() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        limit_own_bytes(1e10)
        with pytest.raises(RuntimeError, match="memory"):
            torch.empty(10**10)
        assert available_bytes("cpu") <= 1e10
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
