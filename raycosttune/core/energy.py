"""Energy by the watts of machines and workers."""

import math
from dataclasses import dataclass

from raycosttune.core.cost import Proportional
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.space import Allocation
from raycosttune.core.value import read_count, read_real
from raycosttune.errors import InvalidCostError, InvalidPriceSheetError

WATTS_PER_KILOWATT = 1000.0


@dataclass(frozen=True, kw_only=True)
class EnergyKWh(Proportional):
    """Counts kilowatt-hours: what each machine draws by itself and each worker on top.

    Attributes:
        watts_per_node: What a machine draws whatever its workers do.
        watts_per_worker: What a worker adds.
        workers_per_node: Workers that fill one machine; None where the sweep says it.
        sheet: Has the watts of each type of machine, in place of the above; None for one type.

    Raises:
        InvalidCostError: If a value breaks its rule, or no watts are given; when it is asked
            for the cost of an allocation, if the sheet has not the watts of its type.
    """

    watts_per_node: float = 0.0
    watts_per_worker: float = 0.0
    workers_per_node: int | None = None
    unit: str = "kWh"
    sheet: PriceSheet | None = None

    def __post_init__(self) -> None:
        """Checks the watts."""
        for name in ("watts_per_node", "watts_per_worker"):
            value = getattr(self, name)
            number = read_real(value)
            if number is None or number < 0:
                msg = f"EnergyKWh.{name} must be a number of at least 0, got {value!r}"
                raise InvalidCostError(msg)
            object.__setattr__(self, name, number)
        if self.workers_per_node is not None and read_count(self.workers_per_node) is None:
            got = self.workers_per_node
            msg = f"EnergyKWh.workers_per_node must be a whole number of at least 1, got {got!r}"
            raise InvalidCostError(msg)
        if self.sheet is None and self.watts_per_node == self.watts_per_worker == 0:
            msg = (
                "EnergyKWh must be given watts_per_node, watts_per_worker or both, got 0. "
                "raycosttune.train.power.measure_watts() measures what a machine draws."
            )
            raise InvalidCostError(msg)

    @classmethod
    def of(cls, sheet: PriceSheet, node_type: str | None = None) -> "EnergyKWh":
        """Takes the watts of a type of machine from a price sheet.

        Args:
            sheet: The sheet.
            node_type: The type; left out, it is the one that an allocation names, or the sheet's
                only one.

        Raises:
            InvalidPriceSheetError: If the sheet has no such type, or not its watts.
        """
        if node_type is None and len(sheet.nodes) > 1:
            return cls(sheet=sheet)
        node = sheet.node(node_type)
        if not node.watts:
            msg = f"watts of {node.name} must be given in the price sheet, got {node.watts}"
            raise InvalidPriceSheetError([msg])
        return cls(watts_per_node=node.watts, workers_per_node=node.workers)

    def per_hour(self, allocation: Allocation) -> float:
        """Returns the kilowatts."""
        if self.sheet is not None:
            node = self._node(self.sheet, allocation)
            watts = (node.watts or 0.0) * node.nodes(allocation.workers, allocation.nodes)
            return watts / WATTS_PER_KILOWATT
        workers, filled = allocation.workers, self.workers_per_node
        nodes = allocation.nodes if filled is None else math.ceil(workers / filled)
        return (self.watts_per_node * nodes + self.watts_per_worker * workers) / WATTS_PER_KILOWATT

    def _node(self, sheet: PriceSheet, allocation: Allocation) -> NodePrice:
        known = [node for node in sheet.nodes if node.watts]
        node = next((node for node in known if node.name == allocation.node_type), None)
        if node is None:
            names = [node.name for node in known]
            msg = (
                f"the sheet must have the watts of {allocation.node_type!r}, got those of {names}. "
                "Add them, or name one type: EnergyKWh.of(sheet, NAME)."
            )
            raise InvalidCostError(msg)
        return node
