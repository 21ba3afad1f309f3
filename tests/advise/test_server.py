import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.advise import (
    InvalidAdviceError,
    parameter_servers,
    server_bandwidth,
    server_loads,
    server_seconds,
)

BYTES = st.floats(1e3, 1e12)
WORKERS = st.integers(1, 512)
SECONDS = st.floats(1e-3, 1e3)
SHARDS = st.lists(st.floats(1, 100), min_size=1, max_size=40)


@given(BYTES, WORKERS, st.integers(1, 512), SECONDS)
def test_with_the_bandwidth_that_some_servers_need_these_are_enough(
    size: float, workers: int, servers: int, compute: float
) -> None:
    rate = server_bandwidth(size, workers, servers, compute)
    assert parameter_servers(size, workers, rate, compute) == servers
    assert server_seconds(size, workers, servers, rate) == pytest.approx(compute)


@given(BYTES, WORKERS, st.floats(1e6, 1e12), SECONDS)
def test_the_fewest_servers_hide_the_exchange_and_one_fewer_does_not(
    size: float, workers: int, rate: float, compute: float
) -> None:
    needed = 2 * size * workers / (rate * compute)
    if needed > 1e9:
        return
    servers = parameter_servers(size, workers, rate, compute)
    assert server_seconds(size, workers, servers, rate) <= compute * (1 + 1e-6)
    if servers > 1:
        assert server_seconds(size, workers, servers - 1, rate) > compute * (1 - 1e-6)


@given(SHARDS, st.integers(1, 12))
def test_every_piece_has_a_server_and_loads_are_near_even(
    shards: list[float], servers: int
) -> None:
    loads = server_loads(shards, servers)
    assert len(loads) == servers
    assert math.fsum(loads) == pytest.approx(math.fsum(shards))
    assert max(loads) <= math.fsum(shards) / servers + max(shards) * (1 + 1e-9)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(1, 3))
def test_loads_are_at_most_a_third_above_the_best(shards: list[int], servers: int) -> None:
    places = product(range(servers), repeat=len(shards))
    best = min(
        max(sum(s for s, p in zip(shards, place, strict=True) if p == k) for k in range(servers))
        for place in places
    )
    assert max(server_loads(shards, servers)) <= best * 4 / 3 + 1e-9


@given(SHARDS, WORKERS, st.floats(1.0, 8.0))
def test_uneven_pieces_need_no_fewer_servers_and_all_carry_their_load(
    shards: list[float], workers: int, room: float
) -> None:
    size = math.fsum(shards)
    rate = 2 * workers * max(shards) * room  # of room times the largest piece in a second
    plain = parameter_servers(size, workers, rate, 1.0)
    uneven = parameter_servers(size, workers, rate, 1.0, shard_bytes=shards)
    assert plain <= uneven <= max(plain, len(shards))
    loads = server_loads(shards, uneven)
    assert 2 * workers * max(loads) / rate <= 1 + 1e-6


def test_cases_worked_by_hand() -> None:
    # 180 MB there and back for 4 workers is 1440 MB; a server moves 125 MB in the second.
    assert parameter_servers(180e6, 4, 125e6, 1) == 12
    assert parameter_servers(180e6, 4, 125e6, 20) == 1
    assert server_seconds(180e6, 4, 12, 125e6) == pytest.approx(0.96)
    # Six pieces of 30 MB: a server takes 15.6 MB, so none can carry a piece.
    with pytest.raises(InvalidAdviceError, match=r"at most 1\.563e\+07 bytes"):
        parameter_servers(180e6, 4, 125e6, 1, shard_bytes=[30e6] * 6)
    # Eighteen of 10 MB: one on each server, as two are too many.
    assert parameter_servers(180e6, 4, 125e6, 1, shard_bytes=[10e6] * 18) == 18


def test_proportions_of_the_pieces_count() -> None:
    assert parameter_servers(180e6, 4, 125e6, 1, shard_bytes=[1.0] * 18) == 18


def test_no_pieces_or_no_bandwidth_are_refused() -> None:
    with pytest.raises(InvalidAdviceError, match="shard_bytes must hold pieces"):
        parameter_servers(180e6, 4, 125e6, 1, shard_bytes=[])
    with pytest.raises(InvalidAdviceError, match=r"let 10\*\*12 servers do"):
        parameter_servers(1e15, 4, 1e-3, 1)
