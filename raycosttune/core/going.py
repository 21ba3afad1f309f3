"""How a run goes at the moment, and on which workers it may go on."""

import math
from dataclasses import dataclass

from raycosttune.core.held import lost_epochs, present, resizes
from raycosttune.core.node_type import Free, free_of
from raycosttune.core.observation import TrialRecord
from raycosttune.core.space import Allocation, Space


@dataclass(frozen=True)
class Going:
    """Says on which workers a run may go on.

    Attributes:
        workers: Its present workers.
        most: Most workers that it may have.
        can_resize: Whether it may change them.
        lost_epochs: Epochs that a change would repeat: those since its last checkpoint.
        changes: How often it has changed them.
        node_type: The type of machine that it is on, and stays on.
    """

    workers: int
    most: float = math.inf
    can_resize: bool = True
    lost_epochs: float = 0.0
    changes: int = 0
    node_type: str = ""

    def allows(self, cell: Allocation) -> bool:
        """Tells whether the run may go on in a cell of its batch."""
        return cell.node_type == self.node_type and cell.workers in self

    def __contains__(self, workers: object) -> bool:
        """Tells whether the run may go on with so many workers."""
        if workers == self.workers:
            return True
        return self.can_resize and isinstance(workers, int) and workers <= self.most


def going(record: TrialRecord, space: Space, *, free_workers: Free, can_resize: bool) -> Going:
    """Returns how a run goes.

    Args:
        record: The run.
        space: The legal cells.
        free_workers: Workers that the cluster can hold beside the running trials, by type
            where there are several, None for any number.
        can_resize: Whether its workers can be changed at all; still they stay where it has
            saved nothing to go on from.
    """
    workers, node_type = present(record, space).workers, record.allocation.node_type
    if not can_resize:
        return Going(workers, can_resize=False, node_type=node_type)
    lost = lost_epochs(record)
    return Going(
        workers,
        most=workers + free_of(free_workers, node_type),
        can_resize=lost is not None,
        lost_epochs=lost or 0.0,
        changes=resizes(record, space),
        node_type=node_type,
    )


def fewer_workers(record: TrialRecord, space: Space) -> int | None:
    """Returns the most workers that a cluster holds for a run, None where it can't go on there.

    Args:
        record: The run, which holds more than that.
        space: The legal cells.
    """
    own = record.allocation.batch_size, record.allocation.node_type
    counts = [c.workers for c in space.cells if (c.batch_size, c.node_type) == own]
    return max(counts, default=None) if lost_epochs(record) is not None else None
