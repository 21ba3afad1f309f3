import math

import pytest
from hypothesis import given

from raycosttune.core.cost import is_proportional
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.energy import EnergyKWh
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidCostError, InvalidPriceSheetError
from tests.core.drive import spaces


@given(spaces())
def test_energy_is_a_cost(space: Space) -> None:
    metric = EnergyKWh(watts_per_node=200, watts_per_worker=300)
    check_cost_metric(metric, space.cells)
    assert is_proportional(metric)


def test_energy_adds_machines_and_workers() -> None:
    metric = EnergyKWh(watts_per_node=200, watts_per_worker=300)
    assert metric(Allocation(4, 64, 2), 1800) == pytest.approx(0.8)
    packed = EnergyKWh(watts_per_node=200, watts_per_worker=300, workers_per_node=4)
    assert packed(Allocation(4, 64, 2), 1800) == pytest.approx(0.7)


def test_watts_come_from_a_sheet() -> None:
    sheet = PriceSheet(
        (NodePrice(name="a", per_hour=1, watts=500, workers=2), NodePrice(name="b", per_hour=1))
    )
    assert EnergyKWh.of(sheet, "a") == EnergyKWh(watts_per_node=500, workers_per_node=2)
    with pytest.raises(InvalidPriceSheetError, match="watts of b must be given in the price"):
        EnergyKWh.of(sheet, "b")


@pytest.mark.parametrize("watts", [-1, math.nan, "300"])
def test_watts_must_be_numbers(watts: float) -> None:
    with pytest.raises(InvalidCostError, match="watts_per_worker must be a number"):
        EnergyKWh(watts_per_worker=watts)


def test_workers_of_a_machine_must_be_a_count() -> None:
    with pytest.raises(InvalidCostError, match="workers_per_node must be a whole number"):
        EnergyKWh(watts_per_worker=1, workers_per_node=0)


def test_some_watts_must_be_given() -> None:
    with pytest.raises(InvalidCostError, match="watts_per_node, watts_per_worker or both"):
        EnergyKWh()


def test_watts_are_those_of_the_type_of_an_allocation() -> None:
    sheet = PriceSheet(
        (
            NodePrice(name="a", per_hour=1, watts=500, workers=2),
            NodePrice(name="b", per_hour=1, watts=200),
            NodePrice(name="c", per_hour=1),
        )
    )
    metric = EnergyKWh.of(sheet)
    assert metric(Allocation(4, 64, 1, "a"), 3600) == pytest.approx(1.0)
    assert metric(Allocation(4, 64, 1, "b"), 3600) == pytest.approx(0.2)
    for cell in (Allocation(4, 64, 1, "c"), Allocation(4, 64)):
        with pytest.raises(InvalidCostError, match=r"must have the watts of .*, got those of"):
            check_cost_metric(metric, (cell,))
