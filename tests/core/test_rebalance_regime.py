import math

import pytest

from raycosttune.core.rebalance_regime import LEAST, current, steadiness


def points(*pairs: tuple[float, float]) -> list[tuple[float, float]]:
    return [(math.log(share), math.log(seconds)) for share, seconds in pairs]


def test_steady_samples_are_all_of_now() -> None:
    samples = points((50, 1.0), (60, 1.2), (60, 1.21), (55, 1.1))
    assert current(samples, 0.03) == [0, 1, 2, 3]
    assert current([], 0.03) == []


def test_a_sudden_slowdown_begins_anew_and_its_end_brings_the_past_back() -> None:
    slow = points((50, 1.0), (50, 1.01), (50, 5.0), (20, 2.1))
    assert current(slow, 0.03) == [2, 3]
    back = [*slow, *points((20, 0.41), (48, 0.96))]
    assert current(back, 0.03) == [0, 1, 4, 5]


def test_a_second_slowdown_is_not_taken_for_the_first() -> None:
    twice = points((50, 1.0), (50, 5.0), (50, 1.0), (50, 5.0))
    assert current(twice, 0.03) == [3]
    assert current([*twice, *points((50, 0.2))], 0.03) == [4]


def test_noise_is_no_slowdown() -> None:
    samples = points((50, 1.0), (50, 1.2), (50, 0.9), (50, 1.1))
    assert current(samples, 0.15) == [0, 1, 2, 3]


def test_the_noise_is_found_in_spite_of_jumps() -> None:
    calm = points((50, 1.0), (50, 1.0), (50, 1.0), (50, 1.0), (50, 9.0), (50, 9.0))
    assert steadiness([calm, calm]) == LEAST
    assert steadiness([]) == pytest.approx(0.1)
    assert steadiness([points((50, 1.0), (500, 1.0))]) == pytest.approx(0.1)


def test_a_pause_leaves_nothing_behind() -> None:
    before, pause = points((32, 1.0), (32, 1.01)), points((32, 9.0))
    after = points((5, 0.17))
    assert current([*before, *pause, *after], 0.03) == [0, 1, 3]
    slow = points((5, 1.6))  # nine times slower it stays in the state that is new
    assert current([*before, *pause, *slow], 0.03) == [2, 3]
    assert current([*before, *pause, *pause, *after], 0.03) == [0, 1, 4]


def test_a_first_sample_that_was_a_pause_is_forgotten() -> None:
    assert current(points((32, 9000.0), (1, 0.1)), 0.03) == [1]
    steep = points((32, 1.85), (6, 0.11), (14, 0.19))
    assert current(steep, 0.02) == [0, 1, 2]
    assert current([*steep, *points((18, 0.23))], 0.02) == [1, 2, 3]


def test_seconds_far_apart_in_share_jump_once_at_most() -> None:
    assert current(points((2, 1.0), (4, 7.0)), 0.03) == [0, 1]
    assert current(points((2, 1.0), (64, 200.0)), 0.03) == [1]
    assert current(points((2, 1.0), (64, 30.0)), 0.03) == [0, 1]


def test_a_low_share_that_was_slow_long_ago_may_have_been_a_pause() -> None:
    assert current(points((10, 9.0), (20, 0.3)), 0.03) == [1]
    assert current(points((10, 1.0), (20, 0.6)), 0.03) == [0, 1]
