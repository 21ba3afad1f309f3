import numpy as np
import pytest

from raycosttune.core.array import Floats
from raycosttune.core.space import Space
from raycosttune.core.step_fit import NOISES, Grid, Measured, _evidence, fit
from raycosttune.core.step_model import PRIOR_MEAN, PRIOR_SD

SPACE = Space((1, 2, 4, 8, 16), (16, 32, 64, 128, 256, 512), workers_per_node=4)
GRID = Grid.of(SPACE.cells)
CELLS = len(SPACE.cells)


def measured(values: Floats, places: list[int], count: float = 1.0) -> Measured:
    return Measured(
        np.array(places), values[places], np.full(len(places), count), squares=0.0, freedom=0
    )


def draw(rng: np.random.Generator) -> Floats:
    """Draws log T from the prior of the law."""
    return GRID.model.law(PRIOR_MEAN + PRIOR_SD * rng.standard_normal(8)).values


def test_a_misfit_is_shared_wholly_with_itself_and_less_with_farther_cells() -> None:
    assert np.diagonal(GRID.near) == pytest.approx(1)
    np.testing.assert_array_equal(GRID.near, GRID.near.T)
    assert np.linalg.eigvalsh(GRID.near).min() > 0
    assert GRID.near[0, 1] == pytest.approx(np.exp(-1))
    assert GRID.near_workers[0, 1] == 1


def test_intervals_hold_what_the_prior_draws() -> None:
    rng = np.random.default_rng(0)
    held = []
    for _ in range(60):
        truth = draw(rng)
        places = rng.choice(CELLS, int(rng.integers(1, 12)), replace=False).tolist()
        noisy = truth + 0.05 * rng.standard_normal(CELLS)
        fitted = fit(GRID, measured(noisy, places))
        held.append(np.abs(fitted.mean - truth) <= 1.645 * fitted.sd)
    assert 0.85 <= np.mean(held) <= 0.99


def test_more_cells_of_a_law_bring_the_mean_closer_and_narrow_the_deviation() -> None:
    rng = np.random.default_rng(1)
    errors, sds = np.zeros(3), np.zeros(3)
    for _ in range(30):
        truth, order = draw(rng), rng.permutation(CELLS)
        for k, size in enumerate((2, 8, 24)):
            fitted = fit(GRID, measured(truth, order[:size].tolist()))
            errors[k] += np.median(np.abs(fitted.mean - truth))
            sds[k] += np.median(fitted.sd)
    assert errors[0] > errors[1] > errors[2]
    assert sds[0] > sds[1] > sds[2]


def test_what_is_sampled_often_is_known() -> None:
    truth = draw(np.random.default_rng(2))
    fitted = fit(GRID, measured(truth, [3, 12, 20], count=100.0))
    np.testing.assert_allclose(fitted.mean[[3, 12, 20]], truth[[3, 12, 20]], atol=0.02)
    assert (fitted.sd[[3, 12, 20]] < 0.03).all()


def test_noise_within_cells_counts_for_the_noise() -> None:
    truth = draw(np.random.default_rng(3))
    quiet, loud = (
        fit(GRID, Measured(np.array([4, 9]), truth[[4, 9]], np.full(2, 20.0), squares, 38)).noise
        for squares in (38 * 0.02**2, 38 * 0.15**2)
    )
    assert quiet == pytest.approx(0.02, rel=0.3)
    assert loud == pytest.approx(0.15, rel=0.3)


def test_many_cells_teach_the_levels_by_a_part_of_them() -> None:
    space = Space(tuple(range(1, 13)), tuple(2**k for k in range(4, 12)), divisible=False)
    grid = Grid.of(space.cells)
    rng = np.random.default_rng(4)
    truth = grid.model.law(PRIOR_MEAN).values
    noisy = truth + 0.05 * rng.standard_normal(len(truth))
    fitted = fit(grid, measured(noisy, list(range(len(truth)))))
    assert fitted.noise == pytest.approx(0.05, rel=0.5)
    assert np.median(np.abs(fitted.mean - truth)) < 0.02


@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_evidence_is_that_of_a_gaussian_at_each_level_of_noise(size: int) -> None:
    rng = np.random.default_rng(size)
    roots = rng.standard_normal((3, size, size))
    covariances, residual = roots @ roots.transpose(0, 2, 1), rng.standard_normal(size)
    for residual_ in (residual, np.zeros(size)):
        found = _evidence(covariances, residual_)
        for k, covariance in enumerate(covariances):
            for j, noise in enumerate(NOISES):
                whole = covariance + noise**2 * np.eye(size)
                log_det = np.linalg.slogdet(whole)[1]
                expected = -0.5 * (residual_ @ np.linalg.solve(whole, residual_) + log_det)
                assert found[k, j] == pytest.approx(expected, rel=1e-6)


def test_of_many_cells_a_part_leads_to_the_law_that_all_of_them_settle() -> None:
    space = Space(tuple(range(1, 13)), tuple(2**k for k in range(4, 12)), divisible=False)
    grid = Grid.of(space.cells)
    rng = np.random.default_rng(5)
    truth = grid.model.law(PRIOR_MEAN + 0.5 * PRIOR_SD * rng.standard_normal(8)).values
    places = rng.choice(len(truth), 70, replace=False).tolist()
    noisy = truth + 0.03 * rng.standard_normal(len(truth))
    many, few = fit(grid, measured(noisy, places)), fit(grid, measured(noisy, places[::2]))
    off_many, off_few = (np.abs(fitted.mean - truth).mean() for fitted in (many, few))
    assert off_many < off_few
    assert (np.abs(many.mean - truth) <= 4 * many.sd).all()
