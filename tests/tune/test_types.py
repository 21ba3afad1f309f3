"""Types of machine as Tune's adapter reads, places and counts them."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from ray import tune

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Run, Wait
from raycosttune.core.dollars import Dollars
from raycosttune.core.goal import Goal
from raycosttune.core.node_type import NodeType
from raycosttune.core.plan import Plan
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.errors import (
    InvalidCostError,
    InvalidSpaceError,
    InvalidTrainableError,
)
from raycosttune.results.past_sweep import read_sweep
from raycosttune.tune import admission as module
from raycosttune.tune.admission import Admission
from raycosttune.tune.convert import read_param_space
from raycosttune.tune.resources import (
    DriverResources,
    WorkerResources,
)
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, FakeTrial, FakeTune, journal, session_of

SPACE = {
    "num_workers": tune.choice([1, 2]),
    "batch_size": tune.choice([32, 64]),
    "node_type": tune.choice(["old", "new"]),
}
BY_TYPE = {"old": {"old": 1.0}, "new": {"new": 1.0}}
NODES = [{"CPU": 8.0, "old": 2.0}, {"CPU": 8.0, "old": 2.0}, {"CPU": 8.0, "new": 1.0}]
PRICES = Dollars(
    PriceSheet((NodePrice(name="old", per_hour=1.0), NodePrice(name="new", per_hour=3.0)))
)
DRIVER = DriverResources({"CPU": 1.0}, resources_by_type=BY_TYPE)


@pytest.fixture
def _nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("raycosttune.tune.setup.cluster_nodes", lambda: NODES)
    monkeypatch.setattr(module, "nodes_left", lambda: NODES)


def searched(folder: Path, **more: Any) -> FakeTune:
    search = CostAwareSearch(more.pop("goal", GOAL), **{"cost": PRICES, **more})
    return FakeTune(search, folder, SPACE, factory=DRIVER)


@pytest.mark.usefixtures("_nodes")
def test_a_sweep_among_types_ends_with_a_config_that_names_one(tmp_path: Path) -> None:
    ray_tune = searched(tmp_path)
    while isinstance(trial := ray_tune.suggest(), FakeTrial):
        assert trial.config["node_type"] in ("old", "new")
        ray_tune.start()
        for epoch in range(1, 5):
            if ray_tune.report(trial, accuracy=0.3 * epoch, epoch=epoch) == "STOP":
                break
    plan = ray_tune.searcher.plan()  # type: ignore[attr-defined]
    assert plan.config["node_type"] == plan.allocation.node_type == "old"
    assert f"{plan.allocation.workers} worker" in str(plan)
    assert " of old, batch " in str(plan)
    session = session_of(ray_tune)
    kinds = {kind.name: kind for kind in session.space.types}
    assert kinds["old"] == NodeType("old", 2, 4)
    assert kinds["new"] == NodeType("new", None, 1)
    assert all(row["node_type"] for row in journal(tmp_path) if row["row"] == "asked")
    past = read_sweep(tmp_path)
    assert past.space == session.space
    again = past.plan(cost=PRICES)
    assert isinstance(again, Plan)
    assert again.allocation == plan.allocation


@pytest.mark.usefixtures("_nodes")
def test_a_restored_search_knows_its_types(tmp_path: Path) -> None:
    ray_tune = searched(tmp_path)
    trial = ray_tune.suggest()
    path = tmp_path / "searcher-state-1.pkl"
    ray_tune.searcher.save(str(path))
    again = CostAwareSearch(GOAL, cost=PRICES, resources_by_type=BY_TYPE)
    again.restore(str(path))
    assert again.session.records[trial.trial_id].allocation.node_type == trial.config["node_type"]
    assert again.params.types == ("old", "new")
    told = json.loads(path.read_text())
    assert told["workers"] == 5


def test_keys_differ() -> None:
    with pytest.raises(InvalidSpaceError, match="batch_key and type_key must differ"):
        read_param_space(SPACE, "num_workers", "batch_size", "batch_size")
    with pytest.raises(InvalidSpaceError, match="node_type_key must be a text"):
        CostAwareSearch(GOAL, node_type_key="")


@pytest.mark.usefixtures("_nodes")
@pytest.mark.parametrize(
    ("factory", "named"),
    [
        (DriverResources({"CPU": 1.0}), r"nothing for \['old', 'new'\].*'old': \{'old': 1\}"),
        (WorkerResources(1, {"CPU": 1.0}), "resources_by_type must say"),
        (
            DriverResources({"CPU": 1.0}, resources_by_type=BY_TYPE, node_type_key="kind"),
            'got "kind" and "node_type"',
        ),
    ],
)
def test_a_trainable_that_does_not_place_a_type_is_refused(
    tmp_path: Path, factory: Any, named: str
) -> None:
    ray_tune = searched(tmp_path)
    trial = FakeTrial("t1", ray_tune.searcher.suggest("t1") or {}, tmp_path)
    trial.placement_group_factory = factory
    with pytest.raises(InvalidTrainableError, match=named):
        ray_tune.add(trial)


def test_a_type_that_no_node_offers_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("raycosttune.tune.setup.cluster_nodes", lambda: NODES[:2])
    with caplog.at_level(logging.WARNING, logger="raycosttune"):
        ray_tune = searched(tmp_path, resources_by_type=BY_TYPE)
        assert ray_tune.suggest().config["node_type"] == "old"
    assert "type of machine 'new' is left out: no node of the cluster has" in caplog.text
    assert {cell.node_type for cell in session_of(ray_tune).space.cells} == {"old"}
    monkeypatch.setattr("raycosttune.tune.setup.cluster_nodes", lambda: [{"CPU": 8.0}])
    with pytest.raises(InvalidSpaceError, match="must fit on a node of the cluster, got"):
        searched(tmp_path, resources_by_type=BY_TYPE).suggest()


def test_the_worker_counts_that_a_type_is_too_small_for_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("raycosttune.tune.setup.cluster_nodes", lambda: NODES)
    with caplog.at_level(logging.WARNING, logger="raycosttune"):
        searched(tmp_path, resources_by_type=BY_TYPE).suggest()
    assert (
        "worker counts [2] of new are left out: the cluster holds at most 1 worker" in caplog.text
    )


def test_a_trial_of_a_type_that_is_not_there_ends_and_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raycosttune.tune.setup.cluster_nodes", lambda: NODES[2:])
    ray_tune = searched(tmp_path)  # only the trainable tells what types need
    trial = ray_tune.suggest()
    record = session_of(ray_tune).records[trial.trial_id]
    if record.allocation.node_type == "old":
        assert "at most 0 workers of old" in record.ended.reason
    assert session_of(ray_tune).spent == 0


def test_a_price_for_one_type_is_refused_before_the_first_trial(tmp_path: Path) -> None:
    one = Dollars(PRICES.sheet, "old")
    with pytest.raises(InvalidCostError, match="Leave node_type out of Dollars"):
        searched(tmp_path, cost=one)
    few = Dollars(
        PriceSheet((NodePrice(name="old", per_hour=1.0), NodePrice(name="x", per_hour=1)))
    )
    with pytest.raises(InvalidCostError, match="have a price of 'new'"):
        searched(tmp_path, cost=few)


def test_a_plain_trainable_places_its_workers_itself(tmp_path: Path) -> None:
    search = CostAwareSearch(GOAL, cost=PRICES, resources_by_type=BY_TYPE)
    assert FakeTune(search, tmp_path, SPACE).suggest().config["node_type"] in BY_TYPE
    with pytest.raises(InvalidTrainableError, match="resources_by_type must say"):
        FakeTune(CostAwareSearch(GOAL, cost=PRICES), tmp_path, SPACE).suggest()


def test_any_text_names_a_type(tmp_path: Path) -> None:
    name = "<b>v100</b>"
    space = {**SPACE, "node_type": tune.choice([name])}
    search = CostAwareSearch(GOAL, cost=WorkerHours(), resources_by_type={name: {"x": 1}})
    ray_tune = FakeTune(search, tmp_path, space)
    assert ray_tune.suggest().config["node_type"] == name
    assert name in ray_tune.searcher.explain()  # type: ignore[attr-defined]


def typed_session(**more: Any) -> Session:
    goal = Goal(metric="accuracy", mode="max", target=0.9)
    types = NodeType("old", 2, 4), NodeType("new", 1, 1)
    space = Space((1, 2), (32,), node_types=types)
    return Session(space, goal, clock=lambda: 0.0, max_concurrent=4, **more)


def needs(node_type: str) -> dict[str, float]:
    return {"CPU": 1.0, **BY_TYPE[node_type]}


@pytest.mark.usefixtures("_nodes")
def test_free_workers_are_counted_by_type() -> None:
    session, admission = typed_session(), Admission()
    assert admission.free_workers(session, needs) == {"old": 4, "new": 1}
    first = admission.ask(session, "a", needs)
    assert isinstance(first, Run)
    held, kind = first.allocation.workers, first.allocation.node_type
    assert admission.free_workers(session, needs) == {"old": 4, "new": 1} | {
        kind: {"old": 4, "new": 1}[kind] - held
    }


def test_a_trial_waits_for_a_type_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "nodes_left", lambda: [{"CPU": 8.0, "other": 1.0}])
    session, admission = typed_session(abilities=Abilities()), Admission()
    with caplog.at_level(logging.WARNING, logger="raycosttune"):
        assert isinstance(admission.ask(session, "a", needs), Run)
    assert "of old and waits" in caplog.text or "of new and waits" in caplog.text
    assert isinstance(admission.ask(session, "b", needs), Wait)


def test_a_type_that_is_a_constant_is_the_one_of_all_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raycosttune.tune.setup.cluster_nodes", lambda: NODES)
    search = CostAwareSearch(GOAL)
    fixed = {**SPACE, "node_type": "new"}
    ray_tune = FakeTune(search, tmp_path, fixed)
    trial = FakeTrial("t1", {**fixed, **(search.suggest("t1") or {})}, tmp_path)
    trial.placement_group_factory = DRIVER
    ray_tune.add(trial)
    assert search.session.space.max_workers == 1
    assert not search.session.space.node_types


@pytest.mark.usefixtures("_nodes")
@pytest.mark.parametrize("profile", [False, True])
def test_the_first_trial_fills_the_machines_that_its_type_turns_out_to_have(
    tmp_path: Path, profile: bool
) -> None:
    space = {**SPACE, "num_workers": 4, "node_type": tune.choice(["old"])}
    search = CostAwareSearch(GOAL, cost=PRICES, profile=profile)
    ray_tune = FakeTune(search, tmp_path, space, factory=DRIVER)
    trial = ray_tune.suggest()
    session = search.session
    if profile:
        held = session.profiles[trial.trial_id].profile.held
    else:
        held = session.records[trial.trial_id].allocation
    assert held.nodes == 2
    assert held in session.space.cells
    (asked,) = [row for row in journal(tmp_path) if row["row"] in ("asked", "profile")]
    assert (asked["cells"][0] if profile else asked)["nodes"] == 2


def test_a_type_that_no_node_offers_now_is_not_planned_from_what_was_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raycosttune.tune.setup.cluster_nodes", lambda: NODES)
    monkeypatch.setattr(module, "nodes_left", lambda: NODES)
    first = searched(tmp_path / "FIRST", cost=WorkerHours())
    trial = first.suggest()
    first.start()
    first.report(trial, accuracy=0.95, epoch=1)
    kind = trial.config["node_type"]
    other = next(other for other in BY_TYPE if other != kind)
    left = [node for node in NODES if kind not in node]
    monkeypatch.setattr("raycosttune.tune.setup.cluster_nodes", lambda: left)
    known = read_sweep(tmp_path / "FIRST")
    search = CostAwareSearch(GOAL, cost=WorkerHours(), known=known, resources_by_type=BY_TYPE)
    FakeTune(search, tmp_path / "SECOND", SPACE, factory=DRIVER)
    assert [each.name for each in search.session.space.types] == [other]
    assert not isinstance(search.plan(), Plan)
