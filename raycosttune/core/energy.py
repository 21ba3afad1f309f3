"""Energy by the watts of machines and workers."""

import math
from dataclasses import dataclass

from raycosttune.core.cost import Proportional
from raycosttune.core.price_sheet import PriceSheet
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

    Raises:
        InvalidCostError: If a value breaks its rule, or no watts are given.
    """

    watts_per_node: float = 0.0
    watts_per_worker: float = 0.0
    workers_per_node: int | None = None
    unit: str = "kWh"

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
        if self.watts_per_node == self.watts_per_worker == 0:
            msg = (
                "EnergyKWh must be given watts_per_node, watts_per_worker or both, got 0. "
                "raycosttune.train.power.measure_watts() measures what a machine draws."
            )
            raise InvalidCostError(msg)

    @classmethod
    def of(cls, sheet: PriceSheet, node_type: str | None = None) -> "EnergyKWh":
        """Takes the watts of a type of machine from a price sheet.

        Raises:
            InvalidPriceSheetError: If the sheet has no such type, or not its watts.
        """
        node = sheet.node(node_type)
        if not node.watts:
            msg = f"watts of {node.name} must be given in the price sheet, got {node.watts}"
            raise InvalidPriceSheetError([msg])
        return cls(watts_per_node=node.watts, workers_per_node=node.workers)

    def per_hour(self, allocation: Allocation) -> float:
        """Returns the kilowatts."""
        workers, filled = allocation.workers, self.workers_per_node
        nodes = allocation.nodes if filled is None else math.ceil(workers / filled)
        return (self.watts_per_node * nodes + self.watts_per_worker * workers) / WATTS_PER_KILOWATT
