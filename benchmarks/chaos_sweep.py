"""Leads the sweep of a round of chaos; started again, it goes on where it was killed."""

import argparse
import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import ray
from killed_sweep import note, run_sweep, train_slowly
from ray import tune

from raycosttune.core.goal import Goal
from raycosttune.tune import function_trainable, torch_trainable


def main() -> None:
    """Reads where the sweep lies and where its cluster is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("address")
    parser.add_argument("--train", action="store_true", help="run Ray Train, not a function")
    arguments = parser.parse_args()
    drive(arguments.folder, arguments.address, is_train=arguments.train)


def drive(folder: Path, address: str, *, is_train: bool) -> None:
    """Runs the sweep in this process: from its start, or from where it was killed."""
    os.environ["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = "10"
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    goal = Goal(metric="loss", mode="min", target=0.2, planned_runs=3000)
    if is_train:
        space = {"num_workers": 2, "batch_size": tune.choice([32, 64])}
        run_sweep(folder, _torch_trainable(folder), goal, space, num_samples=2)
        return

    def train(config: dict[str, Any]) -> None:
        speed, log = 16 / config["batch_size"], folder / "work.log"
        train_slowly(log, config, 40, 0.1 + 0.2 * speed, lambda epoch: 1 / (1 + epoch * speed))

    batches = tune.choice([8, 16, 32, 64, 128])
    space = {"num_workers": tune.choice([1, 2]), "batch_size": batches}
    run_sweep(folder, function_trainable(train), goal, space, num_samples=-1)


def _torch_trainable(folder: Path) -> Any:
    def loop(config: dict[str, Any]) -> None:
        import ray.train

        context, checkpoint = ray.train.get_context(), ray.train.get_checkpoint()
        done, is_first = 0, context.get_world_rank() == 0
        if checkpoint:
            with checkpoint.as_directory() as saved:
                done = int(Path(saved, "epoch").read_text())
        if is_first:
            note(folder / "work.log", f"start {context.get_experiment_name()}")
        for epoch in range(done + 1, 31):
            time.sleep(0.2)
            with tempfile.TemporaryDirectory() as fresh:
                Path(fresh, "epoch").write_text(str(epoch))
                last = ray.train.Checkpoint.from_directory(fresh) if is_first else None
                loss = 1 / (1 + epoch * 16 / config["batch_size"])
                ray.train.report({"loss": loss, "epoch": epoch}, checkpoint=last)

    return torch_trainable(loop, failure_config=ray.train.FailureConfig(max_failures=3))


if __name__ == "__main__":
    main()
