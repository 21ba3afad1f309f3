"""For how long machines are billed: started units, minima, and machines held between trials."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from raycosttune.core.space import Allocation

EVEN = 1e-9  # a whole number of units may come out a rounding above it


@dataclass(frozen=True)
class Use:
    """Is what a trial held, and when.

    Attributes:
        allocation: What was held.
        seconds: For how long.
        start: Seconds between the sweep's begin and the trial's; None where it is not known:
            then it follows what was held before it.
    """

    allocation: Allocation
    seconds: float
    start: float | None = None


@runtime_checkable
class Billing(Protocol):
    """Is a cost metric that bills what was held otherwise than run by run.

    `__call__` says what a run to come is expected to cost. `bill` says what the trials of a
    sweep did cost: interruptions that came are in their seconds, and machines that were held
    between them are on the bill. Where a sweep still costs what its trials cost by themselves,
    `is_additive = True` says so: they are then billed once each, however many there are.
    """

    def bill(self, uses: Sequence[Use]) -> float:
        """Returns what it cost to hold all this, at least 0."""


def billed_seconds(seconds: float, *, granularity: float, minimum: float) -> float:
    """Returns the seconds that a machine is billed for.

    Args:
        seconds: How long it ran. One that never ran is not billed.
        granularity: Seconds of a unit that is billed once it has started; 0 for none.
        minimum: Least seconds of a machine that ran.
    """
    if seconds <= 0:
        return 0.0
    least = max(seconds, minimum)
    if granularity <= 0:
        return least
    return math.ceil(least / granularity * (1 - EVEN)) * granularity


def node_seconds(
    uses: Iterable[Use], nodes: Callable[[Allocation], int], idle_seconds: float
) -> list[float]:
    """Returns for how long each machine is held that a sweep's trials run on; see `held_nodes`."""
    return [seconds for _, seconds in held_nodes(uses, nodes, idle_seconds)]


def held_nodes(
    uses: Iterable[Use], nodes: Callable[[Allocation], int], idle_seconds: float
) -> list[tuple[str, float]]:
    """Returns type and time of each machine that is held while a sweep's trials run.

    A trial takes machines of its type that are free, those that were freed last first, and
    starts others where they don't suffice. A machine is kept for `idle_seconds` after a trial,
    but not beyond the end of the last one.

    Args:
        uses: What was held.
        nodes: Machines of an allocation.
        idle_seconds: How long a machine is kept that no trial uses.

    Returns:
        The type and the seconds from each start of a machine to its release, in no certain
        order.
    """
    held: list[_Node] = []
    kept: list[_Node] = []
    for start, seconds, allocation in _placed(uses):
        kept = [node for node in kept if node.until + idle_seconds >= start]
        alike = (node for node in kept if node.node_type == allocation.node_type)
        free = sorted((node for node in alike if node.until <= start), key=lambda node: -node.until)
        taken, kind = free[: nodes(allocation)], allocation.node_type
        fresh = [_Node(kind, start, start) for _ in range(nodes(allocation) - len(taken))]
        held += fresh
        kept += fresh
        for node in (*taken, *fresh):
            node.until = start + seconds
    end = max((node.until for node in held), default=0.0)
    return [(node.node_type, min(node.until + idle_seconds, end) - node.since) for node in held]


@dataclass
class _Node:
    """Is a machine, since when it is held and until when it is in use."""

    node_type: str
    since: float
    until: float


def _placed(uses: Iterable[Use]) -> list[tuple[float, float, Allocation]]:
    """Returns starts, seconds and what was held, by their start."""
    placed, last = [], 0.0
    for use in uses:
        start = last if use.start is None else use.start
        last = max(last, start + use.seconds)
        placed.append((start, use.seconds, use.allocation))
    return sorted(placed, key=lambda part: part[0])
