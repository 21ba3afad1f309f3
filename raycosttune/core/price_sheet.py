"""What machines cost and draw, by their type."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields

from raycosttune.core.value import read_count, read_name, read_real, read_text
from raycosttune.errors import InvalidPriceSheetError

AMOUNTS = "be a finite number of at least 0"


@dataclass(frozen=True, kw_only=True)
class NodePrice:
    """Is a type of machine as a price sheet lists it.

    Attributes:
        name: Name of the type.
        per_hour: Price of one machine for an hour.
        spot_per_hour: The same where the provider may take the machine back, or None.
        interruptions_per_hour: How often a machine is taken back in an hour on average.
        workers: Workers that fill one machine; None where the sweep says it.
        accelerators: What its accelerators are, in words.
        granularity_seconds: Started units of so many seconds are billed in full; 0 bills
            every moment.
        minimum_seconds: The least that is billed for a machine once it has started.
        watts: What a machine draws while it trains, or None.

    Raises:
        InvalidPriceSheetError: If values break their rules; it names all of them.
    """

    name: str
    per_hour: float
    spot_per_hour: float | None = None
    interruptions_per_hour: float = 0.0
    workers: int | None = None
    accelerators: str = ""
    granularity_seconds: float = 1.0
    minimum_seconds: float = 0.0
    watts: float | None = None

    def __post_init__(self) -> None:
        """Checks every value and makes NumPy's numbers Python's own."""
        problems = [f"{name} must {rule}, got {got!r}" for name, rule, got in self._problems()]
        if problems:
            raise InvalidPriceSheetError(problems)

    def _problems(self) -> Iterator[tuple[str, str, object]]:
        if read_name(self.name) is None:
            yield "name", "be a text that isn't empty", self.name
        if read_text(self.accelerators) is None:
            yield "accelerators", "be a text", self.accelerators
        if self.workers is not None and read_count(self.workers) is None:
            yield "workers", "be a whole number of at least 1", self.workers
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name in ("name", "accelerators", "workers"):
                continue
            if value is None and name in ("spot_per_hour", "watts"):
                continue
            number = read_real(value)
            if number is None or number < 0:
                yield name, AMOUNTS, value
            else:
                object.__setattr__(self, name, number)

    def nodes(self, workers: int, otherwise: int) -> int:
        """Returns the machines that so many workers fill, packed.

        Args:
            workers: Workers.
            otherwise: The answer where the sheet doesn't say how many fill a machine.
        """
        return otherwise if self.workers is None else math.ceil(workers / self.workers)


@dataclass(frozen=True)
class PriceSheet:
    """Lists types of machines and what they cost, in one currency.

    Attributes:
        nodes: The types, no two of one name.
        currency: The currency of every price.

    Raises:
        InvalidPriceSheetError: If there is no type, one is no NodePrice, a name comes
            twice, or the currency is no text.
    """

    nodes: tuple[NodePrice, ...]
    currency: str = "USD"

    def __post_init__(self) -> None:
        """Checks that a name means one type."""
        given: object = self.nodes
        is_listed = isinstance(given, list | tuple)
        if not is_listed or not all(isinstance(node, NodePrice) for node in self.nodes):
            raise InvalidPriceSheetError([f"nodes must be a list of NodePrice, got {given!r}"])
        object.__setattr__(self, "nodes", tuple(self.nodes))
        problems = []
        if read_name(self.currency) is None:
            problems.append(f"currency must be a text that isn't empty, got {self.currency!r}")
        if not self.nodes:
            problems.append("nodes must hold at least one type of machine, got none")
        names = [node.name for node in self.nodes]
        twice = sorted({name for name in names if names.count(name) > 1})
        problems += [f"nodes must have different names, got {name!r} twice" for name in twice]
        if problems:
            raise InvalidPriceSheetError(problems)

    def node(self, name: str | None = None) -> NodePrice:
        """Returns a type of machine.

        Args:
            name: Its name; may be left out where the sheet has one type alone.

        Raises:
            InvalidPriceSheetError: If the sheet has no such type, or several and none is named.
        """
        named = [node for node in self.nodes if name in (None, node.name)]
        if len(named) == 1:
            return named[0]
        names = [node.name for node in self.nodes]
        raise InvalidPriceSheetError([f"node_type must be one of {names}, got {name!r}"])
