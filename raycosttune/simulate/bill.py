"""What a sweep and the runs after it cost, measured against the oracle."""

import math
from dataclasses import dataclass

from raycosttune.core.space import Allocation
from raycosttune.simulate.oracle import Truth
from raycosttune.simulate.outcome import Moment


@dataclass(frozen=True)
class Bill:
    """Judges a sweep by the truth.

    Attributes:
        ratio: (search + remaining planned runs x chosen cell's cost) / (planned runs x
            oracle's cost); infinite where nothing is chosen or the chosen cell fails.
        spent: The search's cost.
        spend: The search's cost in runs of the oracle.
        regret: Chosen cell's cost over the oracle's, less 1.
        misses_deadline: Whether the chosen cell takes longer than the deadline.
        misses_target: Whether nothing is chosen, or the chosen cell never reaches the target.
        chosen: The chosen cell.
    """

    ratio: float
    spent: float
    spend: float
    regret: float
    misses_deadline: bool
    misses_target: bool
    chosen: Allocation | None


def bill(truth: Truth, moment: Moment) -> Bill:
    """Computes the bill of a sweep that ends at a moment."""
    cell = moment.chosen
    each = math.inf if cell is None else truth.costs.get(cell, math.inf)
    seconds = math.inf if cell is None else truth.seconds.get(cell, math.inf)
    limit = truth.goal.deadline_seconds or math.inf
    remaining = truth.goal.planned_runs - moment.delivered
    later = remaining * each if remaining else 0.0
    misses_target = not math.isfinite(each)
    return Bill(
        ratio=(moment.spent + later) / (truth.goal.planned_runs * truth.oracle_cost),
        spent=moment.spent,
        spend=moment.spent / truth.oracle_cost,
        regret=each / truth.oracle_cost - 1,
        misses_deadline=not misses_target and seconds > limit,
        misses_target=misses_target,
        chosen=cell,
    )
