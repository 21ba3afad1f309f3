"""A sweep of functions whose epochs are faster with some recipes, on a real local Ray."""

import time
from pathlib import Path
from typing import Any

import pytest
from ray import tune

from raycosttune import Goal, WorkerHours, read_sweep
from raycosttune.tune import CostAwareScheduler, CostAwareSearch, function_trainable
from raycosttune.tune.plan import TunePlan
from tests.real_ray import wait_for_two_workers

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def train(config: dict[str, Any]) -> None:
    """Needs the same reports with either; with bf16 they take a quarter of the time."""
    is_fast = config["precision"] == "bf16"
    for epoch in range(1, 30):
        time.sleep(0.1 if is_fast else 0.4)
        tune.report({"accuracy": 0.1 * epoch, "epoch": epoch})


@pytest.mark.usefixtures("shared_ray")
def test_the_plan_is_the_faster_precision(tmp_path: Path) -> None:
    points = [{"num_workers": 1, "precision": precision} for precision in ("fp32", "bf16")]
    search = CostAwareSearch(
        Goal(target=0.45, planned_runs=1000),
        cost=WorkerHours(),
        affects_time=("precision",),
        max_concurrent=2,
        points_to_evaluate=points,
    )
    tune.run(
        function_trainable(train),
        config={
            "num_workers": tune.choice([1, 2]),
            "batch_size": tune.choice([32]),
            "precision": tune.choice(["fp32", "bf16"]),
        },
        metric="accuracy",
        mode="max",
        search_alg=search,
        scheduler=CostAwareScheduler(),
        num_samples=-1,
        storage_path=str(tmp_path),
        name="sweep",
        verbose=0,
    )
    wait_for_two_workers()
    plan = search.plan()
    assert isinstance(plan, TunePlan)
    assert plan.config["precision"] == "bf16"
    assert "precision=bf16: an epoch takes 0." in search.explain()
    assert read_sweep(tmp_path / "sweep").space.affects_time == ("precision",)
