import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.array import Floats
from raycosttune.core.rebalance_fill import fill
from raycosttune.core.share import InvalidShareError


def slowest(knots: Floats, log_seconds: Floats, shares: tuple[int, ...]) -> float:
    return max(
        float(np.interp(math.log(max(share, 1)), knots, own))
        for share, own in zip(shares, log_seconds, strict=True)
    )


@given(
    st.integers(2, 3),
    st.integers(3, 14),
    st.lists(st.floats(0.0, 2.0), min_size=9, max_size=9),
    st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3),
)
def test_the_slowest_worker_is_as_fast_as_by_brute_force(
    workers: int, total: int, steps: list[float], levels: list[float]
) -> None:
    knots = np.log([1.0, 3.0, 6.0, 14.0])
    rises = np.array(steps).reshape(3, 3)[:workers]
    seconds = np.cumsum(np.column_stack([levels[:workers], rises]), axis=1)
    bounds = [(1, total)] * workers
    shares = fill(knots, seconds, total, bounds)
    assert sum(shares) == total
    assert min(shares) >= 1
    best = min(
        slowest(knots, seconds, every)
        for every in itertools.product(range(1, total + 1), repeat=workers)
        if sum(every) == total
    )
    assert slowest(knots, seconds, shares) <= best + 1e-6


def test_bounds_hold_where_one_worker_is_much_faster() -> None:
    knots = np.log([1.0, 100.0])
    seconds = np.array([[0.0, 0.1], [5.0, 9.0]])
    assert fill(knots, seconds, 40, [(1, 25), (1, 40)]) == (25, 15)
    with pytest.raises(InvalidShareError):
        fill(knots, seconds, 40, [(1, 10), (1, 10)])
