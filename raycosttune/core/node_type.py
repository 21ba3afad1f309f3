"""A type of machine that runs may be on, and how many workers are free by type."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from raycosttune.core.value import read_count, read_name
from raycosttune.errors import InvalidSpaceError

Free = float | Mapping[str, float] | None
"""Workers that are free: a number, one for each type of machine, or None for enough."""


@dataclass(frozen=True)
class NodeType:
    """Is a type of machine, and what of it there is.

    Attributes:
        name: Name of the type, "" where there is but one and nobody names it.
        workers_per_node: Workers that one machine of it holds; None where one holds all.
        max_workers: Most workers that all machines of it can ever hold, or None.
        excluded: Pairs of workers and batch, as the user reads it, that can't be chosen on it.

    Raises:
        InvalidSpaceError: If a value breaks its rule.
    """

    name: str
    workers_per_node: int | None = None
    max_workers: int | None = None
    excluded: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Checks every value."""
        if self.name != "" and read_name(self.name) is None:
            _refuse("name", "be a text that isn't empty", self.name)
        for name in ("workers_per_node", "max_workers"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, count_of(f"NodeType.{name}", value))
        object.__setattr__(self, "excluded", pairs_of("NodeType.excluded", self.excluded))


def free_of(free: Free, node_type: str) -> float:
    """Returns how many workers of a type are free, infinite for enough."""
    if free is None:
        return math.inf
    return free.get(node_type, 0) if isinstance(free, Mapping) else free


def count_of(name: str, value: object) -> int:
    """Returns a whole number of at least 1.

    Raises:
        InvalidSpaceError: If it is none.
    """
    number = read_count(value)
    if number is None:
        _refuse(name, "be whole numbers of at least 1 and at most 10**12", value)
    return number


def pairs_of(name: str, values: object) -> tuple[tuple[int, int], ...]:
    """Returns pairs of workers and batch; raises as `count_of` does."""
    found = []
    for value in values if isinstance(values, list | tuple) else (values,):
        if not isinstance(value, tuple | list) or len(value) != 2:  # noqa: PLR2004 - a pair
            _refuse(name, "hold pairs of workers and batch", value)
        found.append((count_of(name, value[0]), count_of(name, value[1])))
    return tuple(found)


def _refuse(name: str, rule: str, value: object) -> NoReturn:
    where = name if "." in name else f"NodeType.{name}"
    msg = f"{where} must {rule}, got {value!r}"
    raise InvalidSpaceError(msg)
