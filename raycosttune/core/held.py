"""What a trial held, for how long, and what that cost."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter

from raycosttune.core.cost import CostMetric, checked_cost
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


def paid(record: TrialRecord, space: Space, cost: CostMetric) -> float:
    """Returns what a trial has cost up to its last report, in the cost's unit."""
    return math.fsum(checked_cost(cost, cell, seconds) for cell, seconds in parts(record, space))


def paid_for(record: ProfileRecord, cost: CostMetric) -> float:
    """Returns what a profile has cost: all its workers, for as long as it ran."""
    return checked_cost(cost, record.profile.held, record.seconds)


def present(record: TrialRecord, space: Space) -> Allocation:
    """Returns the cell that a trial holds now."""
    cell = record.allocation
    workers = record.reports[-1].workers if record.reports else None
    return resized(space, cell, workers or cell.workers)


def was_resized(record: TrialRecord) -> bool:
    """Tells whether a trial ran on other workers than those it started on."""
    own = (None, record.allocation.workers)
    return any(report.workers not in own for report in record.reports)
