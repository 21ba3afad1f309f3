"""Finds the type of machine on which a job costs least, and how many workers of it.

Usage: python examples/cheapest_instance.py [--smoke] [--storage DIR]

Two types are emulated by nodes with custom resources of Ray: `large` computes twice as fast as
`small` and costs more than twice as much (prices.yaml). The type is one more choice of the search,
beside workers and batch. How many epochs a batch needs doesn't depend on who computes them, so that
no batch is trained on both only to find that out. Takes about two minutes, `--smoke` about half of
one.
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
from ray.cluster_utils import Cluster

from raycosttune import Dollars, Goal, NoPlan, read_price_sheet
from raycosttune.tune import CostAwareScheduler, CostAwareSearch, function_trainable

PRICES = Path(__file__).with_name("prices.yaml")
SPEEDS = {"large": 1.0, "small": 0.5}
WORKERS, BATCHES, SAMPLES = (1, 2, 4), (32, 64, 128), 512


def train(config: dict[str, Any]) -> None:
    """Fits a line by steps of gradient descent; the work of a sample is a pause."""
    workers, batch = config["num_workers"], config["batch_size"]
    pause = config["pause_seconds"] / SPEEDS[config["node_type"]]
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


def start_cluster() -> Cluster:
    """Starts a node for the sweep itself, and one of each type."""
    head = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for name in SPEEDS:
        cluster.add_node(
            num_cpus=1, resources={name: max(WORKERS)}, object_store_memory=100_000_000
        )
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    return cluster


def main() -> None:
    """Searches among both types, and prints the cheapest plan."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--smoke", action="store_true", help="a shorter job, under a minute")
    parser.add_argument("--storage", type=Path, default=Path("runs"), help="where results go")
    options = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cluster = start_cluster()
    search = CostAwareSearch(
        Goal(
            metric="explained",
            mode="max",
            target=0.99,
            deadline_seconds=300,
            planned_runs=2 if options.smoke else 20,
        ),
        cost=Dollars(read_price_sheet(PRICES)),  # of whichever type a run is on
        max_concurrent=1,
    )
    tune.run(
        function_trainable(
            train,
            resources_per_worker={"CPU": 0},
            resources_by_type={name: {name: 1} for name in SPEEDS},
        ),
        config={
            "num_workers": tune.choice(WORKERS),
            "batch_size": tune.choice(BATCHES),
            "node_type": tune.choice(list(SPEEDS)),
            "lr": 0.02,
            "pause_seconds": (0.05 if options.smoke else 2.0) / SAMPLES,
        },
        search_alg=search,
        scheduler=CostAwareScheduler(),
        num_samples=-1,
        storage_path=str(options.storage.resolve()),
        name=time.strftime("instances-%Y%m%d-%H%M%S"),
        raise_on_failed_trial=False,
        verbose=0,
    )
    plan = search.plan()
    print(search.explain())
    if not isinstance(plan, NoPlan):
        cell = plan.allocation
        print(
            f"cheapest: {cell.workers} workers on machines of type {cell.node_type}, "
            f"batch {cell.batch_size}"
        )
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
