"""Finds the workers and the batch that train a digits network to its target most cheaply.

Usage: python examples/digits_sweep.py [--smoke] [--storage DIR]

Takes six to ten minutes on two cores; `--smoke` trains a tiny network in under a minute.
"""

import argparse
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
from digits import train_loop
from digits_task import WIDTH
from ray import tune
from ray.tune.experiment import Trial

from raycosttune import CostMetric, Goal, LearningRate, NodeHours, NoPlan, WorkerHours
from raycosttune.core.observation import TrialRecord
from raycosttune.tune import CostAwareScheduler, CostAwareSearch, torch_trainable

RULE = LearningRate(key="lr", rule="sqrt", reference_batch=32)
WORKERS = (1, 2)
BATCHES = (32, 64, 128, 256, 512)


def goal(*, smoke: bool = False) -> Goal:
    """Returns what the sweep is for; a tiny network has an easier one."""
    return Goal(
        metric="accuracy",
        mode="max",
        target=0.4 if smoke else 0.97,
        deadline_seconds=600 if smoke else 180,
        max_epochs=40,
        planned_runs=1 if smoke else 100,
    )


def sweep(cost: CostMetric, storage: Path, *, smoke: bool = False) -> CostAwareSearch:
    """Runs a sweep, prints each trial as it ends, and returns the search that led it."""
    space = {
        "num_workers": tune.choice(WORKERS),
        "batch_size": tune.choice(BATCHES),
        "lr": tune.loguniform(5e-3, 1e-1),  # at batch 32; RULE scales it
    }
    search = CostAwareSearch(
        goal(smoke=smoke),
        cost=cost,
        space=space,
        learning_rate=RULE,
        max_concurrent=1,  # on two cores, runs side by side would slow each other down
    )
    print(f"before the first trial: {search.estimate()}", flush=True)
    tune.run(
        torch_trainable(train_loop),
        config={"width": 16 if smoke else WIDTH},
        search_alg=search,
        scheduler=CostAwareScheduler(),
        num_samples=1 if smoke else -1,  # -1: until no further trial pays
        storage_path=str(storage.resolve()),
        name=f"{cost.unit}-{time.strftime('%Y%m%d-%H%M%S')}",
        callbacks=[TrialLines(search)],
        raise_on_failed_trial=False,
        verbose=0,
    )
    return search


class TrialLines(tune.Callback):
    """Prints a line for each trial that ends."""

    def __init__(self, search: CostAwareSearch) -> None:
        self._search = search

    def on_trial_complete(
        self, iteration: int, trials: list[Trial], trial: Trial, **info: object
    ) -> None:
        """See ray.tune.Callback.on_trial_complete."""
        del iteration, trials, info
        record = self._search.sweep.record(trial.trial_id)
        if record is not None:
            print(self._line(record), flush=True)

    on_trial_error = on_trial_complete

    def _line(self, record: TrialRecord) -> str:
        cell, cost = record.allocation, self._search.session.cost
        values = [report.value for report in record.run if report.value is not None]
        training = sum(report.training_seconds for report in record.run)
        nodes = NodeHours()
        why = "it ended" if record.ended is None else record.ended.reason or record.ended.cause
        return (
            f"{counted(cell.workers, 'worker')}, batch {cell.batch_size}, "
            f"base rate {record.recipe['lr']:.3g}: {counted(int(record.epoch), 'epoch')}, "
            f"accuracy {max(values, default=0):.3f}, {record.seconds:.1f} s "
            f"({training:.1f} s of training), "
            f"{cost(cell, record.seconds):.4f} {cost.unit}, "
            f"{nodes(cell, record.seconds):.4f} {nodes.unit}; {why}"
        )


def counted(number: int, noun: str) -> str:
    """Returns the number with its noun: "1 worker", "2 workers"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def start_ray() -> None:
    """Starts a quiet Ray with room for the workers of one run, or joins that at `RAY_ADDRESS`."""
    os.environ.update(
        RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
        RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS="0",
        # Train looks for reports this often: the default of 2 s is longer than an epoch here.
        RAY_TRAIN_HEALTH_CHECK_INTERVAL_S="0.1",
        TUNE_DISABLE_AUTO_CALLBACK_LOGGERS="1",
    )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own: dict[str, Any] = {"address": "local", "num_cpus": max(WORKERS), "include_dashboard": False}
    where = {} if "RAY_ADDRESS" in os.environ else own
    ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)


def report(search: CostAwareSearch) -> None:
    """Prints the plan: what to run, what it costs, and what could still be saved."""
    plan = search.plan()
    if isinstance(plan, NoPlan):
        print(plan)
        return
    measured = "not run on these workers itself"
    if plan.measured_seconds is not None:
        measured = f"{plan.measured_seconds:.1f} s, {plan.measured_cost:.4f} {plan.unit}"
    seconds = plan.predicted_seconds.mid
    nodes = NodeHours()
    print(
        f"plan: {plan}\n"
        f"  config       {plan.config}\n"
        f"  predicted    {seconds:.1f} s, {plan.predicted_cost.mid:.4f} {plan.unit}, "
        f"{nodes(plan.allocation, seconds):.4f} {nodes.unit}\n"
        f"  measured     {measured}\n"
        f"  certificate  {plan.certificate}\n"
        f"  checkpoint   {plan.checkpoint}\n"
        f"  spent        {plan.spent:.4f} {plan.unit} over "
        f"{counted(len(search.session.records), 'trial')}",
        flush=True,
    )


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--smoke", action="store_true", help="a tiny network, under a minute")
    parser.add_argument("--storage", type=Path, default=Path("runs"), help="where results go")
    return parser.parse_args(argv)


if __name__ == "__main__":
    options = arguments()
    start_ray()
    report(sweep(WorkerHours(), options.storage, smoke=options.smoke))
