"""A workload that was measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.workload import Curve


@dataclass(frozen=True)
class TableWorkload:
    """Holds a job's measurements; a cell that was not measured can't be chosen.

    Attributes:
        name: Name of the job.
        space: The measured cells.
        epochs: Seconds of an epoch by cell.
        steps: Seconds of a step by cell.
        curves: Learning curves by global batch.
        startups: Start-up seconds by workers; `startup` where one is missing.
        startup: Start-up seconds of every other worker count.
    """

    name: str
    space: Space
    epochs: Mapping[Allocation, float]
    steps: Mapping[Allocation, float]
    curves: Mapping[int, Curve]
    startups: Mapping[int, float] = field(default_factory=dict)
    startup: float = 0.0

    def epoch_seconds(self, cell: Allocation) -> float:
        """See Workload."""
        return self.epochs[cell]

    def step_seconds(self, cell: Allocation) -> float:
        """See Workload."""
        return self.steps[cell]

    def startup_seconds(self, workers: int) -> float:
        """See Workload."""
        return self.startups.get(workers, self.startup)

    def curve(self, batch_size: int) -> Curve:
        """See Workload."""
        return self.curves[batch_size]


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
