"""What a trial held, for how long, and what that cost."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from raycosttune.core.billing import Billing, Use
from raycosttune.core.cost import CostMetric, checked_cost, checked_value
from raycosttune.core.observation import TrialRecord
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.space import Allocation, Space


def resized(space: Space, cell: Allocation, workers: int) -> Allocation:
    """Returns the cell of the same batch on so many workers."""
    if workers == cell.workers:
        return cell
    return replace(cell, workers=workers, nodes=space.nodes(workers))


def parts(record: TrialRecord, space: Space) -> Iterator[tuple[Allocation, float]]:
    """Yields what a trial held and the seconds, one part for each change of its workers."""
    cell, held = record.allocation, []
    for report in record.reports:
        cell = resized(space, record.allocation, report.workers or cell.workers)
        held.append((cell, report.seconds))
    held.append((cell, record.ended.seconds if record.ended else 0.0))
    # Workers that were left before a second passed part nothing.
    timed = [part for part in held if part[1] > 0] or held[-1:]
    for cell, group in itertools.groupby(timed, key=itemgetter(0)):
        yield cell, math.fsum(seconds for _, seconds in group)


def uses(record: TrialRecord, space: Space) -> Iterator[Use]:
    """Yields what a trial held and when, as far as that is known."""
    start = record.started
    for cell, seconds in parts(record, space):
        yield Use(cell, seconds, start)
        start = None if start is None else start + seconds


def use_of(record: ProfileRecord) -> Use:
    """Returns what a profile held: all its workers, for as long as it ran."""
    return Use(record.profile.held, record.seconds, record.started)


def is_additive(cost: CostMetric) -> bool:
    """Tells whether a sweep costs what its trials cost by themselves."""
    return not isinstance(cost, Billing) or getattr(cost, "is_additive", False) is True


def billed(cost: CostMetric, held: Sequence[Use]) -> float:
    """Returns what it cost to hold all this, in the cost's unit.

    Raises:
        InvalidCostError: If the metric fails.
    """
    if not isinstance(cost, Billing):
        return math.fsum(checked_cost(cost, use.allocation, use.seconds) for use in held)
    return checked_value(cost, "bill(uses)", f"{len(held)} uses", lambda: cost.bill(held))


def paid(record: TrialRecord, space: Space, cost: CostMetric) -> float:
    """Returns what a trial by itself has cost up to its last report, in the cost's unit."""
    return billed(cost, tuple(uses(record, space)))


def paid_for(record: ProfileRecord, cost: CostMetric) -> float:
    """Returns what a profile by itself has cost, in the cost's unit."""
    return billed(cost, (use_of(record),))


def present(record: TrialRecord, space: Space) -> Allocation:
    """Returns the cell that a trial holds now."""
    cell = record.allocation
    workers = record.reports[-1].workers if record.reports else None
    return resized(space, cell, workers or cell.workers)


def was_resized(record: TrialRecord) -> bool:
    """Tells whether a trial ran on other workers than those it started on."""
    own = (None, record.allocation.workers)
    return any(report.workers not in own for report in record.reports)
