"""The space of what was measured."""

import math
from collections.abc import Collection
from dataclasses import replace

from raycosttune.core.node_type import NodeType
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidWorkloadError


def measured_space(pairs: set[tuple[int, int]], workers_per_node: int | None) -> Space:
    """Returns the space of some pairs of workers and global batch; holes can't be chosen."""
    workers = tuple(sorted({n for n, _ in pairs}))
    batches = tuple(sorted({b for _, b in pairs}))
    holes = {(n, b) for n in workers for b in batches} - pairs
    return Space(
        workers,
        batches,
        workers_per_node=workers_per_node,
        divisible=False,
        excluded=tuple(sorted(holes)),
    )


def space_of(cells: Collection[Allocation]) -> Space:
    """Returns the space of some cells, by type of machine where they have types.

    Raises:
        InvalidWorkloadError: If those of a type don't lie on machines of one size.
    """
    pairs = {(cell.workers, cell.batch_size) for cell in cells}
    if not any(cell.node_type for cell in cells):
        return measured_space(pairs, workers_per_node(cells))
    types = []
    for name in sorted({cell.node_type for cell in cells}):
        own = [cell for cell in cells if cell.node_type == name]
        holes = pairs - {(cell.workers, cell.batch_size) for cell in own}
        types.append(NodeType(name, workers_per_node(own), excluded=tuple(sorted(holes))))
    return replace(measured_space(pairs, None), node_types=tuple(types))


def workers_per_node(cells: Collection[Allocation]) -> int:
    """Returns a size of machines, in workers, that gives every cell the nodes it had.

    Raises:
        InvalidWorkloadError: If there is none.
    """
    for size in range(max(cell.workers for cell in cells), 0, -1):
        if all(math.ceil(cell.workers / size) == cell.nodes for cell in cells):
            return size
    msg = f"every cell must lie on machines of one size, got {sorted(cells)}"
    raise InvalidWorkloadError(msg)
