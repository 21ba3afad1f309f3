import numpy as np

from raycosttune.core.cells import cells_of
from raycosttune.core.space import Space


def test_the_cells_are_in_the_order_of_the_space() -> None:
    space = Space((1, 2), (64, 128))
    grid = cells_of(space)
    for k, cell in enumerate(space.cells):
        assert grid.index[cell] == k
        assert (grid.workers[k], grid.batches[k]) == (cell.workers, cell.batch_size)
    assert cells_of(Space((1, 2), (64, 128))) is grid


def test_each_cell_has_the_value_of_its_batch_or_none() -> None:
    grid = cells_of(Space((1, 2), (64, 128)))
    spread = grid.spread(grid.batches, {64: 3.0})
    np.testing.assert_array_equal(spread, [3.0, np.nan, 3.0, np.nan])
