"""What a job costs in truth: every cell, the best one, and the best schedule that may resize."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from raycosttune.core.cost import CostMetric, checked_cost
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidGoalError, InvalidWorkloadError
from raycosttune.simulate.workload import Workload

SHARES = np.arange(1, 100) / 100


@dataclass(frozen=True)
class Truth:
    """Knows what every run would take.

    Attributes:
        workload: The job.
        goal: Target and deadline, with mode set.
        cost: The cost metric.

    Raises:
        InvalidGoalError: If the goal has no mode.
        InvalidWorkloadError: If no curve reaches the target, no cell does by the deadline, or
            the best one costs nothing.
    """

    workload: Workload
    goal: Goal
    cost: CostMetric

    def __post_init__(self) -> None:
        """Checks that there is something to find."""
        if self.goal.mode is None:
            msg = 'Goal.mode must be set: "max" or "min"'
            raise InvalidGoalError(msg)
        if not any(math.isfinite(seconds) for seconds in self.seconds.values()):
            raise InvalidWorkloadError(unreachable(self.workload, self.goal))
        if not self.feasible:
            msg = (
                f"{self.workload.name}: no cell reaches the target within "
                f"{self.goal.deadline_seconds:g} s; the fastest needs "
                f"{min(self.seconds.values())} s. Allow at least that."
            )
            raise InvalidWorkloadError(msg)
        if self.oracle_cost == 0:
            msg = (
                f"{self.workload.name}: a run of {self.oracle} costs 0 {self.cost.unit}: a search "
                "can't be measured against it. Take another cost metric."
            )
            raise InvalidWorkloadError(msg)

    @cached_property
    def seconds(self) -> Mapping[Allocation, float]:
        """Start-up and training to the target by cell, infinite where it isn't reached."""
        return seconds_to_target(self.workload, self.goal)

    @cached_property
    def costs(self) -> Mapping[Allocation, float]:
        """Cost of a run by cell, infinite where it doesn't reach the target."""
        return {
            cell: checked_cost(self.cost, cell, seconds) if math.isfinite(seconds) else math.inf
            for cell, seconds in self.seconds.items()
        }

    @cached_property
    def feasible(self) -> tuple[Allocation, ...]:
        """The cells that reach the target by the deadline."""
        return tuple(
            cell
            for cell, seconds in self.seconds.items()
            if math.isfinite(seconds) and seconds <= self._limit
        )

    @cached_property
    def oracle(self) -> Allocation:
        """The cheapest cell that reaches the target by the deadline."""
        return min(self.feasible, key=self.costs.__getitem__)

    @property
    def oracle_cost(self) -> float:
        """What a run of the oracle costs."""
        return self.costs[self.oracle]

    @cached_property
    def resize_cost(self) -> float:
        """Cost of the best run that may change its workers once, at one batch on one type.

        Each part costs its own start and nothing is lost at the change. The epochs are split
        in percent, and where the deadline is met exactly. For a cost that is linear in the
        seconds that is the best of all schedules at one batch, with any number of changes:
        cost and time are sums over the parts and one constraint ties them, so two worker
        counts suffice, one of them up to the deadline. For any other cost it is the best of
        the splits tried.
        """
        by_batch: dict[tuple[str, int], list[Allocation]] = defaultdict(list)
        for cell, seconds in self.seconds.items():
            if math.isfinite(seconds):
                by_batch[cell.node_type, cell.batch_size].append(cell)
        splits = (cost for cells in by_batch.values() for cost in self._split_costs(cells))
        return min([self.oracle_cost, *splits])

    @property
    def _limit(self) -> float:
        return self.goal.deadline_seconds or math.inf

    def _split_costs(self, cells: Sequence[Allocation]) -> Iterator[float]:
        """Yields what runs in time cost that are split between two of one batch's cells."""
        starts = [self.workload.startup_seconds(cell.workers) for cell in cells]
        training = [self.seconds[cell] - start for cell, start in zip(cells, starts, strict=True)]
        seconds = np.array(starts)[:, None] + np.array(training)[:, None] * SHARES
        costs = np.array(
            [
                [checked_cost(self.cost, cell, float(part)) for part in parts]
                for cell, parts in zip(cells, seconds, strict=True)
            ]
        )
        for i, j in combinations(range(len(cells)), 2):
            in_time = seconds[i] + seconds[j, ::-1] <= self._limit
            yield float((costs[i] + costs[j, ::-1])[in_time].min(initial=math.inf))
            slower = training[i] - training[j]
            share = (self._limit - starts[i] - starts[j] - training[j]) / (slower or math.nan)
            if 0 < share < 1:
                yield sum(
                    checked_cost(self.cost, cells[k], starts[k] + part * training[k])
                    for k, part in ((i, share), (j, 1 - share))
                )


def seconds_to_target(workload: Workload, goal: Goal) -> dict[Allocation, float]:
    """Returns start-up and training to the target by cell, infinite where it isn't reached."""
    epochs = {
        batch: workload.curve(batch).epochs_to(goal)
        for batch in {cell.batch_size for cell in workload.space.cells}
    }
    return {
        cell: workload.startup_seconds(cell.workers)
        + workload.epoch_seconds(cell) * epochs[cell.batch_size]
        for cell in workload.space.cells
    }


def unreachable(workload: Workload, goal: Goal) -> str:
    """Says that no curve reaches the target, and what the best one reaches."""
    values = [
        value
        for batch in {cell.batch_size for cell in workload.space.cells}
        for value in workload.curve(batch).values
    ]
    best = max(values, key=lambda value: goal.sign * value)
    return (
        f"{workload.name}: no curve reaches the target {goal.target:g} (mode {goal.mode!r}); "
        f"the best value is {best:.4g}. Set a target that was reached."
    )
