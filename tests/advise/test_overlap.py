import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import (
    InvalidAdviceError,
    batch_to_hide,
    exposed_seconds,
    overhead_ratio,
    speedup,
    step_seconds,
)

SECONDS = st.floats(0, 1e6)
OVERLAPS = st.floats(1, 1e3) | st.just(math.inf)


@given(SECONDS, SECONDS, OVERLAPS)
def test_a_step_takes_from_the_longer_to_the_sum_of_both(
    compute: float, exchange: float, overlap: float
) -> None:
    step = step_seconds(compute, exchange, overlap)
    assert max(compute, exchange) <= step <= (compute + exchange) * (1 + 1e-12)
    assert step == step_seconds(exchange, compute, overlap)
    assert exposed_seconds(compute, exchange, overlap) == step - compute


@given(st.floats(0, 1e3), st.floats(1e-6, 1e2), st.floats(0, 1e3))
def test_the_smallest_batch_hides_the_exchange_and_one_fewer_does_not(
    exchange: float, sample: float, fixed: float
) -> None:
    batch = batch_to_hide(exchange, sample, fixed)
    assert fixed + batch * sample >= exchange * (1 - 1e-9)
    assert batch == 1 or fixed + (batch - 1) * sample < exchange * (1 + 1e-9)


@given(st.integers(1, 512), st.floats(1e-3, 10), st.floats(0, 10))
def test_without_overlap_the_step_is_that_of_the_lemma(
    workers: int, compute: float, exchange: float
) -> None:
    one = step_seconds(compute, exchange)
    many = step_seconds(compute / workers, exchange)
    assert one / many == pytest.approx(speedup(workers, overhead_ratio(compute, exchange)))


def test_nothing_to_do_takes_no_time() -> None:
    assert step_seconds(0, 0, 3.0) == 0


@pytest.mark.parametrize("overlap", [0.5, math.nan])
def test_an_overlap_below_one_is_refused(overlap: float) -> None:
    with pytest.raises(InvalidAdviceError, match="overlap must be a number of at least 1"):
        step_seconds(1, 1, overlap)


def test_a_batch_beyond_reason_is_refused() -> None:
    with pytest.raises(InvalidAdviceError, match="sample_seconds"):
        batch_to_hide(1e6, 1e-300)
