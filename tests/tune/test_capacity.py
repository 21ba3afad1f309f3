import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray._private.state import state
from ray.core.generated import autoscaler_pb2

from raycosttune.errors import InvalidSpaceError
from raycosttune.tune import capacity
from raycosttune.tune.capacity import (
    NodeGroup,
    cluster_nodes,
    coming_nodes,
    left_of,
    most_workers,
    most_workers_per_node,
    node_capacity,
    node_groups,
    nodes_left,
    wait_for_workers,
)
from raycosttune.tune.once import Once
from raycosttune.tune.setup import Setup, waiting_for
from tests.tune.fakes import GOAL, SPACE

CPU = {"CPU": 1.0}


def test_a_node_holds_whole_workers_only() -> None:
    assert node_capacity({"CPU": 7.0, "GPU": 2.0}, {"CPU": 2}) == 3
    assert node_capacity({"CPU": 7.0, "GPU": 2.0}, {"CPU": 2, "GPU": 1}) == 2
    assert node_capacity({"CPU": 7.0}, {"CPU": 1, "GPU": 1}) == 0
    assert node_capacity({"CPU": 7.0}, {"GPU": 0}) == 0


@given(st.integers(1, 200), st.integers(1, 64))
def test_rounding_never_loses_a_worker(parts: int, workers: int) -> None:
    assert node_capacity({"CPU": float(workers)}, {"CPU": 1 / parts}) == workers * parts


def test_what_is_left_on_two_nodes_does_not_make_a_worker() -> None:
    nodes = [{"CPU": 3.0}, {"CPU": 3.0}]
    assert most_workers(nodes, {"CPU": 2}) == 2
    assert most_workers_per_node(nodes, {"CPU": 2}) == 1
    assert most_workers_per_node([], {"CPU": 2}) == 0


def test_without_ray_the_cluster_is_unknown() -> None:
    assert cluster_nodes() is None
    assert nodes_left() is None


def test_what_this_job_holds_counts_as_left_and_what_others_use_does_not() -> None:
    assert left_of({"CPU": 8.0, "GPU": 1.0}, {"CPU": 3.0}, {"CPU": 4.0}) == {"CPU": 7.0, "GPU": 0}
    assert left_of({"CPU": 8.0}, {"CPU": 8.0}, {"CPU": 4.0}) == {"CPU": 8.0}
    assert left_of({"CPU": 8.0}, None, {}) == {"CPU": 8.0}


def test_a_cluster_that_scales_itself_has_room_on_nodes_to_come() -> None:
    small, large = NodeGroup({"CPU": 4.0, "memory": 9e9}, 3), NodeGroup({"CPU": 8.0, "GPU": 1.0}, 2)
    live = [{"CPU": 4.0, "memory": 8e9}, {"CPU": 8.0, "GPU": 1.0}]
    coming = coming_nodes(live, [small, large])
    assert most_workers(coming, CPU) == 8 + 2 * 4
    assert most_workers(coming, {"GPU": 1.0}) == 1
    assert coming_nodes(live, []) == []


def config_of(*groups: tuple[int, dict[str, int]]) -> Any:
    made: Any = autoscaler_pb2
    config = made.ClusterConfig()
    for count, resources in groups:
        config.node_group_configs.add(max_count=count, resources=resources)
    return config


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A cluster of one node of four CPUs, of which another job uses one and this job two."""
    alive = {"NodeID": "ab", "Alive": True, "Resources": {"CPU": 4.0}}
    dead = {"NodeID": "cd", "Alive": False, "Resources": {"CPU": 64.0}}
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    monkeypatch.setattr("ray.nodes", lambda: [alive, dead])
    monkeypatch.setattr(state, "get_cluster_config", lambda: None)
    monkeypatch.setattr(state, "available_resources_per_node", lambda: {"ab": {"CPU": 1.0}})
    monkeypatch.setattr(state, "get_draining_nodes", dict)
    monkeypatch.setattr(capacity, "own_use", lambda: {"ab": {"CPU": 2.0}})
    monkeypatch.setattr(capacity, "_once", Once(capacity.logger))
    return alive


def test_the_cluster_is_read_from_ray(
    node: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cluster_nodes() == [node["Resources"]]
    assert nodes_left() == [{"CPU": 3.0}]
    monkeypatch.setattr(state, "get_cluster_config", lambda: config_of((3, {"CPU": 4})))
    assert most_workers(cluster_nodes() or (), CPU) == 12
    assert most_workers(nodes_left() or (), CPU) == 11
    monkeypatch.setattr(state, "get_cluster_config", lambda: config_of((-1, {"CPU": 4})))
    assert node_groups() == [NodeGroup({"CPU": 4.0}, 1000)]


@pytest.mark.usefixtures("node")
def test_a_spot_node_that_was_warned_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "get_draining_nodes", lambda: {"ab": 0})
    assert nodes_left() == []


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("name", "read"),
    [("available_resources_per_node", nodes_left), ("get_cluster_config", cluster_nodes)],
)
def test_tables_that_a_release_of_ray_has_moved_are_told_once_and_done_without(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
    read: Callable[[], Any],
) -> None:
    monkeypatch.delattr(type(state), name)
    monkeypatch.delattr(state, name)
    with caplog.at_level(logging.WARNING):
        assert read() == read() == [{"CPU": 4.0}]
    assert len(caplog.records) == 1


def test_a_restored_sweep_waits_for_the_nodes_that_it_had(
    node: dict[str, Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        node["Resources"] = {"CPU": 2.0 * len(slept)}

    node["Resources"] = {}
    monkeypatch.setattr(capacity, "time", SimpleNamespace(monotonic=float, sleep=sleep))
    wait_for_workers([CPU], 4, 60.0)
    assert len(slept) == 2
    assert caplog.text.count("0 of the 4 workers") == 1


@pytest.mark.usefixtures("node")
def test_a_restore_before_any_node_has_come_does_not_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A raise would make Tune start the experiment over in silence."""
    from raycosttune.tune.convert import read_param_space  # noqa: PLC0415 - for this test alone

    monkeypatch.setattr("raycosttune.tune.setup.WAIT_SECONDS", 0.0)
    params = read_param_space(SPACE, "num_workers", "batch_size")
    setup = Setup(resources_per_worker={"GPU": 1.0})
    with pytest.raises(InvalidSpaceError, match="must fit on a node"):
        setup.session(GOAL, params)
    assert waiting_for(setup, 0).session(GOAL, params).space.max_workers is None
