"""What a trial held, for how long, and what that cost."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from raycosttune.core.billing import Use
from raycosttune.core.cost import CostMetric, checked_cost, checked_value
from raycosttune.core.observation import TrialRecord
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.space import Allocation, Space


def resized(space: Space, cell: Allocation, workers: int) -> Allocation:
    """Returns the cell of the same batch on so many workers."""
    if workers == cell.workers:
        return cell
    return replace(cell, workers=workers, nodes=space.nodes(workers, cell.node_type))


def parts(
    record: TrialRecord, space: Space, unheard: float = 0.0
) -> Iterator[tuple[Allocation, float]]:
    """Yields what a trial held and the seconds, one part for each change of its workers.

    Args:
        record: The trial.
        space: The legal cells.
        unheard: Seconds since its last report.
    """
    cell, held = record.allocation, []
    for report in record.reports:
        cell = resized(space, record.allocation, report.workers or cell.workers)
        held.append((cell, report.seconds))
    held.append((present(record, space), (record.ended.seconds if record.ended else 0) + unheard))
    # Workers that were left before a second passed part nothing.
    timed = [part for part in held if part[1] > 0] or held[-1:]
    for cell, group in itertools.groupby(timed, key=itemgetter(0)):
        yield cell, math.fsum(seconds for _, seconds in group)


def uses(record: TrialRecord, space: Space, unheard: float = 0.0) -> Iterator[Use]:
    """Yields what a trial held and when, as far as that is known; see `parts`."""
    start = record.started
    for cell, seconds in parts(record, space, unheard):
        yield Use(cell, seconds, start)
        start = None if start is None else start + seconds


def use_of(record: ProfileRecord) -> Use:
    """Returns what a profile held: all its workers, for as long as it ran."""
    return Use(record.profile.held, record.seconds, record.started)


def is_additive(cost: CostMetric) -> bool:
    """Tells whether a sweep costs what its trials cost by themselves."""
    return _bill(cost) is None or getattr(cost, "is_additive", False) is True


def _bill(cost: CostMetric) -> Callable[[Sequence[Use]], float] | None:
    """Returns what a `Billing` bills with; asking `isinstance` of a protocol takes far longer."""
    return getattr(cost, "bill", None)


def billed(cost: CostMetric, held: Sequence[Use]) -> float:
    """Returns what it cost to hold all this, in the cost's unit.

    Raises:
        InvalidCostError: If the metric fails.
    """
    bill = _bill(cost)
    if bill is None:
        return math.fsum(checked_cost(cost, use.allocation, use.seconds) for use in held)
    return checked_value(cost, "bill(uses)", lambda: f"{len(held)} uses", lambda: bill(held))


def paid(record: TrialRecord, space: Space, cost: CostMetric, unheard: float = 0.0) -> float:
    """Returns what a trial by itself has cost up to its last report, in the cost's unit.

    Args:
        record: The trial.
        space: The legal cells.
        cost: The cost metric.
        unheard: Seconds since its last report that count, too.
    """
    return billed(cost, tuple(uses(record, space, unheard)))


def paid_for(record: ProfileRecord, cost: CostMetric) -> float:
    """Returns what a profile by itself has cost, in the cost's unit."""
    return billed(cost, (use_of(record),))


def present(record: TrialRecord, space: Space) -> Allocation:
    """Returns the cell that a trial holds now, or is about to start in."""
    cell, change = record.allocation, record.resized
    last = record.reports[-1] if record.reports else None
    workers = None if last is None else last.workers
    if change is not None and (last is None or last.attempt <= change.attempt or not workers):
        workers = change.workers
    return resized(space, cell, workers or cell.workers)


def resizes(record: TrialRecord, space: Space) -> int:
    """Returns how often a trial has changed its workers."""
    return len(list(parts(record, space))) - 1


def lost_epochs(record: TrialRecord) -> float | None:
    """Returns the epochs that a change of workers would repeat, None where nothing is saved.

    A loop that has begun again at its first epoch does not read its checkpoints.
    """
    run = record.run
    dropped = record.reports[: len(record.reports) - len(run)]
    saved = [report.epoch for report in run if report.checkpoint is not None]
    if not saved or any(report.checkpoint is not None for report in dropped):
        return None
    return max(run[-1].epoch - saved[-1], 0.0)


def was_resized(record: TrialRecord) -> bool:
    """Tells whether a trial ran on other workers than those it started on."""
    own = (None, record.allocation.workers)
    return any(report.workers not in own for report in record.reports)
