import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.advise import (
    InvalidAdviceError,
    Link,
    fit_law,
    hierarchical_seconds,
    overhead_ratio,
    rank_laws,
    ring_seconds,
    speedup,
    tree_seconds,
)

COUNTS = (1, 2, 3, 4, 6, 8)
TERMS = st.floats(0.01, 2.0)


@given(TERMS, TERMS)
@settings(max_examples=30)
def test_two_points_of_a_ring_tell_all_others(compute: float, exchange: float) -> None:
    link = Link(1 / exchange)
    truth = {n: compute / n + ring_seconds(1.0, n, link) for n in COUNTS}
    law = fit_law("ring", {1: truth[1], 2: truth[2]})
    for n, seconds in truth.items():
        assert law.seconds(n) == pytest.approx(seconds)


@given(TERMS, TERMS)
@settings(max_examples=30)
def test_two_points_with_an_overhead_tell_the_lemma(compute: float, overhead: float) -> None:
    ratio = overhead_ratio(compute, overhead)
    one = compute + overhead
    law = fit_law("overhead", {1: one, 2: one / speedup(2, ratio)})
    assert one / law.seconds(8) == pytest.approx(speedup(8, ratio))


def test_the_law_that_made_the_points_is_ranked_first() -> None:
    made = {
        "overhead": {n: 1 / n + 0.2 for n in COUNTS},
        "ring": {n: 1 / n + ring_seconds(0.1, n, Link(1.0, 0.02)) for n in COUNTS},
        "tree": {n: 1 / n + tree_seconds(0.1, n, Link(1.0)) for n in COUNTS},
    }
    for name, points in made.items():
        best = rank_laws(points)[0]
        assert best.error == pytest.approx(0, abs=1e-6)
        assert best.law.name == name


def test_a_slow_link_between_nodes_is_found() -> None:
    near, far = Link(10.0), Link(1.0)
    counts = (1, 2, 3, 4, 8, 12, 16)
    points = {
        n: 1 / n + hierarchical_seconds(0.3, min(n, 4), -(-n // 4), near, far) for n in counts
    }
    best = rank_laws(points, workers_per_node=4)[0]
    assert best.law.name == "hierarchical"
    assert best.law.seconds(32) == pytest.approx(
        1 / 32 + hierarchical_seconds(0.3, 4, 8, near, far), rel=1e-6
    )


def test_steps_on_one_node_do_not_tell_of_several() -> None:
    law = fit_law("hierarchical", {1: 1.0, 2: 0.7}, workers_per_node=4)
    assert law.seconds(4) == pytest.approx(0.55)
    with pytest.raises(InvalidAdviceError, match="measure a step across nodes too"):
        law.seconds(8)


def test_laws_need_points() -> None:
    with pytest.raises(InvalidAdviceError, match="at least two worker counts"):
        fit_law("ring", {1: 1.0})
    with pytest.raises(InvalidAdviceError, match="at least three worker counts"):
        rank_laws({1: 1.0, 2: 0.7})
    with pytest.raises(InvalidAdviceError, match="a law must be one of overhead, ring"):
        fit_law("star", {1: 1.0, 2: 0.7})
