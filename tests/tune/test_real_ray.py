"""Sweeps on a real local Ray, as small as they get."""

import importlib
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle, tune
from ray.train.torch import TorchConfig

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause
from raycosttune.results.journal import read_journal
from raycosttune.results.replay import read_trials
from raycosttune.tune import (
    CostAwareScheduler,
    CostAwareSearch,
    function_trainable,
    torch_trainable,
)
from raycosttune.tune.plan import TunePlan
from raycosttune.tune.setup import Setup
from tests.real_ray import address, wait_for_two_workers

pytestmark = [pytest.mark.ray, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


def train(config: dict[str, Any]) -> None:
    """Learns faster on small batches, and is faster on large ones."""
    for epoch in range(1, 30):
        time.sleep(0.02 * (1 + 32 / config["batch_size"]) / config["num_workers"])
        accuracy = 0.2 * epoch * (32 / config["batch_size"]) ** 0.5
        tune.report({"val": {"accuracy": accuracy}, "epoch": epoch})


def make_search(goal: Goal) -> CostAwareSearch:
    return CostAwareSearch(goal, cost=WorkerHours(), max_concurrent=2)


SPACE = {
    "num_workers": tune.choice([1, 2, 64]),
    "batch_size": tune.choice([32, 64]),
    "lr": tune.loguniform(1e-3, 1e-1),
    "constant": [1, 2],
}


@pytest.mark.usefixtures("shared_ray")
def test_a_sweep_of_functions_with_tune_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    search = make_search(Goal(target=0.9, deadline_seconds=600, planned_runs=2))
    with caplog.at_level(logging.WARNING, logger="raycosttune"):
        tune.run(
            function_trainable(train),
            config=SPACE,
            metric="val/accuracy",
            mode="max",
            search_alg=search,
            scheduler=CostAwareScheduler(),
            num_samples=-1,
            reuse_actors=True,
            storage_path=str(tmp_path),
            name="sweep",
            verbose=0,
        )
    plan = search.plan()
    assert isinstance(plan, TunePlan)
    assert set(plan.config) == set(SPACE)
    assert plan.config["constant"] == [1, 2]
    assert "[64] are left out" in caplog.text
    trials = read_trials(read_journal(tmp_path / "sweep" / "raycosttune" / "journal.jsonl"))
    assert trials == search.session.records
    assert all(not trial.is_live for trial in trials.values())


@pytest.mark.usefixtures("shared_ray")
def test_a_sweep_with_a_tuner_survives_trials_that_misbehave(tmp_path: Path) -> None:
    def misbehave(config: dict[str, Any]) -> None:
        if config["batch_size"] == 32:
            tune.report({"epoch": 1})
            msg = "CUDA out of memory"
            raise MemoryError(msg)
        tune.report({"accuracy": float("nan"), "epoch": 1})

    search = make_search(Goal(metric="accuracy", mode="max", target=0.9))
    results = tune.Tuner(
        function_trainable(misbehave),
        param_space={"num_workers": 1, "batch_size": tune.choice([32, 64])},
        tune_config=tune.TuneConfig(
            search_alg=search, scheduler=CostAwareScheduler(), num_samples=4
        ),
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    ).fit()
    records = list(search.session.records.values())
    assert 0 < len(records) == len(results)
    causes = {
        record.allocation.batch_size: record.ended and record.ended.cause for record in records
    }
    assert set(causes.items()) <= {(32, EndCause.OUT_OF_MEMORY), (64, EndCause.FINISHED)}
    assert all(report.value is None for record in records for report in record.reports)
    assert "no plan" in str(search.plan())


@pytest.mark.usefixtures("shared_ray")
def test_what_a_function_reports_under_names_of_tune_spoils_nothing(tmp_path: Path) -> None:
    def odd(_: dict[str, Any]) -> None:
        for epoch in range(1, 5):
            time.sleep(0.2)
            own = {"training_iteration": 0, "time_this_iter_s": 1e6, "timestamp": 1}
            tune.report({"accuracy": 0.2 * epoch, **own})

    search = make_search(Goal(metric="accuracy", mode="max", target=0.75, planned_runs=1))
    tune.run(
        function_trainable(odd),
        config={"num_workers": 1, "batch_size": 32},
        search_alg=search,
        scheduler=CostAwareScheduler(),
        num_samples=1,
        storage_path=str(tmp_path),
        verbose=0,
    )
    (record,) = search.session.records.values()
    assert [report.epoch for report in record.reports] == [1.0, 2.0, 3.0, 4.0]
    assert record.ended is not None
    assert record.ended.cause is EndCause.REACHED
    assert record.reports[0].startup_seconds > 0
    assert all(0.2 <= report.training_seconds < 60 for report in record.reports)


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("shared_ray")
def test_a_collective_that_hangs_ends_its_trial_after_the_timeout_and_the_workers_are_free(
    tmp_path: Path,
) -> None:
    def loop(_: dict[str, Any]) -> None:
        import ray.train  # noqa: PLC0415 - the loop runs in another process
        import torch  # noqa: PLC0415 - as above

        ray.train.report({"accuracy": 0.1, "epoch": 1})
        if ray.train.get_context().get_world_rank() == 0:
            torch.distributed.barrier()
        time.sleep(600)  # the other worker never comes

    search = make_search(Goal(metric="accuracy", mode="max", target=0.5))
    tune.run(
        torch_trainable(loop, torch_config=TorchConfig(timeout_s=8)),
        config={"num_workers": 2, "batch_size": 64},
        search_alg=search,
        scheduler=CostAwareScheduler(),
        num_samples=1,
        storage_path=str(tmp_path),
        verbose=0,
        raise_on_failed_trial=False,
    )
    (record,) = search.session.records.values()
    assert [report.epoch for report in record.reports] == [1.0]
    assert record.ended is not None
    assert record.ended.cause is EndCause.FAILED
    assert "waiting 8000ms" in record.ended.reason
    assert record.ended.seconds < 200
    wait_for_two_workers()


@pytest.mark.usefixtures("shared_ray")
def test_mixed_sizes_with_groups_that_tune_does_not_see_all_get_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each trial takes a placement group of its own, and some are stopped and leave theirs."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    admission = importlib.import_module("admission")
    cloudpickle.register_pickle_by_value(admission)  # the workers don't have that folder
    figures = admission.run(trials=5, seed=1, cpus=2)
    assert figures["asked"] == figures["ended"] == 5
    assert {1, 2} == set(figures["sizes"])
    assert figures["most_promised"] == 2
    assert figures["groups_left"] == 0


@pytest.mark.usefixtures("shared_ray")
def test_workers_that_fit_on_no_node_are_refused_before_any_trial() -> None:
    search = CostAwareSearch(
        Goal(metric="accuracy", mode="max", target=0.9), resources_per_worker={"GPU": 1}
    )
    with pytest.raises(ValueError, match="must fit on a node"):
        search.set_search_properties(None, None, SPACE)
    assert Setup().resources_per_worker == {"CPU": 1.0}


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("shared_ray")
def test_a_killed_sweep_is_restored_without_doing_work_twice(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "benchmarks" / "kill_restore.py"),
            *("--trials", "4", "--moments", "2", "--json", str(figures)),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_ADDRESS": address()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 ended ones worked again, 0 lost" in done.stdout
