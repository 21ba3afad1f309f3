"""Whether runs keep to the deadline and to the limits in other units."""

from collections.abc import Sequence

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.cost import checked_costs
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation
from raycosttune.core.step_model import Bools


def keeps(goal: Goal, cells: Sequence[Allocation], seconds: Floats) -> Bools:
    """Tells of runs whether they keep to a goal's deadline and budgets.

    No cost falls with the seconds: a run that does not when it is as short as it can be, never
    does.

    Args:
        goal: The goal.
        cells: What is held, one for each row; looked at where there are budgets.
        seconds: For how long, shape (cells, ...); what is no finite number doesn't keep.

    Returns:
        Of the shape of `seconds`.

    Raises:
        InvalidCostError: If a budget's metric fails.
    """
    limit = np.inf if goal.deadline_seconds is None else goal.deadline_seconds
    kept = np.asarray(seconds <= limit, dtype=np.bool_)
    if goal.budgets:
        finite = np.isfinite(seconds)
        for budget in goal.budgets:
            costs = checked_costs(budget.cost, cells, np.where(finite, seconds, 0.0))
            kept &= finite & (costs <= budget.at_most)
    return kept
