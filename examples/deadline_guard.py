"""Trains under a deadline that one worker can't meet, with the deadline guard and without.

Usage: python examples/deadline_guard.py [--smoke] [--storage DIR]
Takes four minutes; `--smoke` trains faster, in a minute.

Two runs are made at once. Each starts on one worker, the cheapest guess. With the guard a run
sees its deadline at risk, is paused, and goes on from its checkpoint with two workers. Without, it
misses the deadline.

The compute is stood in for by a pause for each sample that the workers share, so that the example
shows the same on any machine. The network is really trained, and its checkpoint really read.
"""

import argparse
import logging
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import ray
import torch
from ray import tune
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

from raycosttune import Goal, NoPlan, WorkerHours
from raycosttune.core.held import parts
from raycosttune.tune import CostAwareScheduler, CostAwareSearch, function_trainable

SAMPLES, BATCH_SIZE = 960, 96
TARGET = 0.85  # reached in epoch 16


def train(config: dict[str, Any], images: torch.Tensor, labels: torch.Tensor) -> None:
    """Trains, reports each epoch with a checkpoint, and goes on from one."""
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    first = 1
    if checkpoint := tune.get_checkpoint():
        with checkpoint.as_directory() as folder:
            saved = torch.load(Path(folder, "state.pt"), weights_only=True)
        model.load_state_dict(saved["model"])
        first = saved["epoch"] + 1
    for epoch in range(first, 100):
        shuffled = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(epoch))
        for batch in shuffled.split(config["batch_size"]):
            time.sleep(config["pause"] * len(batch) / config["num_workers"])
            optimizer.zero_grad()
            cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
        hits = model(images[SAMPLES:]).argmax(1) == labels[SAMPLES:]
        metrics = {"epoch": epoch, "accuracy": hits.float().mean().item()}
        with tempfile.TemporaryDirectory() as folder:
            torch.save({"model": model.state_dict(), "epoch": epoch}, Path(folder, "state.pt"))
            tune.report(metrics, checkpoint=tune.Checkpoint.from_directory(folder))


def sweep(storage: Path, *, epoch_seconds: float, deadline: float, guard: bool) -> CostAwareSearch:
    """Trains one model by a deadline; the guard may change its workers."""
    goal = Goal(
        metric="accuracy", mode="max", target=TARGET, deadline_seconds=deadline, planned_runs=1
    )
    search = CostAwareSearch(goal, cost=WorkerHours(), resize=guard)
    tune.run(
        "deadline-guard",
        config={
            "num_workers": tune.choice([1, 2]),
            "batch_size": tune.choice([BATCH_SIZE]),
            "pause": epoch_seconds / SAMPLES,
        },
        search_alg=search,
        scheduler=CostAwareScheduler(),
        num_samples=1,
        storage_path=str(storage.resolve()),
        name=f"deadline-guard-{'on' if guard else 'off'}-{time.strftime('%Y%m%d-%H%M%S')}",
        verbose=0,
        raise_on_failed_trial=False,
    )
    return search


def show(guard: str, search: CostAwareSearch) -> None:
    """Prints what a run held, and how it ended."""
    (record,) = search.session.records.values()
    print(f"\nguard {guard}")
    for cell, seconds in parts(record, search.session.space):
        print(f"  {seconds:5.1f} s on {cell.workers} worker(s)")
    if record.resized:
        print(f"  moved: {record.resized.reason}")
    if record.ended:
        print(f"  ended in epoch {record.epoch:g}: {record.ended.reason}")
    print(f"  {search.plan()}", flush=True)


def register() -> None:
    """Tells Tune of the trainable, so that two threads may run it by its name."""
    digits = load_digits()
    order = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(digits.data / 16, dtype=torch.float32)[order]
    labels = torch.tensor(digits.target)[order]
    trainable = function_trainable(
        lambda config: train(config, images, labels),
        resources_per_worker={"CPU": 0.5},  # a pause needs no more
    )
    tune.register_trainable("deadline-guard", trainable)


def start_ray() -> None:
    """Starts a quiet Ray on this machine, or joins the one at `RAY_ADDRESS`."""
    os.environ.update(RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own: dict[str, Any] = {"address": "local", "num_cpus": 2, "include_dashboard": False}
    where = {} if "RAY_ADDRESS" in os.environ else own
    ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--smoke", action="store_true", help="shorter epochs, under a minute")
    parser.add_argument("--storage", type=Path, default=Path("runs"), help="where results go")
    return parser.parse_args(argv)


if __name__ == "__main__":
    options = arguments()
    start_ray()
    register()
    seconds, limit = (3.0, 48.0) if options.smoke else (14.0, 210.0)
    run = partial(sweep, options.storage, epoch_seconds=seconds, deadline=limit)
    with ThreadPoolExecutor() as pool:
        on, off = pool.map(lambda guard: run(guard=guard), (True, False))
    show("on", on)
    show("off", off)
    ends = ["missed" if isinstance(each.plan(), NoPlan) else "met" for each in (on, off)]
    print(f"\ndeadline of {limit:g} s: {ends[0]} with the guard, {ends[1]} without")
