import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.array import Floats
from raycosttune.core.space import Allocation, Space
from raycosttune.core.step_model import PRIOR_MEAN, PRIOR_SD, Free, StepModel
from tests.core.drive import spaces

SPACE = Space((1, 2, 4, 8, 16), (16, 64, 256, 1024), workers_per_node=4)


def numbers() -> st.SearchStrategy[Floats]:
    """Draws the numbers of the law within three deviations of their prior."""
    drawn = st.lists(st.floats(-3, 3), min_size=8, max_size=8)
    return drawn.map(lambda z: PRIOR_MEAN + PRIOR_SD * np.array(z))


def by_the_book(free: Free, cell: Allocation, typical: float) -> float:
    """Computes T of one cell as the docstring says it, in plain arithmetic."""
    fixed, gamma = math.exp(free.step), 1 + math.exp(free.overlap)
    compute = fixed + cell.local_batch / typical
    sync = (1 + fixed) * math.exp(free.sync) * (max(cell.workers, 2) / 2) ** free.more
    if cell.nodes > 1:
        sync *= math.exp(free.jump) * (cell.nodes / 2) ** free.farther
    if cell.workers == 1:
        sync = 0.0
    peak = max(compute, sync)
    step = peak * ((compute / peak) ** gamma + (sync / peak) ** gamma) ** (1 / gamma)
    return math.exp(free.scale) * float(step * typical / cell.batch_size + math.exp(free.epoch))


@given(spaces(), numbers())
def test_the_law_is_the_step_time_that_it_names(space: Space, free: Floats) -> None:
    typical = math.exp(np.mean([math.log(cell.local_batch) for cell in space.cells]))
    values = StepModel.of(space.cells).law(free).values
    for cell, value in zip(space.cells, values, strict=True):
        assert value == pytest.approx(math.log(by_the_book(Free(*free), cell, typical)), abs=1e-9)


@given(numbers())
def test_the_slopes_are_the_derivatives(free: Floats) -> None:
    model, width = StepModel.of(SPACE.cells), 1e-5
    slopes = model.law(free).slopes
    for k in range(8):
        shift = width * np.eye(8)[k]
        rise = model.law(free + shift).values - model.law(free - shift).values
        np.testing.assert_allclose(slopes[:, k], rise / (2 * width), atol=1e-5)


@given(numbers())
def test_the_exchange_has_a_share_in_the_time_of_several_workers_alone(free: Floats) -> None:
    sync = StepModel.of(SPACE.cells).law(free).sync
    for cell, share in zip(SPACE.cells, sync, strict=True):
        assert 0 <= share <= 1
        assert share == 0 or cell.workers > 1


@given(numbers())
def test_time_never_rises_with_the_batch_nor_faster_than_one_for_one(free: Floats) -> None:
    model = StepModel.of(SPACE.cells)
    values = dict(zip(SPACE.cells, model.law(free).values, strict=True))
    for cell, value in values.items():
        larger = Allocation(cell.workers, 4 * cell.batch_size, cell.nodes)
        if larger in values:
            assert -math.log(4) - 1e-9 <= values[larger] - value <= 1e-9


def test_a_part_of_the_cells_has_the_values_of_the_whole() -> None:
    model, places = StepModel.of(SPACE.cells), np.array([5, 2, 11])
    whole, part = model.law(PRIOR_MEAN), model.at(places).law(PRIOR_MEAN)
    np.testing.assert_array_equal(part.values, whole.values[places])
    np.testing.assert_array_equal(part.slopes, whole.slopes[places])
