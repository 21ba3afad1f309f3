import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import (
    InvalidAdviceError,
    batch_to_hide,
    bucketed_exposed_seconds,
    exposed_seconds,
    log_step_seconds,
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


@given(st.floats(0, 10), st.floats(0, 10), st.integers(1, 40))
def test_buckets_wait_for_their_gradients_and_for_the_link(
    backward: float, exchange: float, buckets: int
) -> None:
    free = 0.0
    for bucket in range(1, buckets + 1):
        free = max(free, backward * bucket / buckets) + exchange / buckets
    exposed = bucketed_exposed_seconds(backward, exchange, buckets)
    assert exposed == pytest.approx(free - backward, abs=1e-9)


@given(st.floats(0, 10), st.floats(0, 10))
def test_one_bucket_hides_nothing(backward: float, exchange: float) -> None:
    assert bucketed_exposed_seconds(backward, exchange, 1) == exchange


@given(st.floats(1e-6, 1e6), st.floats(0, 1e6), st.floats(1, 10))
def test_in_logs_it_is_the_same(compute: float, exchange: float, overlap: float) -> None:
    with np.errstate(divide="ignore"):
        logs = np.log([compute, exchange])
    (found,) = log_step_seconds(logs[:1], logs[1:], overlap)
    assert np.exp(found) == pytest.approx(step_seconds(compute, exchange, overlap))


def test_nothing_to_do_takes_no_time() -> None:
    assert step_seconds(0, 0, 3.0) == 0


@pytest.mark.parametrize("overlap", [0.5, math.nan])
def test_an_overlap_below_one_is_refused(overlap: float) -> None:
    with pytest.raises(InvalidAdviceError, match="overlap must be a number of at least 1"):
        step_seconds(1, 1, overlap)


def test_a_batch_beyond_reason_is_refused() -> None:
    with pytest.raises(InvalidAdviceError, match="sample_seconds"):
        batch_to_hide(1e6, 1e-300)
