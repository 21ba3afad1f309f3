import math

import numpy as np
import pytest

from raycosttune.core.accuracy_surrogate import noise_scales
from raycosttune.core.metric_surface import Curve, MetricSurface

BATCHES = (32, 64, 128, 256)
SCALES = noise_scales(32, 256)
SCALE = float(SCALES[12])


def gap(batch: int, epoch: float) -> float:
    """Shrinks with the log epochs, and reaches 0 after 20 epochs at no batch at all."""
    return 1.0 - math.log(epoch / (1 + batch / SCALE)) / math.log(20)


def curve(batch: int, epochs: int, noise: float = 0.0, seed: int = 0) -> Curve:
    rng = np.random.default_rng(seed)
    points = ((float(e), gap(batch, e) + noise * rng.standard_normal()) for e in range(1, epochs))
    return Curve(batch, tuple(points))


def test_what_was_seen_is_known() -> None:
    surface = MetricSurface([curve(32, 25), curve(128, 25)], SCALES)
    for batch in (32, 128):
        for epoch in (2, 10, 20):
            found = surface.predict(batch, epoch)
            assert found.mid == pytest.approx(gap(batch, epoch), abs=0.03)
            assert found.low <= gap(batch, epoch) <= found.high


def test_two_batches_tell_of_a_third_within_its_interval() -> None:
    surface = MetricSurface([curve(32, 25), curve(256, 25)], SCALES)
    held = [
        surface.predict(b, e).low <= gap(b, e) <= surface.predict(b, e).high
        for b in (64, 128)
        for e in range(2, 25)
    ]
    assert np.mean(held) > 0.9


def test_one_batch_alone_tells_less_of_another_than_two_do() -> None:
    one = MetricSurface([curve(32, 25)], SCALES).predict(256, 10)
    two = MetricSurface([curve(32, 25), curve(128, 25)], SCALES).predict(256, 10)
    assert one.high - one.low > two.high - two.low


def test_an_unfinished_run_is_less_sure_the_farther_it_is_continued() -> None:
    surface = MetricSurface([curve(64, 8)], SCALES)
    near, far = surface.predict(64, 9), surface.predict(64, 40)
    assert near.mid > far.mid
    assert far.high - far.low > 2 * (near.high - near.low)
    assert far.low <= gap(64, 40) <= far.high


def test_before_the_first_evaluation_the_gap_is_larger() -> None:
    assert MetricSurface([curve(64, 8)], SCALES).predict(64, 0.5).mid > gap(64, 1) - 1e-6


def test_bounds_hold_where_the_shape_does() -> None:
    curves = [curve(64, 20, 0.02), curve(128, 12, 0.02, seed=1)]
    surface, held = MetricSurface(curves, SCALES), []
    for batch in BATCHES:
        for epoch in range(1, 30):
            low, high = surface.bounds(batch, epoch)
            held.append(low <= gap(batch, epoch) <= high)
    assert np.mean(held) > 0.95
    assert surface.bounds(32, 30)[0] == -math.inf
    assert surface.bounds(256, 1)[1] == math.inf


def test_predictions_lie_within_the_bounds() -> None:
    surface = MetricSurface([curve(64, 20, 0.05), curve(128, 12, 0.05, seed=1)], SCALES)
    for batch in BATCHES:
        for epoch in (1, 5, 15, 40):
            found, (low, high) = surface.predict(batch, epoch), surface.bounds(batch, epoch)
            assert low <= found.low <= found.mid <= found.high <= high


def test_the_noise_of_evaluations_is_told_from_the_curves() -> None:
    rough = MetricSurface([curve(64, 60, 0.05)], SCALES)
    assert rough.noise == pytest.approx(0.05, rel=0.4)
    assert MetricSurface([curve(64, 60)], SCALES).noise < 0.01
    assert rough.slack >= 2 * rough.noise


def test_curves_that_contradict_the_shape_widen_the_slack() -> None:
    points = tuple((float(e), 1.0 - gap(64, e)) for e in range(1, 20))  # the gap rises
    assert MetricSurface([Curve(64, points)], SCALES).slack > 0.4


def test_two_points_at_one_epoch_have_no_slope() -> None:
    surface = MetricSurface([Curve(64, ((1.0, 0.5),)), Curve(64, ((1.0, 0.5),))], SCALES)
    found = surface.predict(64, 10)
    assert found.mid == pytest.approx(0.5, abs=1e-3)
