"""Money by a price sheet: on demand or spot, billed run by run or while machines are held."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal, NoReturn

from raycosttune.core.billing import Use, billed_seconds, held_nodes
from raycosttune.core.cost import SECONDS_PER_HOUR
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.space import Allocation
from raycosttune.core.spot import expected_seconds
from raycosttune.core.value import read_real
from raycosttune.errors import InvalidCostError


@dataclass(frozen=True)
class Dollars:
    """Counts what whole machines cost by a price sheet, in its currency.

    A run to come costs its machines for as long as it is expected to take, rounded up to the
    sheet's units, at least its minimum. On spot machines that time includes interruptions: a
    machine taken back stops the whole run, so each adds its rate. What a sweep did cost is
    billed by the seconds that passed: run by run ("used"), or for each machine from its start
    to its release ("held"), when it counts once, however many trials ran on it.

    Attributes:
        sheet: The price sheet.
        node_type: Type of the machines. Left out, it is the one that an allocation names: the
            metric of a search among types; a sheet of one alone needs no name at all.
        market: "on_demand" or "spot".
        billing: "used" bills each trial by itself, "held" each machine with what it stands
            idle between trials.
        idle_seconds: How long a held machine is kept after a trial; to the end of the sweep
            unless an autoscaler's idle timeout is given.
        checkpoint_seconds: Seconds between checkpoints, for spot; None where an interrupted
            run starts anew.
        restart_seconds: Seconds from an interruption until work goes on, for spot.

    Raises:
        InvalidPriceSheetError: If the sheet has no such type.
        InvalidCostError: If another value breaks its rule; when it is asked for the cost of an
            allocation, if that names no type or another one.
    """

    sheet: PriceSheet
    node_type: str | None = None
    _: KW_ONLY
    market: Literal["on_demand", "spot"] = "on_demand"
    billing: Literal["used", "held"] = "used"
    idle_seconds: float = math.inf
    checkpoint_seconds: float | None = None
    restart_seconds: float = 0.0

    def __post_init__(self) -> None:
        """Checks every value."""
        sheet: object = self.sheet
        if not isinstance(sheet, PriceSheet):
            _refuse("sheet", "be a PriceSheet", sheet, " Write Dollars(read_price_sheet(path)).")
        if self.node_type is not None:
            self.sheet.node(self.node_type)
        if self.market not in ("on_demand", "spot"):
            _refuse("market", 'be "on_demand" or "spot"', self.market)
        if self.market == "spot" and (self.node_type is not None or len(self.sheet.nodes) == 1):
            self._check_spot(self.sheet.node(self.node_type))
        if self.billing not in ("used", "held"):
            _refuse("billing", 'be "used" or "held"', self.billing)
        for name in ("idle_seconds", "restart_seconds"):
            value = getattr(self, name)
            number = math.inf if name == "idle_seconds" and value == math.inf else read_real(value)
            if number is None or number < 0:
                _refuse(name, "be a number of at least 0", value)
        if (
            self.checkpoint_seconds is not None
            and not (read_real(self.checkpoint_seconds) or 0) > 0
        ):
            _refuse("checkpoint_seconds", "be a positive number", self.checkpoint_seconds)

    @property
    def unit(self) -> str:
        """The currency."""
        return self.sheet.currency

    @property
    def is_additive(self) -> bool:
        """Whether each trial is billed by itself."""
        return self.billing == "used"

    def node(self, node_type: str = "") -> NodePrice:
        """Returns the prices of an allocation's type of machine, "" where it names none.

        Raises:
            InvalidCostError: If they can't be told.
        """
        if node_type not in self._found:
            self._found[node_type] = self._find(node_type)
        return self._found[node_type]

    @cached_property
    def _found(self) -> dict[str, NodePrice]:
        return {}

    def _find(self, node_type: str) -> NodePrice:
        names = [node.name for node in self.sheet.nodes]
        own = self.node_type or (names[0] if len(names) == 1 else None)
        if node_type and own not in (None, node_type):
            cure = " Leave node_type out of Dollars, and give it a sheet with all types."
            _refuse("node_type", f"price {node_type!r}, which the search chooses", own, cure)
        if not node_type and own is None:
            cure = (
                ' Write Dollars(sheet, "NAME"), or give the search types of machines: '
                '"node_type": tune.choice([...]) in its space, be it of one. A constant is none.'
            )
            _refuse("node_type", f"be one of {names} where a run names none", own, cure)
        name = node_type or own
        if name not in names:
            cure = " Add its price to the sheet, or leave the type out of the search."
            _refuse("sheet", f"have a price of {name!r}", names, cure)
        node = self.sheet.node(name)
        if self.market == "spot":
            self._check_spot(node)
        return node

    def _check_spot(self, node: NodePrice) -> None:
        if node.spot_per_hour is None:
            _refuse("market", f'be "on_demand": the sheet has no spot price of {node.name}', "spot")

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        """Returns what a run to come is expected to cost that takes so long uninterrupted."""
        node, nodes = self.node(allocation.node_type), self._nodes(allocation)
        if self.market == "spot":
            seconds = expected_seconds(
                seconds,
                interruptions_per_hour=node.interruptions_per_hour * nodes,
                checkpoint_seconds=self.checkpoint_seconds,
                restart_seconds=self.restart_seconds,
            )
        return nodes * self._price(node, seconds)

    def bill(self, uses: Sequence[Use]) -> float:
        """Returns what a sweep did cost; see raycosttune.core.billing.Billing."""
        if self.billing == "held":
            held = held_nodes(uses, self._nodes, self.idle_seconds)
            return math.fsum(self._price(self.node(kind), seconds) for kind, seconds in held)
        priced = ((use, self.node(use.allocation.node_type)) for use in uses)
        return math.fsum(
            self._nodes(use.allocation) * self._price(node, use.seconds) for use, node in priced
        )

    def _price(self, node: NodePrice, seconds: float) -> float:
        """Returns what one machine costs that ran for so long."""
        billed = billed_seconds(
            seconds, granularity=node.granularity_seconds, minimum=node.minimum_seconds
        )
        rate = node.spot_per_hour if self.market == "spot" else node.per_hour
        return (rate or 0.0) * billed / SECONDS_PER_HOUR

    def _nodes(self, allocation: Allocation) -> int:
        return self.node(allocation.node_type).nodes(allocation.workers, allocation.nodes)


def _refuse(name: str, rule: str, value: object, cure: str = "") -> NoReturn:
    msg = f"Dollars.{name} must {rule}, got {value!r}.{cure}"
    raise InvalidCostError(msg)
