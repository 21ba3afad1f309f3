"""Which cells are tried no more."""

from raycosttune.core.space import Allocation
from raycosttune.core.tally import Tally

FAILURES_PER_CELL = 2


def is_broken(tally: Tally, cell: Allocation) -> bool:
    """Tells whether runs in a cell fail or hang again and again, or its batch can't fit.

    Workers that twice had not begun to train by the deadline, and never did, take as long to
    start at any batch.
    """
    out = tally.out_of_memory
    alike = (other for other in out if other.node_type == cell.node_type)
    larger = sum(other.local_batch <= cell.local_batch for other in alike)
    failed = tally.failures[cell] >= FAILURES_PER_CELL
    start = cell.node_type, cell.workers
    is_late = tally.late_starts[start] >= FAILURES_PER_CELL and start not in tally.startup_seconds
    return failed or is_late or cell in out or larger >= FAILURES_PER_CELL
