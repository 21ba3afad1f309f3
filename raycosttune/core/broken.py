"""Which cells are tried no more."""

from raycosttune.core.space import Allocation
from raycosttune.core.tally import Tally

FAILURES_PER_CELL = 2


def is_broken(tally: Tally, cell: Allocation) -> bool:
    """Tells whether runs in a cell fail or hang again and again, or its batch can't fit."""
    out = tally.out_of_memory
    alike = (other for other in out if other.node_type == cell.node_type)
    larger = sum(other.local_batch <= cell.local_batch for other in alike)
    failed = tally.failures[cell] >= FAILURES_PER_CELL
    return failed or cell in out or larger >= FAILURES_PER_CELL
