import math

import numpy as np
import pytest

from raycosttune.core.accuracy_surrogate import noise_scales
from raycosttune.core.epochs import Epochs
from raycosttune.core.recipe_epochs import TOLERATED, RecipeEpochs, least

SCALES = noise_scales(32, 1024)


def of(*runs: tuple[int, float, float]) -> RecipeEpochs:
    return RecipeEpochs.of((Epochs(batch, "a", low, high) for batch, low, high in runs), SCALES)


def test_a_recipe_that_reached_the_target_has_its_level_and_how_sure_it_is() -> None:
    once, often = of((64, 9, 10)), of(*[(64, 9.0, 10.0)] * 4)
    np.testing.assert_allclose(once.offset, math.log(10) - np.log1p(64 / SCALES))
    np.testing.assert_allclose(often.offset, once.offset)
    assert often.offset_sd == pytest.approx(once.offset_sd / 2)


def test_a_run_in_vain_where_few_epochs_are_likely_speaks_against_a_noise_scale() -> None:
    """A larger batch needs more epochs, the more so the smaller the noise scale."""
    both = of((64, 9, 10), (1024, 40, math.inf)).support
    assert (np.diff(both) < 0).all()
    assert both[-1] < both[0] - 10


def test_what_a_recipe_needs_at_least_is_the_most_that_it_ran_in_vain() -> None:
    vain = of((64, 4, math.inf), (64, 9, math.inf), (256, 5, math.inf))
    single = [of((64, 9, math.inf)).beyond, of((256, 5, math.inf)).beyond]
    np.testing.assert_allclose(vain.beyond, np.max(single, axis=0))
    assert list(vain.longest) == [(64, 9), (256, 5)]
    assert [runs.has_reached for runs in (vain, of((64, 9, 10)))] == [False, True]


def test_residuals_are_level_beyond_the_batches_that_reached_it() -> None:
    runs = of((64, 9, 10), (256, 19, 20))
    batches = np.array([32.0, 64.0, 128.0, 256.0, 1024.0])
    left, own, between, last, right = runs.residuals(batches).T
    np.testing.assert_allclose(left, own)
    np.testing.assert_allclose(right, last)
    np.testing.assert_allclose(between, (own + last) / 2)
    lone = of((64, 9, 10)).residuals(batches)
    np.testing.assert_allclose(lone, np.zeros_like(lone), atol=1e-12)
    assert not of((64, 9, math.inf)).residuals(batches).any()


def test_epochs_that_fall_first_have_a_valley_instead_of_a_slack() -> None:
    runs = of((64, 39, 40), (128, 19, 20), (512, 39, 40))
    assert runs.violation == pytest.approx(TOLERATED)
    assert all(64 < valley <= 512 for valley in runs.valleys)
    low, high = runs.bounds(np.array([32.0, 64.0, 128.0, 256.0, 1024.0]), runs.violation)
    assert low[0] >= 39 * math.exp(-TOLERATED) - 1e-9
    assert low[1:3].tolist() == pytest.approx([39, 19])
    assert low[3] < 20 < high[3]
    assert low[4] >= 39 * math.exp(-TOLERATED) - 1e-9


def test_while_epochs_only_fall_the_valley_may_lie_anywhere_beyond() -> None:
    runs = of((64, 39, 40), (128, 19, 20))
    assert runs.valleys[-1] == SCALES[-1]
    low, _ = runs.bounds(np.array([1024.0]), 0.1)
    assert low[0] < 19 / 4


def test_what_rises_within_the_tolerance_has_no_valley() -> None:
    assert of((64, 9, 10), (128, 9, 9.5)).valleys == (0.0,)


def test_repeats_that_contradict_each_other_have_no_valley_either() -> None:
    runs = of((64, 39, 40), (64, 9, 10))
    assert runs.valleys == (0.0,)
    assert runs.violation == pytest.approx(math.log(39 / 10))


@pytest.mark.parametrize(
    ("at", "to", "change"),
    [
        (64, 256, -math.log(2)),  # down to the valley at 128, then up
        (256, 64, -math.log(2)),
        (64, 96, -math.log(1.5)),
        (96, 64, 0.0),
        (256, 512, 0.0),
        (512, 256, -math.log(2)),
    ],
)
def test_epochs_fall_towards_the_valley_alone(at: float, to: float, change: float) -> None:
    assert least((at,), (to,), 128.0) == pytest.approx(change)
