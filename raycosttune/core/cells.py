"""The cells of a space as arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from raycosttune.core.array import Floats, Ints
from raycosttune.core.space import Allocation, Space


@dataclass(frozen=True, eq=False)
class Cells:
    """Holds the cells of a space in its order.

    Attributes:
        index: Place of each cell.
        workers: Their workers, shape (cells,).
        batches: Their batches, shape (cells,).
        types: Places of their types of machine in the space, shape (cells,).
        at_batch: Places of the cells of each batch, shape (k,), by batch in ascending order.
    """

    index: Mapping[Allocation, int]
    workers: Ints
    batches: Ints
    types: Ints
    at_batch: Mapping[int, Ints]

    def spread(self, over: Ints, values: Mapping[int, float]) -> Floats:
        """Gives each cell the value of its workers or batch, NaN where it has none.

        Args:
            over: `workers` or `batches`.
            values: The values by number.
        """
        spread = np.full(len(over), np.nan)
        for number, value in values.items():
            spread[over == number] = value
        return spread


@lru_cache(maxsize=16)
def cells_of(space: Space) -> Cells:
    """Returns the cells of a space."""
    workers = np.array([cell.workers for cell in space.cells], dtype=np.int64)
    batches = np.array([cell.batch_size for cell in space.cells], dtype=np.int64)
    place = {kind.name: k for k, kind in enumerate(space.types)}
    types = np.array([place[cell.node_type] for cell in space.cells], dtype=np.int64)
    index = {cell: k for k, cell in enumerate(space.cells)}
    at_batch = {b: np.flatnonzero(batches == b) for b in np.unique(batches).tolist()}
    return Cells(index, workers, batches, types, at_batch)
