import numpy as np
import pytest

from raycosttune.core.rebalance_drift import Wander

WORKERS, AGES = np.array([0, 0, 0, 2]), np.array([4.0, 2.0, 0.0, 1.0])


def test_whitened_values_are_those_of_independent_noise() -> None:
    wander = Wander.of(WORKERS, AGES, 3, 0.5)
    since = np.array([0.0, 2.0, 4.0])
    covariance = np.eye(4)
    covariance[:3, :3] += 0.5 * np.minimum(since[:, None], since)
    values = np.array([1.0, -2.0, 3.0, 4.0])
    white = wander.whitened(values)
    assert white @ white == pytest.approx(values @ np.linalg.solve(covariance, values))
    assert 2 * wander.log_det == pytest.approx(np.linalg.slogdet(covariance)[1])
    both = wander.whitened(np.column_stack([values, values]))
    assert both[:, 1] == pytest.approx(white)


def test_where_nothing_wanders_nothing_moves() -> None:
    still = Wander.of(WORKERS, AGES, 3, 0.0)
    values = np.array([1.0, -2.0, 3.0, 4.0])
    assert still.whitened(values) == pytest.approx(values)
    assert (still.log_det, list(still.now(values))) == (0.0, [0.0, 0.0, 0.0])


def test_a_fast_walk_is_where_its_newest_sample_is() -> None:
    now = Wander.of(WORKERS, AGES, 3, 50.0).now(np.array([0.0, 0.5, 1.0, 0.3]))
    assert now == pytest.approx([1.0, 0.0, 0.0], abs=0.02)
