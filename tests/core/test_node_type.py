import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.cost import NodeHours
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.node_type import NodeType, free_of
from raycosttune.core.observation import TrialRecord
from raycosttune.core.space import Allocation, Space
from raycosttune.core.state import record_from_data, record_to_data
from raycosttune.errors import InvalidSpaceError

SMALL, LARGE = NodeType("small", 1, 4), NodeType("large", 4, excluded=((2, 64),))
SPACE = Space((1, 2, 8), (64, 128), workers_per_node=2, node_types=(SMALL, LARGE))
NAMES = st.text(min_size=1)


def test_a_type_has_its_own_machines_and_holes() -> None:
    small = [cell for cell in SPACE.cells if cell.node_type == "small"]
    large = [cell for cell in SPACE.cells if cell.node_type == "large"]
    assert {(cell.workers, cell.nodes) for cell in small} == {(1, 1), (2, 2)}
    assert {(cell.workers, cell.nodes) for cell in large} == {(1, 1), (2, 1), (8, 2)}
    assert SPACE.allocation(2, 64, "large") not in SPACE.cells
    assert list(SPACE.cells) == sorted(SPACE.cells)


def test_a_type_takes_what_it_leaves_open_from_the_space() -> None:
    space = Space((2, 4), (64,), workers_per_node=2, max_workers=3, node_types=(NodeType("a"),))
    assert space.cells == (Allocation(2, 64, 1, "a"),)
    assert space.type("a") == NodeType("a", 2, 3)
    assert space.nodes(4, "another") == 1  # nothing is known of it
    assert Space((1,), (64,), max_workers=3).types == (NodeType("", None, 3),)


def test_no_cell_on_any_type_is_refused_with_what_each_holds() -> None:
    types = NodeType("a", max_workers=1), NodeType("b", max_workers=2)
    with pytest.raises(InvalidSpaceError, match=r"at most 1 worker of a, 2 workers of b\. Offer"):
        Space((4,), (64,), node_types=types)


@pytest.mark.parametrize(
    ("types", "named"),
    [
        ((NodeType("a"), NodeType("a")), "different names, got 'a'"),
        ((NodeType(""),), "NodeType with names"),
        (("a",), "NodeType with names, got 'a'"),
    ],
)
def test_types_are_told_apart_by_their_names(types: Any, named: str) -> None:
    with pytest.raises(InvalidSpaceError, match=named):
        Space((1,), (64,), node_types=types)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"name": 3}, r"NodeType\.name must be a text that isn't empty, got 3"),
        ({"workers_per_node": 0}, r"NodeType\.workers_per_node must be whole"),
        ({"max_workers": 1.5}, r"NodeType\.max_workers must be whole"),
        ({"excluded": ((1,),)}, r"NodeType\.excluded must hold pairs"),
        ({"excluded": 3}, r"NodeType\.excluded must hold pairs"),
        ({"excluded": ((1, 0),)}, r"NodeType\.excluded must be whole"),
    ],
)
def test_a_value_of_a_type_that_breaks_its_rule_is_named(
    values: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidSpaceError, match=named):
        NodeType(**{"name": "a", **values})


def test_workers_are_free_by_type() -> None:
    assert free_of(None, "a") == math.inf
    assert free_of(3, "a") == 3
    assert free_of({"a": 2}, "a") == 2
    assert free_of({"a": 2}, "b") == 0


@given(NAMES)
def test_a_cell_comes_back_from_data_with_its_type(name: str) -> None:
    cell = Allocation(2, 64, 1, name)
    assert Allocation.read(cell.data()) == cell
    record = TrialRecord("t", cell, {}, 0)
    assert record_from_data(record_to_data(record)) == record


def test_without_types_data_are_as_before_there_were_any() -> None:
    cell = Allocation(2, 64, 1)
    assert cell.data() == {"workers": 2, "batch_size": 64, "nodes": 1}
    assert repr(cell) == "Allocation(workers=2, batch_size=64, nodes=1)"
    assert repr(replace(cell, node_type="a")).endswith("nodes=1, node_type='a')")
    assert "node_types" not in Space((1,), (64,)).data()
    assert SPACE.data()["node_types"][0]["name"] == "small"
    with pytest.raises(ValueError, match="node_type"):
        Allocation.read({**cell.data(), "node_type": 3})


def test_a_cost_may_fall_from_one_type_to_another() -> None:
    space = Space((1, 2), (64,), node_types=(NodeType("many", 1), NodeType("one", 8)))
    check_cost_metric(NodeHours(), space.cells)
