"""What a simulation trains: epoch times, start-up and learning curves of one job."""

import math
from dataclasses import dataclass
from typing import Protocol

from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation, Space


@dataclass(frozen=True)
class Curve:
    """Is what a run at one batch reports, evaluation by evaluation.

    Attributes:
        epochs: Passes over the data done at each evaluation, rising.
        values: The metric at each; as long as `epochs`.
        noise_scales: Gradient noise scale in samples at each, empty where unknown.
    """

    epochs: tuple[float, ...]
    values: tuple[float, ...]
    noise_scales: tuple[float, ...] = ()

    def epochs_to(self, goal: Goal) -> float:
        """Returns the epochs to the goal's target, infinite where the curve ends before it."""
        reached = (e for e, v in zip(self.epochs, self.values, strict=True) if goal.is_reached(v))
        return next(reached, math.inf)


class Workload(Protocol):
    """Answers what a real job would show."""

    @property
    def name(self) -> str:
        """Name of the job."""

    @property
    def space(self) -> Space:
        """The cells that the job is known in."""

    def epoch_seconds(self, cell: Allocation) -> float:
        """Returns the seconds of an epoch, T(n, b)."""

    def step_seconds(self, cell: Allocation) -> float:
        """Returns the seconds of one optimiser step."""

    def startup_seconds(self, workers: int) -> float:
        """Returns the seconds from the request for workers to their first step."""

    def curve(self, batch_size: int) -> Curve:
        """Returns the learning curve at a global batch, A(b, e)."""
