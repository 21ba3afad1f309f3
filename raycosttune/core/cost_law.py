"""The laws of costs, which the planner's bounds rest on."""

from itertools import pairwise

from raycosttune.core.cost import CostMetric, checked_cost, is_proportional, may_fall
from raycosttune.core.figure import told_apart
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidCostError

FALLING = 1 - 1e-9  # less is a fall; the rounding of sums is none
CURE = "Mend it, or declare `monotone = False` in it, which turns off the bounds that it breaks."
# Where a metric is tried: dense, and seldom whole, since an epoch's time is neither.
TRIED_SECONDS = (
    *(0.0, 0.1, 0.5, 1.0, 2.7, 7.3, 19.9, 33.3, 59.5, 60.0, 60.5, 99.9, 270.1, 599.9, 733.3),
    *(1234.5, 1999.9, 3599.5, 3600.0, 3600.5, 5400.1, 9876.5, 20000.1, 43210.9, 86400.0),
)
PROPORTIONAL_SECONDS = (0.0, 3600.0)  # where it lies on a line, these tell it all


def check_cost_metric(metric: CostMetric, cells: tuple[Allocation, ...]) -> None:
    """Tries a metric on every cell before anything is paid for.

    Raises:
        InvalidCostError: If the metric has no unit, can't be called, returns no cost,
            or, unless it has `monotone = False`, falls when the seconds or the workers (and
            nodes) grow.
    """
    if isinstance(metric, type):
        msg = (
            f"cost must be a metric itself, got the class {metric.__name__}. "
            f"Write {metric.__name__}()."
        )
        raise InvalidCostError(msg)
    unit = getattr(metric, "unit", None)
    if not isinstance(unit, str) or not callable(metric):
        msg = (
            "cost must be an object with a str `unit` and __call__(allocation, seconds), "
            f"got {metric!r}. NodeHours() and WorkerHours() are two."
        )
        raise InvalidCostError(msg)
    by_workers = sorted(cells, key=_in_turn)
    tried = PROPORTIONAL_SECONDS if is_proportional(metric) else TRIED_SECONDS
    costs = [[checked_cost(metric, cell, s) for s in tried] for cell in by_workers]
    if may_fall(metric):
        return
    for cell, paid in zip(by_workers, costs, strict=True):
        for (sooner, less), (later, more) in pairwise(zip(tried, paid, strict=True)):
            check_seconds(metric, cell, (sooner, less), (later, more))
    for (few, paid), (many, paid_more) in pairwise(zip(by_workers, costs, strict=True)):
        if _in_turn(few)[:2] == _in_turn(many)[:2]:
            for seconds, less, more in zip(tried, paid, paid_more, strict=True):
                check_workers(metric, seconds, (few, less), (many, more))


def _in_turn(cell: Allocation) -> tuple[str, int, int]:
    """Ranks cells such that only the workers grow within a type of machine and a batch."""
    return cell.node_type, cell.batch_size, cell.workers


def check_seconds(
    metric: CostMetric, cell: Allocation, sooner: tuple[float, float], later: tuple[float, float]
) -> None:
    """Refuses a cost that falls as seconds grow.

    Args:
        metric: The cost metric.
        cell: What is held.
        sooner: Fewer seconds, and their cost.
        later: More seconds, and theirs.

    Raises:
        InvalidCostError: If they cost less.
    """
    if later[1] < sooner[1] * FALLING:
        before, after = told_apart(sooner[1], later[1], digits=6)
        msg = (
            f"{metric.unit}: a cost must not fall as seconds grow, got {before} for "
            f"{sooner[0]:g} s and {after} for {later[0]:g} s of {cell}. {CURE}"
        )
        raise InvalidCostError(msg)


def check_workers(
    metric: CostMetric,
    seconds: float,
    few: tuple[Allocation, float],
    many: tuple[Allocation, float],
) -> None:
    """Refuses a cost that falls as workers are added; as `check_seconds`, at the same seconds."""
    if many[1] < few[1] * FALLING:
        before, after = told_apart(few[1], many[1], digits=6)
        msg = (
            f"{metric.unit}: a cost must not fall as workers are added, got {before} for {few[0]} "
            f"and {after} for {many[0]} over {seconds:g} s. {CURE}"
        )
        raise InvalidCostError(msg)
