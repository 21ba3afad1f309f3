"""Money by a price sheet: on demand or spot, billed run by run or while machines are held."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal, NoReturn

from raycosttune.core.billing import Use, billed_seconds, node_seconds
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
        node_type: Type of the machines; may be left out where the sheet has one alone.
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
        InvalidCostError: If another value breaks its rule.
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
        node = self.sheet.node(self.node_type)
        if self.market not in ("on_demand", "spot"):
            _refuse("market", 'be "on_demand" or "spot"', self.market)
        if self.market == "spot" and node.spot_per_hour is None:
            _refuse("market", f'be "on_demand": the sheet has no spot price of {node.name}', "spot")
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

    @cached_property
    def node(self) -> NodePrice:
        """The type of the machines."""
        return self.sheet.node(self.node_type)

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        """Returns what a run to come is expected to cost that takes so long uninterrupted."""
        nodes = self._nodes(allocation)
        if self.market == "spot":
            seconds = expected_seconds(
                seconds,
                interruptions_per_hour=self.node.interruptions_per_hour * nodes,
                checkpoint_seconds=self.checkpoint_seconds,
                restart_seconds=self.restart_seconds,
            )
        return nodes * self._price(seconds)

    def bill(self, uses: Sequence[Use]) -> float:
        """Returns what a sweep did cost; see raycosttune.core.billing.Billing."""
        if self.billing == "held":
            return math.fsum(map(self._price, node_seconds(uses, self._nodes, self.idle_seconds)))
        return math.fsum(self._nodes(use.allocation) * self._price(use.seconds) for use in uses)

    def _price(self, seconds: float) -> float:
        """Returns what one machine costs that ran for so long."""
        node = self.node
        billed = billed_seconds(
            seconds, granularity=node.granularity_seconds, minimum=node.minimum_seconds
        )
        rate = node.spot_per_hour if self.market == "spot" else node.per_hour
        return (rate or 0.0) * billed / SECONDS_PER_HOUR

    def _nodes(self, allocation: Allocation) -> int:
        return self.node.nodes(allocation.workers, allocation.nodes)


def _refuse(name: str, rule: str, value: object, cure: str = "") -> NoReturn:
    msg = f"Dollars.{name} must {rule}, got {value!r}.{cure}"
    raise InvalidCostError(msg)
