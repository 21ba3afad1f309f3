import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from raycosttune.core.noise_scale import NoiseScale, NoiseTerms, pooled, step_terms

MEAN = np.linspace(-0.5, 0.6, 12)
SPREAD = np.linspace(0.5, 2.0, 12)


def measured(batches: list[int], steps: int, seed: int) -> NoiseTerms:
    """Terms of `steps` steps with known noise, summed worker by worker and then pooled."""
    rng = np.random.default_rng(seed)
    parts = [NoiseTerms() for _ in batches]
    total = sum(batches)
    for _ in range(steps):
        means: list[NDArray[np.float64]] = [
            rng.normal(MEAN, SPREAD / math.sqrt(b), MEAN.size) for b in batches
        ]
        whole: NDArray[np.float64] = np.average(means, axis=0, weights=batches)
        square = float(whole @ whole)
        for i, (b, g) in enumerate(zip(batches, means, strict=True)):
            parts[i] += NoiseTerms(
                b * float(g @ g), total * square, square, 1 / total, len(batches) - 1, 1
            )
    return pooled(parts)


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.integers(0, 2**32 - 1))
def test_uneven_parts_give_the_true_noise_scale(batches: list[int], seed: int) -> None:
    truth = float(SPREAD @ SPREAD) / float(MEAN @ MEAN)
    estimate = NoiseScale().updated(measured(batches, 20_000 // len(batches), seed)).samples
    assert estimate == pytest.approx(truth, rel=0.25)


def test_one_step_known_in_all_its_parts_is_the_same_as_the_pooled_terms() -> None:
    rng = np.random.default_rng(1)
    batches = [3, 5]
    gradients = [rng.normal(size=4) for _ in batches]
    whole = (3 * gradients[0] + 5 * gradients[1]) / 8
    square = float(whole @ whole)
    squares = [float(g @ g) for g in gradients]
    parts = [
        NoiseTerms(b * s, 8 * square, square, 1 / 8, 1, 1)
        for b, s in zip(batches, squares, strict=True)
    ]
    assert step_terms(batches, squares, square) == pooled(parts)


def test_equal_gradients_have_no_noise_scale() -> None:
    assert NoiseScale().updated(step_terms([4, 4], [2.0, 2.0], 2.0)).samples is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_overflowed_is_left_out(bad: float) -> None:
    good = NoiseScale().updated(step_terms([4, 4], [3.0, 3.0], 2.0))
    assert good.updated(step_terms([4, 4], [bad, 3.0], 2.0)) == good
    assert good.updated(NoiseTerms()) == good


def test_nothing_is_known_before_the_first_step_or_where_the_gradient_drowns_in_noise() -> None:
    assert NoiseScale().samples is None
    assert NoiseScale(variance=1.0, square=-1.0, weight=1.0).samples is None
    assert NoiseScale(variance=1e308, square=5e-324, weight=1.0).samples is None


def test_what_was_seen_of_gradients_adds_up() -> None:
    first, second = step_terms([2, 6], [3.0, 2.0], 1.5), step_terms([4, 4], [1.0, 2.0], 1.0)
    both = map(sum, zip(astuple(first), astuple(second), strict=True))
    assert astuple(first + second) == pytest.approx(tuple(both))
