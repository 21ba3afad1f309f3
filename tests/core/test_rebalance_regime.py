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
