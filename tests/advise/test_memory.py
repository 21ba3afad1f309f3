import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import (
    InvalidAdviceError,
    MemoryLine,
    fit_memory_line,
    largest_batch,
    memory_terms,
    workspace_bytes,
)

LINES = st.builds(MemoryLine, st.floats(0, 1e12), st.floats(1, 1e9))
BATCHES = st.integers(1, 10**6)


@given(LINES, BATCHES)
def test_memory_for_a_batch_holds_this_batch_and_no_more(line: MemoryLine, batch: int) -> None:
    memory = line.bytes_at(batch)
    found = largest_batch(memory, line)
    assert line.bytes_at(found) <= memory < line.bytes_at(found + 1)
    assert found >= batch
    assert workspace_bytes(memory, line, batch) == 0


@given(LINES, BATCHES, st.floats(0, 1e9))
def test_what_a_batch_leaves_is_what_is_not_taken(
    line: MemoryLine, batch: int, left: float
) -> None:
    memory = line.bytes_at(batch) + left
    assert workspace_bytes(memory, line, batch) == memory - line.bytes_at(batch)


@given(LINES, st.lists(st.integers(1, 1000), min_size=2, max_size=5, unique=True))
def test_points_on_a_line_give_the_line(line: MemoryLine, batches: list[int]) -> None:
    found = fit_memory_line({batch: line.bytes_at(batch) for batch in batches})
    near = 1e-5 * line.bytes_at(1000)
    for batch in (1, 1000):
        assert found.bytes_at(batch) == pytest.approx(line.bytes_at(batch), rel=1e-6, abs=near)


@given(st.dictionaries(st.integers(1, 100), st.floats(0, 1e9), min_size=2, max_size=6))
def test_no_measured_peak_lies_above_the_line(peaks: dict[int, float]) -> None:
    try:
        line = fit_memory_line(peaks)
    except InvalidAdviceError as error:
        assert "rise with the batch" in str(error)  # noqa: PT017 - some draws fall
        return
    for batch, peak in peaks.items():
        assert peak <= line.bytes_at(batch) * (1 + 1e-9) + 1e-6


def test_what_bends_upwards_is_extended_by_its_last_slope() -> None:
    line = fit_memory_line({1: 10.0, 2: 11.0, 3: 15.0})
    assert line == MemoryLine(fixed_bytes=6, sample_bytes=4)  # through the first peak


def test_terms_worked_by_hand() -> None:
    # 100 and 50 numbers of 4 bytes a sample; 1000 parameters in 3 copies of 4 bytes.
    line = memory_terms([100, 50], 1000, other_bytes=500)
    assert line == MemoryLine(fixed_bytes=12_500, sample_bytes=600)
    assert largest_batch(20_000, line) == 12
    assert workspace_bytes(20_000, line, 12) == 300
    assert memory_terms([100, 50], 1000, copies=4, element_bytes=2) == MemoryLine(8000, 300)


def test_a_batch_that_ran_out_of_memory_is_a_bound() -> None:
    line = MemoryLine(100, 10)
    assert largest_batch(1000, line, failed_batch=64) == 63
    assert largest_batch(1000, line, failed_batch=640) == 90
    with pytest.raises(InvalidAdviceError, match="and 1 samples ran out of it"):
        largest_batch(1000, line, failed_batch=1)


def test_memory_that_holds_nothing_is_refused_with_what_is_needed() -> None:
    with pytest.raises(InvalidAdviceError, match="a step of one sample, 110 bytes"):
        largest_batch(109, MemoryLine(100, 10))
    with pytest.raises(InvalidAdviceError, match="a step of 8 samples, 180 bytes"):
        workspace_bytes(179, MemoryLine(100, 10), 8)


@pytest.mark.parametrize("peaks", [{}, {8: 100.0}])
def test_a_line_needs_two_batches(peaks: dict[int, float]) -> None:
    with pytest.raises(InvalidAdviceError, match="at least two batches"):
        fit_memory_line(peaks)


def test_a_line_needs_bytes_for_each_sample() -> None:
    with pytest.raises(InvalidAdviceError, match="sample_bytes must be a finite number above 0"):
        MemoryLine(100, 0)
