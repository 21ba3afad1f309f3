"""Runs that go on with other workers, on a real Ray."""

import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import tune
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler

from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Resize
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, TrialRecord
from raycosttune.results.journal import read_journal
from raycosttune.tune import (
    CostAwareScheduler,
    CostAwareSearch,
    function_trainable,
    torch_trainable,
)
from raycosttune.tune.collector import job_groups

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(480)]
ROOT = Path(__file__).parents[2]
EPOCH_SECONDS = 0.4
LONG = 60.0  # of the epoch in which a run is moved: it ends by that, on any machine


class ResizeAtFirst(CostAwareScheduler):
    """Gives every trial two workers after its first epoch."""

    def __init__(self, search: CostAwareSearch) -> None:
        super().__init__()
        self._asked = search

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: Any) -> str:
        decision = super().on_trial_result(tune_controller, trial, result)
        if decision == TrialScheduler.CONTINUE and result["epoch"] == 1:
            self._asked.sweep.resize(trial.trial_id, Resize(2, "a test"))
            self._collector.sweep_after_stop()
            return str(TrialScheduler.PAUSE)
        return decision


def sweep(trainable: Any, folder: Path) -> TrialRecord:
    goal = Goal(metric="accuracy", mode="max", target=0.3, planned_runs=1)
    search = CostAwareSearch(goal, cost=WorkerHours())
    tune.run(
        trainable,
        config={"num_workers": tune.choice([1, 2]), "batch_size": tune.choice([64])},
        search_alg=search,
        scheduler=ResizeAtFirst(search),
        num_samples=1,
        storage_path=str(folder),
        verbose=0,
        time_budget_s=400,
    )
    (record,) = search.session.records.values()
    return record


def check(record: TrialRecord) -> None:
    """Holds of a run of three epochs that was moved after its first."""
    assert [(r.epoch, r.workers or 1, r.attempt) for r in record.reports] == [
        (1.0, 1, 1),
        (2.0, 2, 2),
        (3.0, 2, 2),
    ]
    assert record.ended is not None
    assert record.ended.cause is EndCause.REACHED
    first, moved, last = record.reports
    assert moved.startup_seconds > 0 == last.startup_seconds
    assert first.startup_seconds > 0
    deadline = time.monotonic() + 60
    while job_groups() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert job_groups() == []


@pytest.mark.usefixtures("shared_ray")
def test_a_function_goes_on_from_its_checkpoint_with_twice_the_resources(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> None:
        first, checkpoint = 1, tune.get_checkpoint()
        if checkpoint:
            with checkpoint.as_directory() as folder:
                first = int(Path(folder, "epoch").read_text()) + 1
        for epoch in range(first, 10):
            time.sleep(EPOCH_SECONDS / config["num_workers"] if epoch != 2 or first == 2 else LONG)
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "epoch").write_text(str(epoch))
                saved = tune.Checkpoint.from_directory(folder)
                tune.report({"accuracy": 0.1 * epoch, "epoch": epoch}, checkpoint=saved)

    check(sweep(function_trainable(train), tmp_path))


@pytest.mark.usefixtures("shared_ray")
def test_a_run_of_ray_train_goes_on_from_its_checkpoint_with_two_workers(tmp_path: Path) -> None:
    def loop(_: dict[str, Any]) -> None:
        first, checkpoint = 1, ray.train.get_checkpoint()
        if checkpoint:
            with checkpoint.as_directory() as folder:
                first = int(Path(folder, "epoch").read_text()) + 1
        leads = ray.train.get_context().get_world_rank() == 0
        for epoch in range(first, 10):
            time.sleep(EPOCH_SECONDS if epoch != 2 or first == 2 else LONG)
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "epoch").write_text(str(epoch))
                saved = ray.train.Checkpoint.from_directory(folder) if leads else None
                ray.train.report({"accuracy": 0.1 * epoch, "epoch": epoch}, checkpoint=saved)

    record = sweep(torch_trainable(loop), tmp_path)
    check(record)
    (own,) = tmp_path.rglob(f"trials/{record.trial_id}.jsonl")
    kinds = [row["row"] for row in read_journal(own)]
    start = ["requested", "begun", "report"]
    assert kinds[:7] == ["header", *start, *start]
