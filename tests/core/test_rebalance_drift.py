import numpy as np
import pytest

from raycosttune.core.rebalance_drift import Wander

WORKERS = np.array([0, 1, 0, 0])
AGES = np.array([3.0, 0.0, 1.0, 0.0])


def test_what_does_not_wander_is_left_as_it_is() -> None:
    still = Wander.of(WORKERS, AGES, 3, 0.0)
    assert still.whitened(AGES) == pytest.approx(AGES)
    assert still.log_det == 0
    assert still.now(AGES) == pytest.approx(np.zeros(3))


def test_whitened_samples_have_the_likelihood_of_the_walk() -> None:
    walk, values = Wander.of(WORKERS, AGES, 3, 0.5), np.array([0.3, 0.1, -0.2, 0.4])
    covariance = np.eye(3) + 0.5 * np.array([[0, 0, 0], [0, 2, 2], [0, 2, 3]])
    own = values[[0, 2, 3]]
    white = walk.whitened(values)
    assert white[1] == pytest.approx(0.1)
    assert (white[[0, 2, 3]] ** 2).sum() == pytest.approx(own @ np.linalg.solve(covariance, own))
    assert 2 * walk.log_det == pytest.approx(np.log(np.linalg.det(covariance)))
    assert walk.whitened(np.ones((4, 2, 3))).shape == (4, 2, 3)


def test_a_walk_without_noise_ends_where_it_was_seen_last() -> None:
    walk = Wander.of(WORKERS, AGES, 3, 1e6)
    assert walk.now(np.array([0.0, 0.0, 0.2, 0.5])) == pytest.approx([0.5, 0, 0], abs=1e-3)
