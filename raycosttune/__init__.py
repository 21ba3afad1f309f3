"""Finds the workers and the batch that reach a target by a deadline for the least cost."""

from typing import TYPE_CHECKING

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.space import Allocation
from raycosttune.errors import (
    InvalidAdviceError,
    InvalidCostError,
    InvalidGoalError,
    InvalidLoaderError,
    InvalidModelError,
    InvalidRebalanceError,
    InvalidSpaceError,
    InvalidStateError,
    InvalidTrainableError,
    InvalidWorkloadError,
    NoPlanError,
    RayCostTuneError,
)

if TYPE_CHECKING:
    from raycosttune.core.plan import NoPlan, Plan
else:

    def __getattr__(name: str) -> object:
        """Imports the plans when they are asked for: they bring scikit-learn, a second and more."""
        if name in ("NoPlan", "Plan"):
            from raycosttune.core import plan  # noqa: PLC0415 - as the docstring says

            return getattr(plan, name)
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)


__version__ = "0.1.0"

__all__ = [
    "Allocation",
    "CostMetric",
    "Goal",
    "InvalidAdviceError",
    "InvalidCostError",
    "InvalidGoalError",
    "InvalidLoaderError",
    "InvalidModelError",
    "InvalidRebalanceError",
    "InvalidSpaceError",
    "InvalidStateError",
    "InvalidTrainableError",
    "InvalidWorkloadError",
    "LearningRate",
    "NoPlan",
    "NoPlanError",
    "NodeHours",
    "Plan",
    "RayCostTuneError",
    "WorkerHours",
    "__version__",
]
