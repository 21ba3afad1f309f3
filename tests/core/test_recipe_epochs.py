import math

import numpy as np
import pytest

from raycosttune.core.accuracy_surrogate import noise_scales
from raycosttune.core.epochs import Epochs
from raycosttune.core.recipe_epochs import RecipeEpochs

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


def test_a_recipe_at_one_batch_is_told_by_the_most_that_it_ran_in_vain_there() -> None:
    assert of((64, 4, math.inf), (64, 9, 10)).lone == (64, 9)
    assert of((64, 0, 10)).lone is None  # nothing was in vain
    assert of((64, 4, math.inf), (64, 1, 2)).lone is None  # its runs contradict each other
    assert of((64, 4, math.inf), (256, 5, math.inf)).lone is None


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
