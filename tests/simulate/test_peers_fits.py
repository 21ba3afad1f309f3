import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.peers.profiling import coarse_grid
from raycosttune.simulate.peers.step_time import StepTime, fit_step_time
from raycosttune.simulate.peers.surface import Surface, order

NODES = Space(
    (1, 2, 3, 4, 6, 8, 12, 16), (64, 128, 256, 512, 1024), workers_per_node=4, divisible=False
)
# The solver closes the gap of the objective to 1e-8, so about its square root in the values.
TOLERANCE = 1e-3
POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9)


@given(POINTS)
def test_chains_of_edges_join_exactly_the_ordered_points(points: list[tuple[int, int]]) -> None:
    distinct = np.array(sorted(set(points)), dtype=np.float64)
    edges = order(distinct)
    reach = np.eye(len(distinct), dtype=bool)
    reach[edges.tail, edges.head] = True
    for middle in range(len(distinct)):
        reach |= reach[:, middle : middle + 1] & reach[middle]
    below = (distinct[:, None] <= distinct[None]).all(axis=2)
    assert (reach == below).all()


@settings(deadline=None)
@given(POINTS, st.data())
def test_a_surface_never_falls_between_measured_corners(
    points: list[tuple[int, int]], data: st.DataObject
) -> None:
    measured = [(0, 0), *points, (4, 4)]
    count = len(measured)
    values = data.draw(st.lists(st.floats(-3, 3), min_size=count, max_size=count))
    surface = Surface.fit(measured, values)
    grid = np.array([[surface.predict((x, y)) for y in range(5)] for x in range(5)])
    assert (np.diff(grid, axis=0) >= -TOLERANCE).all()
    assert (np.diff(grid, axis=1) >= -TOLERANCE).all()


def test_a_surface_keeps_values_that_never_fall() -> None:
    points = [(x, y) for x in range(4) for y in range(3)]
    values = [x + 2.0 * y for x, y in points]
    surface = Surface.fit(points, values)
    assert [surface.predict(point) for point in points] == pytest.approx(values, abs=TOLERANCE)
    assert surface.predict((0.5, 0.5)) == pytest.approx((0 + 3) / 2, abs=TOLERANCE)


MODELS = [
    StepTime(0.02, 1e-3, 0.01, 0.002, 0.08, 0.004, 1.0),
    StepTime(0.05, 4e-4, 0.02, 0.01, 0.2, 0.001, 2.5),
    StepTime(0.01, 2e-3, 0.05, 0.001, 0.3, 0.01, 6.0),
]


@pytest.mark.parametrize("model", MODELS)
def test_the_fit_recovers_step_times_of_its_own_formula(model: StepTime) -> None:
    seen = coarse_grid(NODES)
    fitted = fit_step_time(seen, model.seconds(seen).tolist())
    assert fitted.seconds(seen) == pytest.approx(model.seconds(seen), rel=0.01)
    assert fitted.seconds(NODES.cells) == pytest.approx(model.seconds(NODES.cells), rel=0.05)


def test_step_times_fit_in_any_unit() -> None:
    seen = coarse_grid(NODES)
    seconds = MODELS[1].seconds(seen)
    once, scaled = (fit_step_time(seen, (unit * seconds).tolist()) for unit in (1.0, 5e4))
    assert scaled.seconds(NODES.cells) == pytest.approx(5e4 * once.seconds(NODES.cells), rel=1e-3)


def test_an_exchange_that_was_not_seen_looks_free() -> None:
    alone = [cell for cell in NODES.cells if cell.workers == 1]
    fitted = fit_step_time(alone, MODELS[0].seconds(alone).tolist())
    two = Allocation(2, 2 * alone[0].batch_size)
    assert fitted.seconds([two]) == pytest.approx(fitted.seconds([alone[0]]), rel=0.01)
