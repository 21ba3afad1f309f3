"""What the plan saves beside what would have been run otherwise."""

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from raycosttune.core.figure import described
from raycosttune.report.view import Cell, View

PAIR = ("workers", "batch_size", "node_type")


@dataclass(frozen=True)
class Saving:
    """Is what the plan saves beside another configuration.

    Attributes:
        name: What the other one is.
        what: The configuration in words, empty where it is none in particular.
        cost: What a run of it is likely to cost.
        saving: What the plan saves a run, negative where it costs more.
        in_all: The same over the planned runs, less what the search has spent.
        pays_after: Runs after which the search has paid for itself, None where it never does.
        note: What to know of it.
    """

    name: str
    what: str
    cost: float
    saving: float
    in_all: float
    pays_after: int | None
    note: str = ""


def savings(sweep: View, default: tuple[int, int] | None = None) -> list[Saving]:
    """Holds the plan against other configurations, by what they are likely to cost.

    Args:
        sweep: What there is to see.
        default: Workers and global batch that would have been run without a search.
    """
    if sweep.plan is None:
        return []
    return list(_others(sweep, default))


def _others(sweep: View, default: tuple[int, int] | None) -> Iterator[Saving]:
    known = [cell for cell in sweep.cells if cell.cost is not None and cell.seconds is not None]
    cell = next((c for c in known if (c.workers, c.batch_size) == default), None)
    if cell is not None:
        yield _beside(sweep, "your default", cell, _cost(cell))
    if known:
        in_time = [cell for cell in known if not _is_late(sweep, cell)]
        median = statistics.median(_cost(cell) for cell in in_time or known)
        yield _beside(sweep, "the median of the configurations in time", None, median)
        separate = _separate(sweep, known)
        name = "batch tuned first, on the fewest workers, then the workers"
        yield _beside(sweep, name, separate, _cost(separate))


def _separate(sweep: View, known: list[Cell]) -> Cell:
    """Returns where tuning one after the other would have led, were all measured."""
    fewest = min(cell.workers for cell in known)
    batch = min((c for c in known if c.workers == fewest), key=_cost).batch_size
    at = [cell for cell in known if cell.batch_size == batch]
    in_time = [cell for cell in at if not _is_late(sweep, cell)]
    return min(in_time, key=_cost) if in_time else min(at, key=_seconds)


def _is_late(sweep: View, cell: Cell) -> bool:
    return _seconds(cell) > (sweep.goal.deadline_seconds or math.inf)


def _seconds(cell: Cell) -> float:
    return math.inf if cell.seconds is None else cell.seconds.mid


def _cost(cell: Cell) -> float:
    return math.inf if cell.cost is None else cell.cost.mid


def _beside(sweep: View, name: str, cell: Cell | None, cost: float) -> Saving:
    plan = sweep.plan
    saving = cost - (math.inf if plan is None else plan.cost.mid)
    return Saving(
        name,
        "" if cell is None else described(cell.workers, cell.batch_size, {}, cell.node_type),
        cost,
        saving,
        saving * sweep.goal.planned_runs - sweep.spent,
        math.ceil(sweep.spent / saving) if saving > 0 else None,
        "" if cell is None else _note(sweep, cell),
    )


def _note(sweep: View, cell: Cell) -> str:
    """Says why the plan isn't held against a cell: its own cost there is that of the plan."""
    config = {} if sweep.plan is None else {"node_type": "", **sweep.plan.config}
    if all(getattr(cell, key) == config.get(key) for key in PAIR):
        return "is the plan itself"
    return "is likely to miss the deadline" if _is_late(sweep, cell) else ""
