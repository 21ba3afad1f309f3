"""A job on several types of machine, of which a run is on one."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from raycosttune.core.measured import measured_space
from raycosttune.core.node_type import NodeType
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.workload import Curve, Workload


@dataclass(frozen=True)
class TypedWorkload:
    """Is one job as it runs on each type of machine.

    Attributes:
        name: Name of the job.
        by_type: The job on each type, in spaces of one unnamed type. They differ in times and
            in the cells that each has; batches have the same curves on all.

    Raises:
        InvalidWorkloadError: If there is no type, or start-ups or curves of two differ.
    """

    name: str
    by_type: Mapping[str, Workload]

    def __post_init__(self) -> None:
        """Checks that it is one job."""
        if not self.by_type:
            msg = f"{self.name} must be on at least one type of machine, got none"
            raise InvalidWorkloadError(msg)
        for node_type, job in self.by_type.items():
            for cell in job.space.cells:
                other = self._first(cell.batch_size)
                if job.curve(cell.batch_size) != other.curve(cell.batch_size):
                    self._refuse("the learning curves", f"batch {cell.batch_size}", node_type)
                if job.startup_seconds(cell.workers) != self.startup_seconds(cell.workers):
                    self._refuse("the start-ups", f"{cell.workers} workers", node_type)

    @cached_property
    def space(self) -> Space:
        """The cells of all types."""
        pairs = {(cell.workers, cell.batch_size) for cell in self._cells}
        types = []
        for name, job in self.by_type.items():
            has = {(cell.workers, cell.batch_size) for cell in job.space.cells}
            holes = tuple(sorted(pairs - has))
            types.append(NodeType(name, job.space.workers_per_node, excluded=holes))
        return replace(measured_space(pairs, None), node_types=tuple(types))

    def epoch_seconds(self, cell: Allocation) -> float:
        """See Workload."""
        return self.by_type[cell.node_type].epoch_seconds(replace(cell, node_type=""))

    def step_seconds(self, cell: Allocation) -> float:
        """See Workload."""
        return self.by_type[cell.node_type].step_seconds(replace(cell, node_type=""))

    def startup_seconds(self, workers: int) -> float:
        """See Workload."""
        return next(iter(self.by_type.values())).startup_seconds(workers)

    def curve(self, batch_size: int) -> Curve:
        """See Workload."""
        return self._first(batch_size).curve(batch_size)

    @cached_property
    def _cells(self) -> list[Allocation]:
        return [cell for job in self.by_type.values() for cell in job.space.cells]

    def _first(self, batch_size: int) -> Workload:
        """Returns the job on the first type that has a batch."""
        return next(
            job
            for job in self.by_type.values()
            if any(cell.batch_size == batch_size for cell in job.space.cells)
        )

    def _refuse(self, what: str, where: str, node_type: str) -> None:
        msg = (
            f"{what} of {self.name} must be the same on all types of machine, got others at "
            f"{where} on {node_type!r}. Types may differ in their times alone."
        )
        raise InvalidWorkloadError(msg)
