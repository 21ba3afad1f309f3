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
