import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.readings import Readings
from raycosttune.core.space import Allocation, Space
from raycosttune.core.time_surrogate import (
    DEFAULT_SLACK,
    LEAST_HALF_WIDTH,
    NODE_FACTOR,
    TimeSurrogate,
    fitted_time,
)
from tests.core.drive import Job, jobs, spaces, spaces_and_jobs

NOISE = 0.10  # half width of the interval around a single sample, in logs
SMALL = settings(max_examples=60)
SPACE = Space((1, 2, 3, 4, 6, 8, 12), (32, 64, 128, 256, 512, 1024), workers_per_node=4)


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
    seconds = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=5)
    return space, draw(st.dictionaries(st.sampled_from(space.cells), seconds))


def seconds_of(cell: Allocation, *, step: float = 60.0, sync: float = 40.0) -> float:
    """Returns an epoch's time by a plain law, in a unit of its own."""
    far = 2.5 if cell.nodes > 1 else 1.0
    exchange = 0.0 if cell.workers == 1 else sync * far
    return 1e3 * (step + cell.batch_size / cell.workers + exchange) / cell.batch_size + 5


def noisy(
    cells: list[Allocation], sd: float, rng: np.random.Generator, count: int = 1
) -> dict[Allocation, list[float]]:
    return {
        cell: [seconds_of(cell) * float(np.exp(sd * z)) for z in rng.standard_normal(count)]
        for cell in cells
    }


@SMALL
@given(measurements())
def test_the_bounds_hold_every_surface_of_the_shape(
    data: tuple[Space, Job, dict[Allocation, list[float]]],
) -> None:
    space, job, samples = data
    surrogate = TimeSurrogate.of(space, samples)
    assert surrogate.slack == DEFAULT_SLACK
    for cell in space.cells:
        low, high = surrogate.bounds(cell)
        assert low == surrogate.least(cell)
        assert low <= job.epoch_seconds[cell] * (1 + 1e-9)
        assert high >= job.epoch_seconds[cell] * (1 - 1e-9)


@SMALL
@given(measurements())
def test_a_measured_cell_is_predicted_within_its_noise(
    data: tuple[Space, Job, dict[Allocation, list[float]]],
) -> None:
    space, _, samples = data
    surrogate = TimeSurrogate.of(space, samples)
    assert not surrogate.is_empty
    for cell in space.cells:
        assert surrogate.is_measured(cell) is (cell in samples)
    for cell, seconds in samples.items():
        assert abs(math.log(surrogate.predict(cell).mid / seconds[0])) <= NOISE + 1e-9


@given(st.floats(1e-3, 1e5))
def test_what_was_measured_often_outweighs_the_prior(seconds: float) -> None:
    space = Space((1, 2, 4, 8), (32, 64, 128, 256))
    cell = space.cells[-1]
    mid = TimeSurrogate.of(space, {cell: [seconds] * 30, space.cells[0]: [seconds] * 30}).predict(
        cell
    )
    assert mid.mid == pytest.approx(seconds, rel=2e-2)


@SMALL
@given(hostile_samples())
def test_any_samples_give_ordered_finite_predictions(
    data: tuple[Space, dict[Allocation, list[float]]],
) -> None:
    space, samples = data
    surrogate = TimeSurrogate.of(space, samples)
    assert surrogate.is_empty is (not samples)
    assert np.isfinite(surrogate.log_mean).all()
    assert (surrogate.log_sd > 0).all()
    for cell in space.cells:
        predicted, (low, high) = surrogate.predict(cell), surrogate.bounds(cell)
        assert 0 <= predicted.low <= predicted.mid <= predicted.high
        assert 0 < predicted.mid < math.inf
        assert low * (1 - 1e-9) <= predicted.mid <= high * (1 + 1e-9)
        assert math.isfinite(high) is bool(samples)


@SMALL
@given(hostile_samples())
def test_the_bounds_meet_the_interval_of_whatever_was_measured(
    data: tuple[Space, dict[Allocation, list[float]]],
) -> None:
    space, samples = data
    surrogate = TimeSurrogate.of(space, samples)
    lower, upper = surrogate.log_bounds
    low, high = surrogate._intervals
    places = surrogate._measured.places
    assert surrogate.slack >= DEFAULT_SLACK
    assert (lower[places] <= high + 1e-9).all()
    assert (upper[places] >= low - 1e-9).all()
    assert (lower <= upper + 1e-9).all()


@given(st.floats(1.5, 100))
def test_time_that_rises_with_the_batch_widens_the_slack_to_what_it_breaks(rise: float) -> None:
    space = Space((1,), (64, 128))
    small, large = space.cells
    surrogate = TimeSurrogate.of(space, {small: [10.0], large: [10.0 * rise]})
    assert surrogate.slack == pytest.approx(max(DEFAULT_SLACK, math.log(rise) - 2 * NOISE))


def test_a_step_to_more_nodes_may_slow_an_epoch_down_by_the_node_factor() -> None:
    space = Space((4, 8), (64,), workers_per_node=4)
    one, two = space.cells
    low, high = TimeSurrogate.of(space, {one: [10.0]}).bounds(two)
    allowed = math.exp(NOISE + DEFAULT_SLACK)
    assert high == pytest.approx(10 * NODE_FACTOR * allowed)
    assert low == pytest.approx(10 / 2 / allowed)


@SMALL
@given(spaces_and_jobs(), st.integers(2, 30))
def test_more_samples_of_a_cell_narrow_its_bounds(data: tuple[Space, Job], count: int) -> None:
    space, job = data
    cell = space.cells[0]
    once = TimeSurrogate.of(space, {cell: [job.epoch_seconds[cell]]}).bounds(cell)
    often = TimeSurrogate.of(space, {cell: [job.epoch_seconds[cell]] * count}).bounds(cell)
    assert once[0] < often[0] <= often[1] < once[1]
    assert math.log(often[1] / often[0]) >= 2 * LEAST_HALF_WIDTH - 1e-9


@SMALL
@given(st.data())
def test_cells_that_left_the_space_are_ignored(data: st.DataObject) -> None:
    space = data.draw(spaces())
    job = data.draw(jobs(space))
    samples = {cell: [job.epoch_seconds[cell]] for cell in space.cells}
    surrogate = TimeSurrogate.of(space, samples | {Allocation(64, 4096, 9): [1e-3]})
    for cell in space.cells:
        assert surrogate.predict(cell) == TimeSurrogate.of(space, samples).predict(cell)


@SMALL
@given(measurements(), st.floats(1e-3, 1e3))
def test_another_unit_of_time_scales_the_prediction(
    data: tuple[Space, Job, dict[Allocation, list[float]]], unit: float
) -> None:
    space, _, samples = data
    one = TimeSurrogate.of(space, samples)
    other = TimeSurrogate.of(
        space, {c: [unit * s for s in seconds] for c, seconds in samples.items()}
    )
    np.testing.assert_allclose(other.log_mean, one.log_mean + math.log(unit), atol=1e-6)
    np.testing.assert_allclose(other.log_sd, one.log_sd, rtol=1e-6)


def test_the_arrays_are_the_predictions_in_the_order_of_the_space() -> None:
    surrogate = TimeSurrogate.of(SPACE, {SPACE.cells[3]: [20.0], SPACE.cells[9]: [15.0]})
    low, high = surrogate.log_bounds
    for k, cell in enumerate(SPACE.cells):
        predicted = surrogate.predict(cell)
        assert predicted.mid == pytest.approx(math.exp(surrogate.log_mean[k]))
        width = 2 * 1.6448536 * surrogate.log_sd[k]
        assert math.log(predicted.high / predicted.low) == pytest.approx(width)
        assert surrogate.bounds(cell) == pytest.approx((math.exp(low[k]), math.exp(high[k])))


def test_without_samples_more_workers_and_larger_batches_are_expected_to_be_faster() -> None:
    surrogate = TimeSurrogate.of(SPACE, {})
    mids = {cell: surrogate.predict(cell).mid for cell in SPACE.cells}
    assert surrogate.noise == pytest.approx(0.05)
    assert SPACE.allocation(4, 1024) in mids
    assert mids[SPACE.allocation(4, 1024)] < mids[SPACE.allocation(1, 1024)]
    assert mids[SPACE.allocation(4, 1024)] < mids[SPACE.allocation(4, 32)]


def test_ninety_per_cent_intervals_hold_about_that_many_cells() -> None:
    rng = np.random.default_rng(0)
    held = []
    for _ in range(40):
        picked = rng.choice(len(SPACE.cells), int(rng.integers(3, 12)), replace=False)
        samples = noisy([SPACE.cells[k] for k in picked], 0.05, rng)
        surrogate = TimeSurrogate.of(SPACE, samples)
        truth = np.log([seconds_of(cell) for cell in SPACE.cells])
        held.append(np.abs(surrogate.log_mean - truth) <= 1.645 * surrogate.log_sd)
    assert 0.85 <= np.mean(held) <= 0.99


def test_ten_cells_of_a_law_tell_the_others() -> None:
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(20):
        picked = rng.choice(len(SPACE.cells), 10, replace=False)
        surrogate = TimeSurrogate.of(SPACE, noisy([SPACE.cells[k] for k in picked], 0.05, rng))
        truth = np.log([seconds_of(cell) for cell in SPACE.cells])
        errors.append(np.abs(surrogate.log_mean - truth))
    assert np.median(errors) < 0.06


def test_a_prediction_is_the_surer_the_nearer_it_was_measured() -> None:
    surrogate = TimeSurrogate.of(SPACE, {SPACE.allocation(1, 128): [10.0]})
    sds = dict(zip(SPACE.cells, surrogate.log_sd, strict=True))
    path = [SPACE.allocation(*pair) for pair in ((1, 128), (1, 256), (1, 512), (12, 1024))]
    known = [sds[cell] for cell in path if cell in sds]
    assert known == sorted(known)
    assert known[-1] > 3 * known[0]


@pytest.mark.parametrize("sd", [0.02, 0.05, 0.2])
def test_the_noise_is_learned_from_repeated_epochs(sd: float) -> None:
    rng = np.random.default_rng(2)
    surrogate = TimeSurrogate.of(SPACE, noisy(list(SPACE.cells[::4]), sd, rng, count=20))
    assert surrogate.noise == pytest.approx(sd, rel=0.3)


def test_one_straggling_cell_moves_its_neighbours_little() -> None:
    samples = {cell: [seconds_of(cell)] for cell in SPACE.cells[::3]}
    straggler = SPACE.cells[15]
    clean = TimeSurrogate.of(SPACE, samples)
    hit = TimeSurrogate.of(SPACE, samples | {straggler: [3 * seconds_of(straggler)]})
    others = [k for k, cell in enumerate(SPACE.cells) if cell != straggler]
    assert np.median(np.abs(hit.log_mean - clean.log_mean)[others]) < 0.06


def test_one_straggling_epoch_of_many_leaves_noise_and_bounds_alone() -> None:
    rng = np.random.default_rng(3)
    samples = noisy(list(SPACE.cells[::6]), 0.03, rng, count=20)
    clean = TimeSurrogate.of(SPACE, samples)
    samples[SPACE.cells[0]][0] *= 10
    hit = TimeSurrogate.of(SPACE, samples)
    assert hit.noise == pytest.approx(clean.noise, rel=0.3)
    assert hit.bounds(SPACE.cells[0]) == pytest.approx(clean.bounds(SPACE.cells[0]), rel=0.03)


def test_where_shape_and_law_disagree_the_interval_says_so() -> None:
    rises = {SPACE.allocation(1, 32): [10.0] * 50, SPACE.allocation(1, 1024): [25.0] * 50}
    falls = {SPACE.allocation(1, 32): [10.0] * 50, SPACE.allocation(1, 1024): [6.0] * 50}
    k = SPACE.cells.index(SPACE.allocation(1, 128))
    assert TimeSurrogate.of(SPACE, rises).log_sd[k] > TimeSurrogate.of(SPACE, falls).log_sd[k]


def test_the_same_samples_are_fitted_once() -> None:
    one, same, other = ({0: Readings(seconds)} for seconds in ([10.0], [10.0], [11.0]))
    assert fitted_time(SPACE, one) is fitted_time(SPACE, same)
    assert fitted_time(SPACE, one) is not fitted_time(SPACE, other)
    assert fitted_time(Space((1,), (64,)), one) is not fitted_time(SPACE, one)
