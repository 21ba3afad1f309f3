"""Types of machine in search spaces, configs, saved states and resources."""

import json
from typing import Any

import pytest
from ray import tune

from raycosttune.core.goal import Goal
from raycosttune.core.node_type import NodeType
from raycosttune.core.profile import Profile
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidSpaceError, InvalidStateError, InvalidTrainableError
from raycosttune.tune.convert import read_param_space
from raycosttune.tune.domain import read_space, space_state
from raycosttune.tune.profile import profile_config
from raycosttune.tune.rebuilt import record_in
from raycosttune.tune.resources import WorkerResources, read_by_type, type_in
from raycosttune.tune.search import CostAwareSearch
from raycosttune.tune.trainable import function_trainable
from tests.tune.fakes import GOAL

SPACE = {
    "num_workers": tune.choice([1, 2]),
    "batch_size": tune.choice([32, 64]),
    "node_type": tune.choice(["old", "new"]),
}
BY_TYPE = {"old": {"old": 1.0}, "new": {"new": 1.0}}


def test_without_types_a_saved_search_says_nothing_of_them() -> None:
    untyped = {key: value for key, value in SPACE.items() if key != "node_type"}
    state = space_state(read_param_space(untyped, "num_workers", "batch_size"))
    assert set(state) == {"workers", "batches", "domains", "paths", "workers_key", "batch_key"}
    assert read_space(state).types == ()
    wrong = {**state, "types": [""], "type_key": "node_type"}
    with pytest.raises(InvalidStateError, match="saved types of machine must be"):
        read_space(wrong)
    with pytest.raises(InvalidStateError, match=r"none to \['node_type'\]"):
        read_space({**wrong, "types": ["a"]})


def test_the_key_of_the_type_may_be_another_one() -> None:
    nested = {"num_workers": 1, "batch_size": 2, "on": {"machine": tune.choice(["a", "b", "a"])}}
    params = read_param_space(nested, "num_workers", "batch_size", "on/machine")
    assert params.types == ("a", "b")
    assert params.config(1, 2, {}, "b") == {
        "num_workers": 1,
        "batch_size": 2,
        "on": {"machine": "b"},
    }
    assert params.holds(Allocation(1, 2, 1, "a"), {})
    assert not params.holds(Allocation(1, 2), {})
    assert read_space(json.loads(json.dumps(space_state(params)))).types == params.types


@pytest.mark.parametrize(
    ("domain", "named"),
    [
        (tune.choice([1, 2]), "texts that aren't empty, got 1"),
        (tune.choice(["a", ""]), "texts that aren't empty, got ''"),
        (tune.choice([]), "texts that aren't empty, got 'none'"),
        (tune.uniform(0, 1), "texts that aren't empty, got <ray"),
    ],
)
def test_a_type_is_a_choice_of_texts(domain: Any, named: str) -> None:
    with pytest.raises(InvalidSpaceError, match=named):
        read_param_space({**SPACE, "node_type": domain}, "num_workers", "batch_size")


def test_a_profile_is_of_one_type() -> None:
    params = read_param_space(SPACE, "num_workers", "batch_size")
    space = Space((1, 2), (32, 64), node_types=(NodeType("old"), NodeType("new")))
    cells = tuple(cell for cell in space.cells if cell.node_type == "new")
    config = profile_config(params, space, Profile(cells), {}, None)
    assert config["node_type"] == "new"
    (asked,) = [value for value in config.values() if isinstance(value, dict)]
    assert {cell["node_type"] for cell in asked["cells"]} == {"new"}
    assert {cell["config"]["node_type"] for cell in asked["cells"]} == {"new"}


def test_a_trial_is_rebuilt_with_its_type() -> None:
    params = read_param_space(SPACE, "num_workers", "batch_size")
    config = {"num_workers": 1, "batch_size": 32, "node_type": "new"}
    goal = Goal(metric="accuracy", mode="max", target=0.9)
    types = NodeType("old", 2, 4), NodeType("new", 1, 1)
    session = Session(Space((1, 2), (32,), node_types=types), goal, clock=float)
    record = record_in(config, "t", session, params)
    assert record is not None
    assert record.allocation == session.space.allocation(1, 32, "new")
    assert record_in({**config, "node_type": "gone"}, "t", session, params) is None
    del config["node_type"]
    assert record_in(config, "t", session, params) is None


def test_workers_reserve_what_their_type_needs() -> None:
    held = WorkerResources(2, {"CPU": 1.0}, "n", BY_TYPE, "kind", "new")
    assert held.bundles == [{"CPU": 1.0, "new": 1.0}] * 2
    assert held.moved(1).bundles == [{"CPU": 1.0, "new": 1.0}]
    trainable = function_trainable(lambda config: None, resources_by_type=BY_TYPE)  # noqa: ARG005 - what a trainable takes
    reserve: Any = trainable
    found = reserve._resources({"num_workers": 1, "node_type": "old"})
    assert found.bundles == [{"CPU": 1.0, "old": 1.0}]


@pytest.mark.parametrize("config", [{}, {"node_type": "gone"}])
def test_a_config_without_one_of_the_types_is_refused(config: dict[str, str]) -> None:
    with pytest.raises(InvalidTrainableError, match=r"one of its types, \['old', 'new'\]"):
        type_in(config, "node_type", BY_TYPE)
    assert type_in(config, "node_type", {}) == ""


@pytest.mark.parametrize(
    "value", [3, {"a": {}}, {"a": 1}, {"": {"x": 1}}, {"a": {"x": 0}}, {"a": {"x": "1"}}]
)
def test_resources_by_type_of_another_kind_are_refused(value: Any) -> None:
    with pytest.raises(InvalidSpaceError, match="resources_by_type must map each type"):
        read_by_type(value)
    with pytest.raises(InvalidSpaceError, match="resources_by_type must map each type"):
        CostAwareSearch(GOAL, resources_by_type=value)
