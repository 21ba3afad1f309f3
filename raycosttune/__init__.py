"""Finds the workers and the batch that reach a target by a deadline for the least cost."""

import logging
from importlib import import_module
from typing import TYPE_CHECKING

from raycosttune.core.constraint import Bound, RunBudget
from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.dollars import Dollars
from raycosttune.core.energy import EnergyKWh
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.space import Allocation
from raycosttune.core.weighted_sum import WeightedSum
from raycosttune.errors import (
    InvalidAdviceError,
    InvalidCostError,
    InvalidGoalError,
    InvalidLoaderError,
    InvalidModelError,
    InvalidPriceSheetError,
    InvalidRebalanceError,
    InvalidSpaceError,
    InvalidStateError,
    InvalidTrainableError,
    InvalidWorkloadError,
    NoPlanError,
    PowerUnknownError,
    RayCostTuneError,
)
from raycosttune.log import set_up

if TYPE_CHECKING:
    from raycosttune.core.plan import NoPlan, Plan
    from raycosttune.results.past_sweep import read_sweep
    from raycosttune.results.price_sheet import read_price_sheet
else:
    _LATER = {
        "NoPlan": "raycosttune.core.plan",
        "Plan": "raycosttune.core.plan",
        "read_price_sheet": "raycosttune.results.price_sheet",
        "read_sweep": "raycosttune.results.past_sweep",
    }

    def __getattr__(name: str) -> object:
        """Imports what brings other packages, a second and more, when it is asked for."""
        if name in _LATER:
            return getattr(import_module(_LATER[name]), name)
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)


__version__ = "0.1.0"

set_up(logging.getLogger(__name__))

__all__ = [
    "Allocation",
    "Bound",
    "CostMetric",
    "Dollars",
    "EnergyKWh",
    "Goal",
    "InvalidAdviceError",
    "InvalidCostError",
    "InvalidGoalError",
    "InvalidLoaderError",
    "InvalidModelError",
    "InvalidPriceSheetError",
    "InvalidRebalanceError",
    "InvalidSpaceError",
    "InvalidStateError",
    "InvalidTrainableError",
    "InvalidWorkloadError",
    "LearningRate",
    "NoPlan",
    "NoPlanError",
    "NodeHours",
    "NodePrice",
    "Plan",
    "PowerUnknownError",
    "PriceSheet",
    "RayCostTuneError",
    "RunBudget",
    "WeightedSum",
    "WorkerHours",
    "__version__",
    "read_price_sheet",
    "read_sweep",
]
