"""The assumptions that the bounds rest on, held against what was measured."""

import math
from dataclasses import dataclass

from raycosttune.core.accuracy_surrogate import DEFAULT_SLACK as EPOCHS_SLACK
from raycosttune.core.figure import counted, listed, told_apart
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.space import Allocation
from raycosttune.core.time_surrogate import DEFAULT_SLACK as TIME_SLACK

TIME = (
    "An epoch gets no slower with a larger batch or more workers of a node, and n times the "
    "workers make it at most n times faster."
)
EPOCHS = (
    "Epochs to the target do not fall as the batch grows, and grow by at most the batch's factor."
)


@dataclass(frozen=True)
class Audit:
    """Is an assumption and what speaks against it.

    Attributes:
        name: What is assumed, a sentence.
        slack: By how much the bounds are widened for it, relative.
        breaks: Measurements that contradict it by more than the least slack, worst first.
    """

    name: str
    slack: float
    breaks: tuple[str, ...]


def audit(known: Knowledge) -> tuple[Audit, Audit]:
    """Holds the assumptions on epoch time and on epochs against the measurements."""
    times = Audit(TIME, math.expm1(known.time.slack), _of_times(known))
    return times, Audit(EPOCHS, math.expm1(known.accuracy.slack), _of_epochs(known))


def _of_times(known: Knowledge) -> tuple[str, ...]:
    cells = known.space.cells
    broken = [found for found in known.time.broken if found[2] > TIME_SLACK]
    broken.sort(key=lambda found: -found[2])
    return tuple(_faster(known, cells[v], cells[u], apart) for v, u, apart in broken)


def _faster(known: Knowledge, cell: Allocation, other: Allocation, apart: float) -> str:
    seconds = (known.time.predict(one).mid for one in (cell, other))
    took, others = told_apart(*seconds)
    return (
        f"{_named(cell)} took {took} s an epoch, beside {others} s of {_named(other)}: "
        f"{math.expm1(apart):.0%} faster than the assumption allows"
    )


def _of_epochs(known: Knowledge) -> tuple[str, ...]:
    found = [(runs.violation, key) for key, runs in known.tally.epochs.items()]
    broken = sorted((pair for pair in found if pair[0] > EPOCHS_SLACK), reverse=True)
    return tuple(
        f"{_recipe(known, key)} contradict each other by {math.expm1(apart):.0%} over "
        f"{counted(len(known.tally.epochs[key].seen), 'batch size')}"
        for apart, key in broken
    )


def _recipe(known: Knowledge, key: str) -> str:
    recipe = listed(known.recipes[key])
    return f"the runs with {recipe}" if recipe else "the runs"


def _named(cell: Allocation) -> str:
    return cell.named({})
