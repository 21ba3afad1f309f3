import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.space import Allocation, Space
from raycosttune.core.time_surrogate import DEFAULT_SLACK, NODE_FACTOR, TimeSurrogate
from tests.core.drive import Job, jobs, spaces, spaces_and_jobs

NOISE = 0.10  # half width of the interval around a single sample, in logs
SMALL = settings(max_examples=60)


@st.composite
def measurements(draw: st.DrawFn) -> tuple[Space, Job, dict[Allocation, list[float]]]:
    """Draws a surface of the assumed shape and noise-free samples of some of its cells."""
    space, job = draw(spaces_and_jobs())
    cells = draw(st.sets(st.sampled_from(space.cells), min_size=1))
    count = draw(st.integers(1, 4))
    return space, job, {cell: [job.epoch_seconds[cell]] * count for cell in cells}


@st.composite
def hostile_samples(draw: st.DrawFn) -> tuple[Space, dict[Allocation, list[float]]]:
    space = draw(spaces())
    seconds = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=3)
    return space, draw(st.dictionaries(st.sampled_from(space.cells), seconds))


@SMALL
@given(measurements())
def test_the_bounds_hold_every_surface_of_the_shape(
    data: tuple[Space, Job, dict[Allocation, list[float]]],
) -> None:
    space, job, samples = data
    surrogate = TimeSurrogate(space, samples)
    assert surrogate.slack == DEFAULT_SLACK
    for cell in space.cells:
        predicted = surrogate.predict(cell)
        assert predicted.low <= job.epoch_seconds[cell] * (1 + 1e-9)
        assert predicted.high >= job.epoch_seconds[cell] * (1 - 1e-9)


@SMALL
@given(measurements())
def test_a_measured_cell_is_predicted_within_its_noise(
    data: tuple[Space, Job, dict[Allocation, list[float]]],
) -> None:
    space, _, samples = data
    surrogate = TimeSurrogate(space, samples)
    assert not surrogate.is_empty
    for cell in space.cells:
        assert surrogate.is_measured(cell) is (cell in samples)
    for cell, seconds in samples.items():
        width = NOISE / math.sqrt(len(seconds)) + 1e-9
        assert abs(math.log(surrogate.predict(cell).mid / seconds[0])) <= width


@given(st.floats(1e-3, 1e5))
def test_what_was_measured_often_outweighs_the_prior(seconds: float) -> None:
    space = Space((1, 2, 4, 8), (32, 64, 128, 256))
    cell = space.cells[-1]
    mid = TimeSurrogate(space, {cell: [seconds] * 30, space.cells[0]: [seconds] * 30}).predict(cell)
    assert mid.mid == pytest.approx(seconds, rel=1e-2)


@SMALL
@given(spaces_and_jobs())
def test_a_whole_table_of_the_shape_is_predicted_as_it_is(data: tuple[Space, Job]) -> None:
    space, job = data
    surrogate = TimeSurrogate(space, {cell: [job.epoch_seconds[cell]] for cell in space.cells})
    for cell in space.cells:
        assert surrogate.predict(cell).mid == pytest.approx(job.epoch_seconds[cell], rel=2e-3)


@SMALL
@given(hostile_samples())
def test_any_samples_give_ordered_finite_predictions(
    data: tuple[Space, dict[Allocation, list[float]]],
) -> None:
    space, samples = data
    surrogate = TimeSurrogate(space, samples)
    assert surrogate.is_empty is (not samples)
    for cell in space.cells:
        predicted = surrogate.predict(cell)
        assert 0 <= predicted.low <= predicted.mid * (1 + 1e-9)
        assert predicted.mid <= predicted.high * (1 + 1e-9)
        assert 0 < predicted.mid < math.inf
        assert math.isfinite(predicted.high) is bool(samples)


@SMALL
@given(hostile_samples())
def test_the_bounds_meet_the_interval_of_whatever_was_measured(
    data: tuple[Space, dict[Allocation, list[float]]],
) -> None:
    space, samples = data
    surrogate = TimeSurrogate(space, samples)
    assert surrogate.slack >= DEFAULT_SLACK
    for cell, seconds in samples.items():
        logs = np.log(seconds)
        root = math.sqrt(len(logs))
        width = math.exp(max(NOISE / root, 2 * float(logs.std()) / root)) * (1 + 1e-9)
        median = math.exp(float(np.median(logs)))
        predicted = surrogate.predict(cell)
        assert predicted.low <= median * width
        assert predicted.high >= median / width


@given(st.floats(1.5, 100))
def test_time_that_rises_with_the_batch_widens_the_slack_to_what_it_breaks(rise: float) -> None:
    space = Space((1,), (64, 128))
    small, large = space.cells
    surrogate = TimeSurrogate(space, {small: [10.0], large: [10.0 * rise]})
    assert surrogate.slack == pytest.approx(max(DEFAULT_SLACK, math.log(rise) - 2 * NOISE))


def test_a_step_to_more_nodes_may_slow_an_epoch_down_by_the_node_factor() -> None:
    space = Space((4, 8), (64,), workers_per_node=4)
    one, two = space.cells
    surrogate = TimeSurrogate(space, {one: [10.0]})
    allowed = NODE_FACTOR * math.exp(NOISE + DEFAULT_SLACK)
    assert surrogate.predict(two).high == pytest.approx(10 * allowed)
    assert surrogate.predict(two).low == pytest.approx(10 / 2 / math.exp(NOISE + DEFAULT_SLACK))


@SMALL
@given(spaces_and_jobs(), st.integers(2, 30))
def test_more_samples_of_a_cell_narrow_its_bounds(data: tuple[Space, Job], count: int) -> None:
    space, job = data
    cell = space.cells[0]
    once = TimeSurrogate(space, {cell: [job.epoch_seconds[cell]]}).predict(cell)
    often = TimeSurrogate(space, {cell: [job.epoch_seconds[cell]] * count}).predict(cell)
    assert once.low < often.low <= often.high < once.high


@SMALL
@given(st.data())
def test_cells_that_left_the_space_are_ignored(data: st.DataObject) -> None:
    space = data.draw(spaces())
    job = data.draw(jobs(space))
    samples = {cell: [job.epoch_seconds[cell]] for cell in space.cells}
    surrogate = TimeSurrogate(space, samples | {Allocation(64, 4096, 9): [1e-3]})
    for cell in space.cells:
        assert surrogate.predict(cell) == TimeSurrogate(space, samples).predict(cell)
