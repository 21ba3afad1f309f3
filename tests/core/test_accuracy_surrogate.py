import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.accuracy_surrogate import (
    DEFAULT_SLACK,
    NEGLIGIBLE,
    QUANTILES,
    AccuracySurrogate,
    noise_scales,
)
from raycosttune.core.epochs import Epochs
from raycosttune.core.recipe_epochs import RecipeEpochs
from tests.core.plain import PlainAccuracy

BATCHES = (32, 64, 256, 1024)
RECIPES = ("a", "b", "c")
SMALL = settings(max_examples=80)
CLOSE = 1 + 1e-9


@st.composite
def truths(draw: st.DrawFn) -> dict[int, float]:
    """Draws epochs to the target that rise with the batch, with slopes in [0, 1]."""
    epochs = {BATCHES[0]: draw(st.floats(0.01, 50))}
    for before, after in pairwise(BATCHES):
        slope = draw(st.sampled_from((0.0, 1.0)) | st.floats(0, 1))
        epochs[after] = epochs[before] * (after / before) ** slope
    return epochs


@st.composite
def runs_of(draw: st.DrawFn, truth: dict[int, float], recipe: str, least: int = 1) -> list[Epochs]:
    """Draws runs that are consistent with a truth, finished and censored."""
    runs = []
    for batch in draw(st.lists(st.sampled_from(BATCHES), min_size=least, max_size=4)):
        low = truth[batch] * draw(st.floats(0.5, 1))
        high = truth[batch] * draw(st.floats(1, 1.5))
        runs.append(Epochs(batch, recipe, low, draw(st.sampled_from((high, math.inf)))))
    return runs


ANY_EPOCHS = st.sampled_from((0.0, 1e-6, 0.25, 1.0, 2.0, 1e9)) | st.floats(0, 1e6)
ANY_RUNS = st.lists(
    st.builds(
        lambda batch, recipe, low, more: Epochs(batch, recipe, low, low + more),
        st.sampled_from(BATCHES),
        st.sampled_from(RECIPES),
        ANY_EPOCHS,
        st.just(math.inf) | st.floats(1e-6, 1e6),
    ),
    max_size=6,
)


def surrogate_of(runs: Sequence[Epochs]) -> AccuracySurrogate:
    """Returns the surrogate of some runs."""
    scales = noise_scales(BATCHES[0], BATCHES[-1])
    keys = dict.fromkeys(run.recipe for run in runs)
    of = {key: [run for run in runs if run.recipe == key] for key in keys}
    found = {key: RecipeEpochs.of(of[key], scales) for key in keys}
    violation = max((epochs.violation for epochs in found.values()), default=0.0)
    return AccuracySurrogate(BATCHES, found, violation)


def reached(batch: int, epochs: float, recipe: str = "a") -> Epochs:
    return Epochs(batch, recipe, epochs - 0.5, epochs)


@SMALL
@given(st.data())
def test_the_bounds_hold_every_truth_of_the_shape(data: st.DataObject) -> None:
    truth = data.draw(truths())
    surrogate = surrogate_of(data.draw(runs_of(truth, "a")))
    assert surrogate.slack == DEFAULT_SLACK
    for batch, epochs in truth.items():
        low, high = surrogate.bounds("a", batch)
        assert low <= epochs * CLOSE
        assert high * CLOSE >= epochs


@SMALL
@given(st.data())
def test_a_censored_run_only_raises_lower_bounds(data: st.DataObject) -> None:
    truth = data.draw(truths())
    runs = data.draw(runs_of(truth, "a"))
    batch = data.draw(st.sampled_from(BATCHES))
    censored = Epochs(batch, "a", truth[batch] * data.draw(st.floats(0.01, 1)), math.inf)
    before = surrogate_of(runs)
    after = surrogate_of([*runs, censored])
    for at in BATCHES:
        assert after.bounds("a", at)[0] >= before.bounds("a", at)[0]
        assert after.bounds("a", at)[1] == before.bounds("a", at)[1]
    assert after.bounds("a", batch)[0] >= censored.low / CLOSE


@given(st.floats(1e-4, 1e4), st.sampled_from(BATCHES))
def test_a_censored_run_shows_no_more_than_it_ran(epochs: float, batch: int) -> None:
    surrogate = surrogate_of([Epochs(batch, "a", epochs, math.inf)])
    low, high = surrogate.bounds("a", batch)
    assert low == pytest.approx(epochs)
    assert high == math.inf


@SMALL
@given(ANY_RUNS)
def test_any_runs_give_finite_positive_samples(runs: list[Epochs]) -> None:
    surrogate = surrogate_of(runs)
    for recipe in (*RECIPES, None):
        for batch in BATCHES:
            samples = surrogate.samples(recipe, batch)
            assert np.all(np.isfinite(samples.epochs))
            assert np.all(samples.epochs > 0)
            assert np.all(samples.weights >= 0)
            assert samples.weights.sum() == pytest.approx(1)
            assert 0 < samples.mean < math.inf


@SMALL
@given(ANY_RUNS)
def test_samples_lie_in_the_bounds(runs: list[Epochs]) -> None:
    surrogate = surrogate_of(runs)
    for recipe in surrogate.recipes:
        for batch in BATCHES:
            low, high = surrogate.bounds(recipe, batch)
            epochs = surrogate.samples(recipe, batch).epochs
            assert low <= epochs.min() * CLOSE
            assert epochs.max() <= high * CLOSE


@SMALL
@given(ANY_RUNS)
def test_scores_are_finite_and_positive(runs: list[Epochs]) -> None:
    surrogate = surrogate_of(runs)
    scores = surrogate.scores()
    assert len(scores) == len(surrogate.recipes)
    assert all(0 < score < math.inf for score in scores)


@SMALL
@given(ANY_RUNS)
def test_no_run_lies_wholly_outside_the_bounds(runs: list[Epochs]) -> None:
    surrogate = surrogate_of(runs)
    for run in runs:
        low, high = surrogate.bounds(run.recipe, run.batch_size)
        assert low <= run.high * CLOSE
        assert high * CLOSE >= run.low


def test_noisy_repeats_bound_the_epochs_between_them() -> None:
    surrogate = surrogate_of([Epochs(64, "a", 9, 10), Epochs(64, "a", 14, 15)])
    np.testing.assert_allclose(surrogate.bounds("a", 64), (10, 14))


@given(st.floats(0.3, 0.9))
def test_epochs_that_fall_faster_than_the_batch_grows_widen_the_slack(fall: float) -> None:
    runs = [Epochs(32, "a", 10, 10), Epochs(64, "a", 10 * fall, 10 * fall)]
    slack = surrogate_of(runs).slack
    assert slack == pytest.approx(max(DEFAULT_SLACK, -math.log(2 * fall)))


@given(st.floats(2.5, 20))
def test_epochs_that_rise_faster_than_the_batch_widen_the_slack(rise: float) -> None:
    runs = [Epochs(32, "a", 10, 10), Epochs(64, "a", 10 * rise, 10 * rise)]
    assert surrogate_of(runs).slack == pytest.approx(math.log(rise / 2))


def test_recipes_do_not_widen_each_others_slack() -> None:
    runs = [reached(32, 40, "a"), reached(64, 4, "b")]
    assert surrogate_of(runs).slack == DEFAULT_SLACK


@SMALL
@given(st.data(), st.lists(st.floats(0.2, 5), min_size=2, max_size=2))
def test_the_floor_lies_below_every_tried_recipe_under_additivity(
    data: st.DataObject, factors: list[float]
) -> None:
    truth = data.draw(truths())
    runs = data.draw(runs_of(truth, "a"))
    others = {"b": factors[0], "c": factors[1]}
    for recipe, factor in others.items():
        scaled = {batch: epochs * factor for batch, epochs in truth.items()}
        runs += data.draw(runs_of(scaled, recipe, least=0))
    surrogate = surrogate_of(runs)
    for batch, epochs in truth.items():
        floor = surrogate.floor(batch, "a")
        for recipe in surrogate.recipes:
            assert floor <= epochs * others.get(recipe, 1.0) * CLOSE


def test_what_loses_to_the_reference_at_one_batch_loses_elsewhere() -> None:
    runs = [reached(32, 5, "a"), reached(256, 10, "a"), Epochs(32, "b", 20, math.inf)]
    floor = surrogate_of(runs).floor(256, "a")
    assert floor == pytest.approx(9.5)
    assert surrogate_of(runs).floor(256, "unseen") == 0.0  # which holds no recipe against another


def test_nothing_seen_bounds_nothing() -> None:
    surrogate = surrogate_of([])
    assert surrogate.bounds("a", 64) == (0.0, math.inf)
    assert surrogate.slack == DEFAULT_SLACK
    assert surrogate.recipes == ()
    assert surrogate.scores() == []


def mean_at(runs: Sequence[Epochs], recipe: str | None, batch: int) -> float:
    return surrogate_of(runs).samples(recipe, batch).mean


@given(st.floats(2, 1000))
def test_a_run_sets_the_level_of_its_recipe_and_of_the_next(epochs: float) -> None:
    once, twice = [reached(64, epochs)], [reached(64, 2 * epochs)]
    assert mean_at(once, "a", 64) == pytest.approx(epochs, rel=0.15)
    assert mean_at(once, None, 64) < mean_at(twice, None, 64)
    assert mean_at(once, "a", 32) <= mean_at(once, "a", 64) <= mean_at(once, "a", 1024)


def test_a_recipe_that_fails_is_expected_to_need_more_than_it_ran() -> None:
    runs = [reached(64, 5, "a"), Epochs(64, "b", 40, math.inf)]
    assert mean_at(runs, "b", 64) > 40
    first, second = surrogate_of(runs).scores()
    assert first < second


def test_a_censored_larger_batch_teaches_that_small_batches_need_fewer_epochs() -> None:
    first = [reached(64, 10)]
    both = [*first, Epochs(1024, "a", 25, math.inf)]
    assert mean_at(both, "a", 256) > mean_at(first, "a", 256)


def test_samples_are_drawn_once() -> None:
    surrogate = surrogate_of([reached(64, 5)])
    assert surrogate.samples("a", 64) is surrogate.samples("a", 64)


@SMALL
@given(st.data())
def test_it_is_the_plain_formula_over_all_pairs_of_runs(data: st.DataObject) -> None:
    runs = data.draw(ANY_RUNS.map(lambda some: [*some, *some[: len(some) // 2]]))
    quick, plain = surrogate_of(runs), PlainAccuracy(BATCHES, runs)
    assert quick.recipes == plain.recipes
    assert quick.slack == pytest.approx(plain.slack, rel=1e-9)
    np.testing.assert_allclose(quick.scores(), plain.scores(), rtol=1e-6)
    for batch in BATCHES:
        for recipe in RECIPES:
            np.testing.assert_allclose(quick.bounds(recipe, batch), plain.bounds(recipe, batch))
            assert quick.floor(batch, recipe) == pytest.approx(plain.floor(batch, recipe), rel=1e-9)
        for key in (*RECIPES, None):
            ours, theirs = quick.samples(key, batch), plain.samples(key, batch)
            told = theirs.weights * len(QUANTILES) > NEGLIGIBLE
            np.testing.assert_allclose(ours.epochs, theirs.epochs[told], rtol=1e-6)
            np.testing.assert_allclose(ours.weights, theirs.weights[told], rtol=1e-6, atol=1e-7)


def test_a_recipe_whose_factor_differs_between_batches_is_held_against_none() -> None:
    best = [Epochs(32, "a", 9, 10), Epochs(64, "a", 9, 10)]
    same = [Epochs(32, "b", 19, 20), Epochs(64, "b", 19, 20)]
    other = [Epochs(32, "b", 19, 20), Epochs(64, "b", 39, 40)]
    assert surrogate_of([*best, *same]).floor(256, "a") == pytest.approx(
        surrogate_of(best).floor(256, "a")
    )
    assert surrogate_of([*best, *other])._ratio("b", "a") == 0
    assert surrogate_of([*best, *same])._ratio("b", "a") > 1
