"""Trains on three workers of which one is slow, with equal shares of the batch and with balanced.

Usage: python examples/straggler.py [--smoke] [--storage DIR]
Takes a minute and a half on two cores; `--smoke` trains two workers on fewer
samples.

The compute of a worker is stood in for by a pause for each sample, so that the example shows the
same on any machine: 2 ms on two workers, 8 ms on the third. The network is really trained.
"""

import argparse
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray
import ray.train
import torch
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from raycosttune.train import (
    RebalanceCallback,
    SampleMean,
    prepare_data_loader,
    prepare_model,
    report,
    resume,
)

SECONDS_A_SAMPLE = (0.002, 0.002, 0.008)
BATCH_SIZE = 96


def train_loop(config: dict[str, Any]) -> None:
    """Trains on one worker; nothing in it knows whether shares are balanced."""
    pause = config["seconds_a_sample"][ray.train.get_context().get_world_rank()]
    loader = prepare_data_loader(config["dataset"], batch_size=BATCH_SIZE)
    layers = (torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    model = prepare_model(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loss_mean = SampleMean()
    for epoch in range(resume(model, optimizer, loader=loader), config["epochs"]):
        began = time.perf_counter()
        for inputs, target in loader:
            time.sleep(pause * len(inputs))
            loss = cross_entropy(model(inputs), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_mean.add(loss)
        seconds = time.perf_counter() - began
        metrics = {"epoch": epoch + 1, "loss": loss_mean.read(), "seconds": seconds}
        report(metrics, model, optimizer)


def load(samples: int) -> TensorDataset:
    """Returns the first images of digits, and what they show."""
    digits = load_digits()
    images = torch.tensor(digits.data[:samples] / 16, dtype=torch.float32)
    return TensorDataset(images, torch.tensor(digits.target[:samples]))


def train(
    callbacks: Sequence[Any], storage: Path, pauses: Sequence[float], *, smoke: bool
) -> list[dict[str, Any]]:
    """Returns the reports of a run; only its callbacks decide whether shares are balanced."""
    result = TorchTrainer(
        train_loop,
        train_loop_config={
            "seconds_a_sample": pauses,
            "dataset": load(480 if smoke else 1440),
            "epochs": 4 if smoke else 6,
        },
        scaling_config=ScalingConfig(num_workers=len(pauses), resources_per_worker={"CPU": 0.5}),
        run_config=RunConfig(storage_path=str(storage.resolve()), callbacks=[*callbacks]),
    ).fit()
    frame = result.metrics_dataframe
    reports: list[dict[str, Any]] = [] if frame is None else frame.to_dict("records")
    return reports


def show(name: str, reports: list[dict[str, Any]], workers: int) -> None:
    """Prints what each worker computed of each batch, and how long it waited."""
    print(f"\nrebalancing {name}")
    print("epoch  seconds  loss   shares of the workers, one # for two samples  idle seconds")
    for row in reports:
        shares = row.get("raycosttune/shares") or [BATCH_SIZE // workers] * workers
        bars = "|".join("#" * round(share / 2) for share in shares)
        idle = " ".join(f"{seconds:.2f}" for seconds in row.get("raycosttune/idle_seconds") or [])
        print(
            f"{row['epoch']:>5}  {row['seconds']:>7.2f}  {row['loss']:.3f}  {bars:<46}  "
            f"{idle or 'not measured'}",
            flush=True,
        )


def start_ray() -> None:
    """Starts a quiet Ray on this machine, or joins the one at `RAY_ADDRESS`."""
    os.environ.update(
        RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
        RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS="0",
        RAY_TRAIN_HEALTH_CHECK_INTERVAL_S="0.1",
    )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    own: dict[str, Any] = {"address": "local", "num_cpus": 2, "include_dashboard": False}
    where = {} if "RAY_ADDRESS" in os.environ else own
    ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--smoke", action="store_true", help="fewer samples, under a minute")
    parser.add_argument("--storage", type=Path, default=Path("runs"), help="where results go")
    return parser.parse_args(argv)


if __name__ == "__main__":
    options = arguments()
    start_ray()
    pauses = SECONDS_A_SAMPLE[1 if options.smoke else 0 :]
    off = train([], options.storage, pauses, smoke=options.smoke)
    show("off", off, len(pauses))
    on = train([RebalanceCallback()], options.storage, pauses, smoke=options.smoke)
    show("on", on, len(pauses))
    ratio = on[-1]["seconds"] / off[-1]["seconds"]
    print(f"\nlast epoch, on over off: {ratio:.2f}")
