import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from raycosttune.advise import (
    InvalidAdviceError,
    amdahl_speedup,
    efficiency,
    largest_overhead_ratio,
    node_hours_factor,
    overhead_ratio,
    serial_part,
    serial_part_of_overhead,
    speedup,
    speedup_limit,
    workers_for_efficiency,
    workers_for_speedup,
)

WORKERS = st.integers(1, 4096)
RATIOS = st.floats(0, 10)


@given(WORKERS, st.floats(1e-6, 10))
def test_the_fewest_workers_for_a_speedup_of_some_workers_are_these(
    workers: int, ratio: float
) -> None:
    assert workers_for_speedup(speedup(workers, ratio), ratio) == workers


@given(st.floats(1, 100), RATIOS)
def test_the_fewest_workers_reach_the_speedup_and_one_fewer_does_not(
    wanted: float, ratio: float
) -> None:
    assume(wanted < speedup_limit(ratio) * (1 - 1e-9))
    workers = workers_for_speedup(wanted, ratio)
    assert speedup(workers, ratio) >= wanted
    assert workers == 1 or speedup(workers - 1, ratio) < wanted
    exact = wanted / (1 + ratio - wanted * ratio)
    assert exact * (1 - 1e-6) <= workers <= exact * (1 + 1e-6) + 1


@given(st.integers(2, 4096), st.floats(1e-6, 10))
def test_the_largest_overhead_for_an_efficiency_has_this_efficiency(
    workers: int, ratio: float
) -> None:
    largest = largest_overhead_ratio(workers, efficiency(workers, ratio))
    assert largest == pytest.approx(ratio, rel=1e-6)


@given(WORKERS, st.floats(1e-6, 10))
def test_the_most_workers_keep_the_efficiency_and_one_more_does_not(
    workers: int, ratio: float
) -> None:
    least = efficiency(workers, ratio)
    assert workers_for_efficiency(least, ratio) == workers


@given(WORKERS, RATIOS)
def test_the_speedup_lies_between_one_and_its_limits(workers: int, ratio: float) -> None:
    found = speedup(workers, ratio)
    assert found >= 1 - 1e-12
    assert found <= min(workers, speedup_limit(ratio)) * (1 + 1e-12)


@given(WORKERS, RATIOS)
def test_node_hours_grow_linearly_in_the_workers(workers: int, ratio: float) -> None:
    first, last = node_hours_factor(1, ratio), node_hours_factor(workers, ratio)
    slope = node_hours_factor(2, ratio) - first
    assert last == pytest.approx(first + slope * (workers - 1), rel=1e-6)


@given(WORKERS, RATIOS)
def test_amdahl_with_the_serial_part_of_the_overhead_is_the_lemma(
    workers: int, ratio: float
) -> None:
    serial = serial_part_of_overhead(ratio)
    assert amdahl_speedup(workers, serial) == pytest.approx(speedup(workers, ratio))


@given(st.integers(2, 4096), st.floats(0, 1))
def test_the_serial_part_of_amdahls_speedup_is_the_part_itself(workers: int, part: float) -> None:
    found = min(max(amdahl_speedup(workers, part), 1.0), float(workers))
    assert serial_part(workers, found) == pytest.approx(part, abs=1e-9)


@given(st.floats(1e-3, 1e3), RATIOS, st.integers(1, 64))
def test_the_ratio_of_a_shared_step_is_that_of_one_worker(
    compute: float, ratio: float, workers: int
) -> None:
    assert overhead_ratio(compute / workers, compute * ratio, workers) == pytest.approx(ratio)


def test_a_case_worked_by_hand() -> None:
    # 10 s of compute and 1 s of overhead: 11 s on one worker, 2.5 + 1 s on four.
    ratio = overhead_ratio(compute_seconds=10, overhead_seconds=1)
    assert speedup(4, ratio) == pytest.approx(11 / 3.5)
    assert efficiency(4, ratio) == pytest.approx(11 / 14)
    assert node_hours_factor(4, ratio) == pytest.approx(14 / 11)
    assert speedup_limit(ratio) == 11
    assert workers_for_speedup(11 / 3.5, ratio) == 4
    assert workers_for_speedup(10, ratio) == 100
    assert largest_overhead_ratio(4, 11 / 14) == pytest.approx(0.1)


def test_without_overhead_nothing_limits_the_speedup() -> None:
    assert speedup_limit(0) == math.inf
    assert workers_for_speedup(1e6, 0) == 10**6
    assert workers_for_efficiency(1, 0) is None


def test_an_efficiency_that_any_overhead_leaves_has_no_largest_one() -> None:
    assert largest_overhead_ratio(4, 0.25) == math.inf
    assert largest_overhead_ratio(1, 1) == math.inf
    assert largest_overhead_ratio(4, 1) == 0


@pytest.mark.parametrize(("wanted", "ratio"), [(5, 0.25), (6, 0.25), (2e12, 0.0)])
def test_a_speedup_beyond_the_limit_is_refused_with_the_limit(wanted: float, ratio: float) -> None:
    with pytest.raises(InvalidAdviceError, match="speedup_wanted must be below"):
        workers_for_speedup(wanted, ratio)


def test_one_worker_has_no_serial_part_to_tell() -> None:
    with pytest.raises(InvalidAdviceError, match="at least 2"):
        serial_part(1, 1.0)
    with pytest.raises(InvalidAdviceError, match="from 1 to the 4 workers"):
        serial_part(4, 4.5)
