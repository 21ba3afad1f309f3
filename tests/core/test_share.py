import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.share import (
    InvalidShareError,
    check_bounds,
    equal_shares,
    round_shares,
    split_block,
)

parts = st.lists(st.floats(0, 1e6), min_size=1, max_size=8)


@given(parts, st.integers(0, 5000))
def test_rounding_keeps_the_global_batch(ideal: list[float], total: int) -> None:
    shares = round_shares(ideal, total)
    assert sum(shares) == total
    assert min(shares) >= 0


@given(
    st.data(), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=6)
)
def test_rounding_keeps_the_bounds(data: st.DataObject, ends: list[tuple[int, int]]) -> None:
    bounds = [(min(pair), max(pair)) for pair in ends]
    total = data.draw(st.integers(sum(a for a, _ in bounds), sum(b for _, b in bounds)))
    ideal = data.draw(st.lists(st.floats(0, 1e4), min_size=len(ends), max_size=len(ends)))
    shares = round_shares(ideal, total, bounds)
    assert sum(shares) == total
    assert all(a <= share <= b for share, (a, b) in zip(shares, bounds, strict=True))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6))
def test_whole_shares_stay_as_they_are(shares: list[int]) -> None:
    assert round_shares([float(share) for share in shares], sum(shares)) == tuple(shares)


def test_the_papers_example() -> None:
    assert round_shares([13.7, 16.5, 19.6, 14.2], 64) == (14, 16, 20, 14)
    assert round_shares([0.0, 0.0], 4, [(0, 1), (0, 4)]) == (1, 3)
    assert split_block((14, 16, 20, 14), 10) == (2, 3, 3, 2)
    assert split_block((14, 16, 20, 14), 64) == (14, 16, 20, 14)


@given(st.integers(0, 500), st.integers(1, 9))
def test_equal_shares_differ_by_one_at_most(total: int, workers: int) -> None:
    shares = equal_shares(total, workers)
    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.data())
def test_a_smaller_block_is_split_in_proportion(shares: list[int], data: st.DataObject) -> None:
    size = data.draw(st.integers(0, sum(shares)))
    split = split_block(tuple(shares), size)
    assert sum(split) == size
    for part, share in zip(split, shares, strict=True):
        assert abs(part - share * size / max(sum(shares), 1)) < 1
        assert share or not part


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: equal_shares(3, 0), "needs a worker"),
        (lambda: equal_shares(-1, 2), "at least 0 samples"),
        (lambda: round_shares([math.nan, 1.0], 4), "must be finite"),
        (lambda: round_shares([-1.0, 1.0], 4), "at least 0"),
        (lambda: round_shares([1.0, 1.0], 9, [(0, 4), (0, 4)]), "from 0 to 8 samples"),
        (lambda: round_shares([1.0, 1.0], 1, [(1, 4), (1, 4)]), "from 2 to 8 samples"),
        (lambda: check_bounds(3, [(2, 1)]), "must rise from 0"),
        (lambda: split_block((2, 2), 5), "from 0 to 4 samples"),
        (lambda: split_block((-1, 2), 1), "for shares"),
    ],
)
def test_what_can_not_be_shared_is_refused(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(InvalidShareError, match=words):
        call()
