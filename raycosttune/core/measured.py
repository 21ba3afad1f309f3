"""The space of what was measured."""

import math
from collections.abc import Collection

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
