import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import (
    InvalidAdviceError,
    Link,
    hierarchical_seconds,
    ring_bandwidth,
    ring_power,
    ring_seconds,
    server_seconds,
    servers_like_ring,
    tree_seconds,
)

BYTES = st.floats(1e3, 1e12)
RATES = st.floats(1e6, 1e12)
WORKERS = st.integers(2, 4096)


@given(BYTES, WORKERS, RATES)
def test_the_bandwidth_that_a_ring_needs_for_its_seconds_is_its_own(
    size: float, workers: int, rate: float
) -> None:
    seconds = ring_seconds(size, workers, Link(rate))
    assert ring_bandwidth(size, workers, seconds) == pytest.approx(rate)


@given(BYTES, st.integers(2, 64), RATES, st.floats(0, 1e-3))
def test_so_it_is_with_latency(size: float, workers: int, rate: float, latency: float) -> None:
    link = Link(rate, latency)
    seconds = ring_seconds(size, workers, link)
    if seconds > 2 * (workers - 1) * latency * (1 + 1e-6):
        found = ring_bandwidth(size, workers, seconds, latency)
        assert found == pytest.approx(rate, rel=1e-3)


@given(BYTES, WORKERS, RATES)
def test_servers_like_a_ring_take_its_seconds(size: float, workers: int, rate: float) -> None:
    by_ring = ring_seconds(size, workers, Link(rate))
    by_one_server = server_seconds(size, workers, 1, rate)
    assert by_one_server / servers_like_ring(workers) == pytest.approx(by_ring)


@given(BYTES, st.integers(1, 512), RATES)
def test_one_node_or_one_worker_a_node_is_a_plain_ring(
    size: float, workers: int, rate: float
) -> None:
    link, other = Link(rate, 1e-5), Link(rate / 2, 1e-4)
    ring = ring_seconds(size, workers, link)
    assert hierarchical_seconds(size, workers, 1, link, other) == ring
    assert hierarchical_seconds(size, 1, workers, other, link) == ring


@given(WORKERS)
def test_a_ring_moves_fewer_bytes_and_a_tree_fewer_messages(workers: int) -> None:
    assert ring_seconds(1e9, workers, Link(1e9)) <= tree_seconds(1e9, workers, Link(1e9))
    waits = Link(1e9, latency_seconds=1.0)
    assert tree_seconds(0, workers, waits) <= ring_seconds(0, workers, waits)


@given(st.integers(3, 4096))
def test_the_power_of_a_ring_is_that_of_its_seconds(workers: int) -> None:
    pair, all_of_them = (ring_seconds(1e9, n, Link(1e9)) for n in (2, workers))
    assert pair * (workers / 2) ** ring_power(workers) == pytest.approx(all_of_them)


def test_a_case_worked_by_hand() -> None:
    # 100 bytes on 4 workers: 6 messages of 25 bytes, or 4 of 100 through a tree.
    link = Link(bytes_per_second=10, latency_seconds=1)
    assert ring_seconds(100, 4, link) == 6 * (1 + 2.5)
    assert tree_seconds(100, 4, link) == 4 * (1 + 10)
    assert tree_seconds(100, 5, link) == 6 * (1 + 10)
    # Two nodes of four: the ring above, then 2 messages of 50 bytes over a slow link.
    slow = Link(bytes_per_second=1, latency_seconds=2)
    assert hierarchical_seconds(100, 4, 2, link, slow) == 21 + 2 * (2 + 50)
    assert ring_bandwidth(100, 4, 21, latency_seconds=1) == 10


def test_one_worker_exchanges_nothing() -> None:
    link = Link(1e9, 1e-3)
    assert ring_seconds(1e9, 1, link) == tree_seconds(1e9, 1, link) == 0
    assert ring_bandwidth(1e9, 1, 1.0) == 0
    with pytest.raises(InvalidAdviceError, match="at least 2"):
        servers_like_ring(1)
    with pytest.raises(InvalidAdviceError, match="at least 3"):
        ring_power(2)


def test_no_bandwidth_hides_the_latency() -> None:
    with pytest.raises(InvalidAdviceError, match=r"exceed the 0\.6 s that latency alone takes"):
        ring_bandwidth(1e6, 4, 0.5, latency_seconds=0.1)
