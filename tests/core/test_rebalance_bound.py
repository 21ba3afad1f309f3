import math

import numpy as np
import pytest

from raycosttune.core.rebalance_bound import most_noise, safe_bounds

WIDE = [(1, 100), (1, 100)]


def safe(points: list[list[tuple[int, float]]], noise: float = 0.0) -> list[tuple[int, int]]:
    return safe_bounds(points, (50, 50), WIDE, 100, noise)


def test_by_the_rule_a_faster_worker_takes_what_the_slowest_needed_time_for() -> None:
    assert safe([[(50, 1.0)], [(50, 1.5)]]) == [(1, 75), (1, 50)]


def test_without_equal_shares_measured_nothing_is_narrowed() -> None:
    assert safe([[(40, 1.0)], [(50, 1.5)]]) == WIDE


def test_a_share_that_was_too_slow_is_not_passed_again() -> None:
    told = safe([[(50, 1.0), (70, 3.0)], [(30, 1.0), (50, 1.5)]])
    assert told[0] == (39, 50)


def test_a_worker_that_broke_the_rule_is_watched() -> None:
    falling = safe([[(40, 1.4), (50, 1.0)], [(50, 1.5)]])
    assert falling[0][0] >= 38
    assert falling[0][1] < 60


def test_after_some_adjustments_nobody_is_trusted_blindly() -> None:
    told = safe([[(50, 1.0), (60, 1.2), (65, 1.3)], [(35, 1.0), (40, 1.2), (50, 1.5)]])
    assert 65 <= told[0][1] < 70
    assert told[1][0] > 1


def test_a_slow_low_share_is_not_gone_below() -> None:
    told = safe([[(40, 2.0), (50, 1.0)], [(50, 1.5), (60, 1.6)]])
    assert told[0][0] == 50


def test_bounds_that_leave_nothing_are_not_taken() -> None:
    points = [[(40, 9.0), (50, 1.0), (60, 9.0)], [(40, 9.0), (50, 1.0), (60, 9.0)]]
    assert safe_bounds(points, (50, 50), WIDE, 120, 0.0) == WIDE
    assert safe(points) == [(50, 50), (50, 50)]


def test_noise_leaves_room() -> None:
    (calm, _), (noisy, _) = (safe([[(50, 1.0)], [(50, 1.5)]], noise) for noise in (0.0, 0.1))
    assert noisy[1] > calm[1]
    assert safe([[(50, 1.0)], [(50, 1.5)]], 0.005)[0] == pytest.approx(calm)


def test_workers_that_measure_the_same_show_how_little_noise_there_is() -> None:
    assert most_noise([0.3]) == math.inf
    assert most_noise([0.3, 0.7, 0.3, 0.7]) == 0
    assert most_noise([0.0, 0.01]) == pytest.approx(0.2257, abs=1e-4)
    alike = [[(50, 1.0)], [(50, 1.0)]]
    assert safe(alike, noise=0.3) == safe(alike) == [(1, 50), (1, 50)]


@pytest.mark.parametrize("workers", [2, 5, 16])
def test_noise_is_rarely_above_its_bound(workers: int) -> None:
    rng = np.random.default_rng(0)
    drawn = 0.1 * rng.standard_normal((2000, workers))
    assert np.mean([most_noise(row.tolist()) < 0.1 for row in drawn]) <= 0.05
