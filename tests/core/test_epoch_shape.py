import math

import pytest

from raycosttune.core.epoch_shape import TOLERATED, EpochShape, epoch_shape, least
from tests.core.test_recipe_epochs import SCALES, of


def test_epochs_that_fall_first_have_a_valley_instead_of_a_slack() -> None:
    runs = of((64, 39, 40), (128, 19, 20), (512, 39, 40))
    assert runs.violation == pytest.approx(TOLERATED)
    assert all(64 < valley <= 512 for valley in runs.valleys)
    low, high = runs.bounds((32.0, 64.0, 128.0, 256.0, 1024.0), runs.violation)
    assert low[0] >= 39 * math.exp(-TOLERATED) - 1e-9
    assert low[1:3].tolist() == pytest.approx([39, 19])
    assert low[3] < 20 < high[3]
    assert low[4] >= 39 * math.exp(-TOLERATED) - 1e-9


def test_while_epochs_only_fall_the_valley_may_lie_anywhere_beyond() -> None:
    runs = of((64, 39, 40), (128, 19, 20))
    assert runs.valleys[-1] == SCALES[-1]
    low, _ = runs.bounds((1024.0,), 0.1)
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


def test_the_same_intervals_are_bounded_once() -> None:
    told: tuple[tuple[float, ...], ...] = (64, 256), (2.0, 2.5), (2.1, 2.6), (32.0, 128.0)
    one, batches = epoch_shape(*told), (32.0, 64.0, 1024.0)
    assert one is epoch_shape(*told)
    assert one.bounds(batches, 0.1) is one.bounds(batches, 0.1)
    fresh = EpochShape(*told).bounds(batches, 0.2)
    assert [ends.tolist() for ends in one.bounds(batches, 0.2)] == [e.tolist() for e in fresh]
