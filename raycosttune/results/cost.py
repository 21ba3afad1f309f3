"""The cost metrics of this package as data: what a sweep was scored by, in its journal."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.dollars import Dollars
from raycosttune.core.energy import EnergyKWh
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.value import read_real, read_whole
from raycosttune.core.weighted_sum import WeightedSum
from raycosttune.errors import RayCostTuneError

KIND = "kind"
Metric = NodeHours | WorkerHours | Dollars | EnergyKWh | WeightedSum
KINDS: dict[str, type[Metric]] = {
    kind.__name__: kind for kind in (NodeHours, WorkerHours, Dollars, EnergyKWh, WeightedSum)
}
BY_UNIT: dict[str, CostMetric] = {metric.unit: metric for metric in (NodeHours(), WorkerHours())}


def cost_data(metric: CostMetric) -> dict[str, Any] | None:
    """Returns a metric as JSON-able data, None for one that isn't this package's.

    It holds the kind and, by attribute, what isn't left at its default. A child of a kind has
    rules of its own, which are no data.
    """
    if not isinstance(metric, Metric) or KINDS.get(type(metric).__name__) is not type(metric):
        return None
    kept: dict[str, Any] = {KIND: type(metric).__name__}
    for item in fields(metric):
        value = getattr(metric, item.name)
        if value != item.default:
            kept[item.name] = _plain(value)
    if isinstance(metric, WeightedSum):
        terms = [[_plain(weight), cost_data(term)] for weight, term in metric.terms]
        kept["terms"] = terms
        return None if any(term is None for _, term in terms) else kept
    return kept


def read_cost(data: object) -> CostMetric | None:
    """Returns the metric that data tell, None where they tell none that is known here.

    A kind or an attribute of a newer release may count otherwise: then it is better given.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get(KIND), str):
        return None
    kind, given = KINDS.get(data[KIND]), {key: data[key] for key in data if key != KIND}
    try:
        if kind is None:
            return None
        if "sheet" in given:
            given["sheet"] = _sheet(given["sheet"])
        if kind is WeightedSum:
            given["terms"] = tuple((weight, read_cost(term)) for weight, term in given["terms"])
        return kind(**given)
    except (RayCostTuneError, TypeError, ValueError, LookupError, RecursionError):
        return None


def unknown_metric(unit: str | None, place: str = "") -> str:
    """Says that a sweep's metric must be given, which its journal doesn't hold.

    Args:
        unit: Its unit, None where that is unknown too.
        place: Where the journal lies, the end of a sentence.
    """
    return (
        f"the sweep was scored in {unit or 'an unknown unit'}, by a metric that its journal "
        f"doesn't hold{place}. Give it or another one: cost=..., or --cost module:Name, a metric "
        "or its class"
    )


def _plain(value: object) -> object:
    """Returns a value without NumPy's types."""
    if isinstance(value, PriceSheet):
        nodes = [{key: _plain(of) for key, of in asdict(node).items()} for node in value.nodes]
        return {"nodes": nodes, "currency": value.currency}
    whole, number = read_whole(value), read_real(value)
    return value if number is None else number if whole is None else whole


def _sheet(data: Mapping[str, Any]) -> PriceSheet:
    return PriceSheet(tuple(NodePrice(**node) for node in data["nodes"]), data["currency"])
