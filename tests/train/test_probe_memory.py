from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import MemoryLine
from raycosttune.errors import InvalidAdviceError
from raycosttune.train import probe_memory as probe_memory_module
from raycosttune.train.probe_child import ProbeError, ProbeMemoryError
from raycosttune.train.probe_memory import MemoryProbe, _agree, climb, measure_step, probe_memory
from tests.train.world import run_world

HERE = "tests.train.probe_jobs"


class Machine:
    """Holds memory that bends: what is above the bend takes as much again, once.

    From a number of samples on the allocator returns its pieces, as glibc does with large ones.
    """

    def __init__(
        self, fixed: float, sample: float, kept: float, stops_at: float, returns_from: int = 10**9
    ) -> None:
        self.fixed, self.sample, self.kept, self.stops_at = fixed, sample, kept, stops_at
        self.returns_from = returns_from
        self.asked: list[int] = []

    def need(self, samples: int) -> float:
        return self.fixed + samples * self.sample

    def peak(self, samples: int) -> float:
        kept = min(self.kept, samples * self.sample) if samples < self.returns_from else 0.0
        return self.need(samples) + kept

    def measure(self, samples: int) -> float:
        self.asked.append(samples)
        if self.peak(samples) > self.stops_at:
            raise ProbeMemoryError
        return self.peak(samples)

    def largest(self, memory: float) -> int:
        return max((n for n in range(1, 3000) if self.peak(n) <= memory), default=0)


MACHINES = st.builds(
    Machine, st.floats(0, 1000), st.floats(1, 50), st.floats(0, 500), st.floats(3000, 6000)
)


@given(MACHINES, st.integers(1, 4000), st.floats(2000, 3000), st.booleans())
def test_what_is_said_to_fit_fits_and_is_near_what_fits(
    machine: Machine, batch: int, memory: float, knows_need: bool
) -> None:
    probe = climb(machine.measure, batch, memory, machine.need if knows_need else None)
    truth = machine.largest(memory)
    assert probe.fitting <= truth
    if truth <= 32 * batch:
        # The reserve is 5 % of all memory, and the last measurement within 10 %.
        reserved = machine.largest(memory * 0.95)
        assert probe.fitting >= 0.9 * reserved - 2
    assert max(machine.asked) <= max(2, 32 * batch)
    assert len(machine.asked) <= 7


def test_what_an_allocator_keeps_of_a_small_batch_says_nothing_of_a_large_one() -> None:
    machine = Machine(250.0, 3.2, 1e9, stops_at=700.0, returns_from=60)
    assert climb(machine.measure, 36, 600.0).fitting < 60
    for batch in (8, 16, 36):
        probe = climb(machine.measure, batch, 600.0, machine.need)
        assert probe.line.sample_bytes == pytest.approx(3.2, rel=0.02)
        assert 99 <= probe.fitting <= 100


def test_what_needs_more_than_it_seemed_is_found_from_the_first_batch_on() -> None:
    machine = Machine(100.0, 1.0, 1e9, stops_at=600.0)
    probe = climb(machine.measure, 100, 500.0, machine.need)
    assert machine.asked == [1, 377, 100, 187]
    assert 0.9 * 187 < probe.fitting <= 187

    def refuse(_: int) -> float:
        raise ProbeMemoryError

    assert climb(machine.measure, 150, 500.0, refuse).fitting <= 187


@given(st.integers(2, 5000), st.integers(1, 1000))
def test_a_batch_that_fails_bounds_what_fits(batch: int, room: int) -> None:
    machine = Machine(0.0, 1.0, 0.0, stops_at=room)
    probe = climb(machine.measure, batch, memory_bytes=1e9)
    assert probe.fitting < (probe.failed_batch or 10**12)
    if batch <= room:
        assert probe.fitting >= batch


def test_not_even_one_sample_is_refused() -> None:
    machine = Machine(100.0, 1.0, 0.0, stops_at=50)
    with pytest.raises(InvalidAdviceError, match="hold a step of one sample, got 50: "):
        climb(machine.measure, 8, 50)


def test_a_model_that_refuses_one_sample_is_measured_from_two_on() -> None:
    machine = Machine(100.0, 10.0, 0.0, stops_at=1000)

    def measure(samples: int) -> float:
        if samples == 1:
            raise ProbeError
        return machine.measure(samples)

    probe = climb(measure, 1, 900)
    assert probe.line == MemoryLine(100.0, 10.0)
    assert min(probe.peak_bytes) == 2
    with pytest.raises(ProbeError):
        climb(fail_always, 1, 900)


def fail_always(_: int) -> float:
    raise ProbeError


def test_a_reserve_that_one_sample_needs_leaves_none() -> None:
    probe = climb(Machine(97.0, 1.0, 0.0, stops_at=100).measure, 2, 100)
    assert probe.fitting == 0
    with pytest.raises(InvalidAdviceError, match="hold a step of one sample"):
        _ = probe.largest_batch


def agree(rank_line: dict[str, Any], failed: int | None) -> Any:
    import torch.distributed as dist  # noqa: PLC0415 - a worker of its own

    rank = dist.get_rank()
    line = MemoryLine(100.0 + 10 * rank, 5.0 - rank)
    peaks = {1: 105.0 + rank, 8 + rank: 140.0}
    found = _agree(MemoryProbe(line, peaks, failed if rank else None, 1000.0 - rank))
    return found.line, dict(found.peak_bytes), found.failed_batch, found.memory_bytes, rank_line


def disagree(_: object) -> str:
    import torch.distributed as dist  # noqa: PLC0415 - as above

    error = InvalidAdviceError("nothing fits here")
    probe = MemoryProbe(MemoryLine(1.0, 1.0), {1: 2.0}, None, 10.0)
    try:
        _agree(error if dist.get_rank() else probe)
    except InvalidAdviceError as raised:
        return f"{raised} {raised.__notes__}"
    return "no error"


@pytest.mark.slow
def test_ranks_agree_on_what_fits_on_all(tmp_path: Path) -> None:
    told = run_world(2, agree, {}, 64, store=tmp_path / "store")
    assert told[0] == told[1]
    line, peaks, failed, memory, _ = told[0]
    assert line == MemoryLine(110.0, 5.0)
    assert peaks == {1: 106.0, 8: 140.0, 9: 140.0}
    assert (failed, memory) == (64, 999.0)


@pytest.mark.slow
def test_what_one_rank_raises_all_raise(tmp_path: Path) -> None:
    told = run_world(2, disagree, None, store=tmp_path / "store")
    assert told == ["nothing fits here ['on rank 1']"] * 2


def test_a_step_of_this_process_has_a_peak() -> None:
    assert measure_step(f"{HERE}:small", 4, 1, "cpu", 1e15) > 1e6


def test_a_job_that_fits_nowhere_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*_: object, **more: object) -> list[float]:
        del more
        raise ProbeMemoryError

    monkeypatch.setattr(probe_memory_module, "run_children", run_out)
    with pytest.raises(InvalidAdviceError, match="hold a step of one sample"):
        probe_memory(f"{HERE}:small", 4, memory_bytes=1e9)
    with pytest.raises(InvalidAdviceError, match="memory_bytes must be"):
        probe_memory(f"{HERE}:small", 4, memory_bytes=0.0)
