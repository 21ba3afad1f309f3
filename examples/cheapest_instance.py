"""Finds the type of machine on which a job costs least, and how many workers of it.

Usage: python examples/cheapest_instance.py [--smoke] [--storage DIR]

Two types are emulated by custom resources of Ray: `large` computes twice as fast as `small` and
costs more than twice as much (prices.yaml). The job is searched on `large`. How many epochs a batch
needs doesn't depend on who computes them: on `small` the search begins with them, and has only
times to find out, and tries nothing that can't be cheaper than the plan on `large`. Takes about
two minutes, `--smoke` about half of one.
"""

import argparse
import logging
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray import tune

from raycosttune import Dollars, Goal, NoPlan, read_price_sheet, read_sweep
from raycosttune.tune import CostAwareScheduler, CostAwareSearch, function_trainable
from raycosttune.tune.plan import TunePlan

PRICES = Path(__file__).with_name("prices.yaml")
TYPES = {"large": 1.0, "small": 0.5}  # and their speeds
WORKERS, BATCHES, SAMPLES = (1, 2, 4), (32, 64, 128), 512


def train(config: dict[str, Any]) -> None:
    """Fits a line by steps of gradient descent; the work of a sample is a pause."""
    workers, batch, pause = config["num_workers"], config["batch_size"], config["pause_seconds"]
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(SAMPLES, 8))
    truth = rng.normal(size=8)
    labels, weights = inputs @ truth + 0.1 * rng.normal(size=SAMPLES), np.zeros(8)
    for epoch in range(1, 200):
        time.sleep(pause * SAMPLES / workers + 2 * pause * SAMPLES / batch)
        for part in np.array_split(rng.permutation(SAMPLES), math.ceil(SAMPLES / batch)):
            error = inputs[part] @ weights - labels[part]
            weights -= config["lr"] * inputs[part].T @ error / len(part)
        left = float(np.mean((inputs @ weights - labels) ** 2) / np.mean(labels**2))
        tune.report({"epoch": epoch, "explained": 1 - left})


def search_on(
    node_type: str, options: argparse.Namespace, known: Path | None, rival_cost: float | None
) -> CostAwareSearch:
    """Searches the job on one type of machine.

    Args:
        node_type: The type.
        options: The command line.
        known: Folder of a sweep on another type, whose epochs count here.
        rival_cost: What a run costs by the cheapest plan so far.
    """
    seconds = 0.05 if options.smoke else 2.0
    search = CostAwareSearch(
        Goal(
            metric="explained",
            mode="max",
            target=0.99,
            deadline_seconds=300,
            planned_runs=2 if options.smoke else 20,
            rival_cost=rival_cost,
        ),
        cost=Dollars(read_price_sheet(PRICES), node_type),
        known=None if known is None else read_sweep(known).on_other_machines(),
        max_concurrent=1,
    )
    tune.run(
        function_trainable(train, resources_per_worker={"CPU": 0, node_type: 1}),
        config={
            "num_workers": tune.choice(WORKERS),
            "batch_size": tune.choice(BATCHES),
            "lr": 0.02,
            "pause_seconds": seconds / SAMPLES / TYPES[node_type],
        },
        search_alg=search,
        scheduler=CostAwareScheduler(),
        num_samples=-1,
        storage_path=str(options.storage.resolve()),
        name=node_type,
        raise_on_failed_trial=False,
        verbose=0,
    )
    return search


def main() -> None:
    """Searches on each type in turn, and prints the cheapest plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--smoke", action="store_true", help="a shorter job, under a minute")
    parser.add_argument("--storage", type=Path, default=Path("runs"), help="where results go")
    options = parser.parse_args()
    options.storage /= time.strftime("instances-%Y%m%d-%H%M%S")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        address="local",
        num_cpus=4,
        resources=dict.fromkeys(TYPES, max(WORKERS)),
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    plans: dict[str, TunePlan] = {}
    known: Path | None = None
    for node_type in TYPES:
        cheapest = min((plan.predicted_cost.mid for plan in plans.values()), default=None)
        search = search_on(node_type, options, known, cheapest)
        plan, trials = search.plan(), search.session.records.values()
        epochs = sum(record.epoch for record in trials)
        print(f"{node_type}: {plan} {len(trials)} trials, {epochs:g} epochs in all.", flush=True)
        if not isinstance(plan, NoPlan):
            plans[node_type] = plan
        known = known or options.storage / node_type
    if plans:
        best = min(plans, key=lambda name: plans[name].predicted_cost.mid)
        cell = plans[best].allocation
        print(
            f"cheapest: {cell.workers} workers on machines of type {best}, batch {cell.batch_size}"
        )


if __name__ == "__main__":
    main()
