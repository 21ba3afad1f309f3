"""A sweep among types of machine on a real Ray, whose nodes have resources of their own."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import tune
from ray.cluster_utils import Cluster

from raycosttune import Dollars, NodePrice, Plan, PriceSheet
from raycosttune.core.goal import Goal
from raycosttune.results.past_sweep import read_sweep
from raycosttune.tune import CostAwareScheduler, CostAwareSearch, torch_trainable
from tests.real_ray import ROOT, forks

pytestmark = [pytest.mark.ray, pytest.mark.slow]
STORE = 100_000_000
PRICES = Dollars(
    PriceSheet((NodePrice(name="old", per_hour=1.0), NodePrice(name="new", per_hour=8.0)))
)


@pytest.fixture
def _nodes_of_two_types(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    head: dict[str, Any] = {"num_cpus": 3, "resources": {"old": 2}, "object_store_memory": STORE}
    head["include_dashboard"] = False
    with forks():
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(num_cpus=2, resources={"new": 2}, object_store_memory=STORE)
        ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
        yield
        ray.shutdown()
        cluster.shutdown()


def train(config: dict[str, Any]) -> None:
    """Reports whether each epoch is on a node of the type that the config names."""
    import ray.train  # noqa: PLC0415 - runs in a worker

    here = ray.get_runtime_context().get_node_id()
    (own,) = [node["Resources"] for node in ray.nodes() if node["NodeID"] == here]
    for epoch in range(1, 4):
        accuracy = 0.4 * epoch if config["node_type"] in own else -1.0
        ray.train.report({"accuracy": accuracy, "epoch": epoch})


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("_nodes_of_two_types")
def test_workers_are_on_nodes_of_the_type_that_the_search_chose(tmp_path: Path) -> None:
    search = CostAwareSearch(
        Goal(metric="accuracy", mode="max", target=0.9, planned_runs=3), cost=PRICES
    )
    tune.run(
        torch_trainable(train, resources_by_type={"old": {"old": 1}, "new": {"new": 0.01}}),
        config={
            "num_workers": tune.choice([1, 2]),
            "batch_size": 32,
            "node_type": tune.choice(["new", "old"]),
        },
        search_alg=search,
        scheduler=CostAwareScheduler(),
        num_samples=1,
        storage_path=str(tmp_path),
        name="types",
        raise_on_failed_trial=False,
        verbose=0,
    )
    plan = search.plan()
    assert isinstance(plan, Plan)
    values = [r.value for t in search.session.records.values() for r in t.reports]
    assert values
    assert -1.0 not in values
    assert {kind.name: kind.max_workers for kind in search.session.space.types} == {
        "new": 2,
        "old": 2,
    }
    assert read_sweep(tmp_path / "types").plan(cost=PRICES).allocation == plan.allocation  # type: ignore[union-attr]
