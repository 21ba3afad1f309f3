"""Compares a profile of the digits example with full runs of the same cells.

Usage: python benchmarks/profile_digits.py --json FILE [--repeats 1] [--epochs 5] [--rest 0]

One start of two workers times some steps in each cell; then each cell trains some epochs in a
start of its own. Both are timed by hooks of their own. Takes about five minutes on two idle
cores. On busy ones, two workers of a full run wait for cores as much as for one another: there
--rest lets the network sleep for each sample, as if an accelerator computed it.
"""

import argparse
import itertools
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from digits import train_loop
from digits_sweep import WORKERS, start_ray
from digits_task import TRAINING_SAMPLES, WIDTH
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

from raycosttune.train.profile import profile_loop, read_profile

BATCHES = (64, 128, 256, 512)
Row = dict[str, Any]
Cell = tuple[int, int]


def loop(config: Row) -> None:
    """Trains as the example does, on a network that rests after each batch if so configured."""
    from torch import is_grad_enabled, nn
    from torch.nn.modules.module import register_module_forward_hook

    def rest(module: nn.Module, args: Any, _: object) -> None:
        if isinstance(module, nn.Sequential) and is_grad_enabled():
            time.sleep(config["rest"] * len(args[0]))

    hook = register_module_forward_hook(rest)
    try:
        train_loop(config)
    finally:
        hook.remove()


def timed_loop(config: Row) -> list[float]:
    """Trains as ever; returns when each step ended, in seconds on the worker's own clock."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    ends = [time.perf_counter()]
    register_optimizer_step_post_hook(lambda *_: ends.append(time.perf_counter()))
    loop(config)
    return ends


def fit(trained: Callable[[Row], Any], workers: int, config: Row) -> tuple[Any, float]:
    """Returns the result of a run of Ray Train, and the seconds that it took."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as storage:
        result = TorchTrainer(
            trained,
            train_loop_config=config,
            scaling_config=ScalingConfig(num_workers=workers),
            run_config=RunConfig(name="run", storage_path=storage),
        ).fit()
    return result, time.perf_counter() - began


def full_run(cell: Cell, config: Row, epochs: int) -> Row:
    """Trains a cell for some epochs; the first one is its warm-up."""
    workers, batch = cell
    result, seconds = fit(
        timed_loop, workers, config | {"num_workers": workers, "batch_size": batch}
    )
    per_epoch = math.ceil(TRAINING_SAMPLES / batch)
    ends = result.return_value
    within = [
        later - sooner
        for number, (sooner, later) in enumerate(itertools.pairwise(ends))
        if number >= per_epoch and number % per_epoch > 0  # the first of an epoch evaluates
    ]
    whole = [ends[(epoch + 1) * per_epoch] - ends[epoch * per_epoch] for epoch in range(1, epochs)]
    return {
        "workers": workers,
        "batch": batch,
        "step_seconds": statistics.median(within),
        "epoch_seconds": statistics.median(whole),
        "run_seconds": seconds,
        "training_seconds": ends[-1] - ends[0],
    }


def profile(cells: list[Cell], config: Row) -> Row:
    """Profiles all cells within one start."""
    workers = max(cells)[0]
    profiled = profile_loop(loop, cells, samples=TRAINING_SAMPLES)
    result, seconds = fit(profiled, workers, config)
    return {**read_profile(result), "run_seconds": seconds}


def table(profiled: Row, runs: list[Row]) -> Iterator[str]:
    """Yields a line a cell, medians over the repeats, and what both ways have spent."""
    yield "workers  batch  profile ms  run ms  ratio  steps s  whole s  run's epoch s  took s"
    for cell in profiled["cells"]:
        key = (cell["workers"], cell["batch_size"])
        same = [run for run in runs if (run["workers"], run["batch"]) == key]
        step = statistics.median(run["step_seconds"] for run in same)
        epoch = statistics.median(run["epoch_seconds"] for run in same)
        whole = cell["whole_epoch_seconds"]
        yield (
            f"{key[0]:7}  {key[1]:5}  {1000 * cell['step_seconds']:10.1f}  {1000 * step:6.1f}  "
            f"{cell['step_seconds'] / step:5.2f}  {cell['epoch_seconds']:7.2f}  "
            f"{'none' if whole is None else format(whole, '.2f'):>7}  {epoch:13.2f}  "
            f"{cell['seconds']:6.2f}"
        )
    spent = profiled["workers"] * profiled["run_seconds"]
    repeats = len(runs) / len(profiled["cells"])
    full = sum(run["workers"] * run["run_seconds"] for run in runs) / repeats
    training = sum(run["workers"] * run["training_seconds"] for run in runs) / repeats
    yield (
        f"profile: {spent:.0f} worker-seconds ({profiled['startup_seconds']:.1f} s of its "
        f"{profiled['run_seconds']:.1f} s start-up); full runs: {full:.0f}, {training:.0f} of "
        f"them training"
    )


def main() -> None:
    """Profiles, runs, and prints the comparison."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", type=Path, required=True, help="file of all results")
    parser.add_argument("--repeats", type=int, default=1, help="full runs of each cell")
    parser.add_argument("--epochs", type=int, default=5, help="epochs of a full run")
    parser.add_argument("--rest", type=float, default=0.0, help="seconds slept a sample")
    parser.add_argument("--smoke", action="store_true", help="a tiny network and few cells")
    options = parser.parse_args()
    os.environ["PYTHONPATH"] = str(
        Path(__file__).parents[1] / "examples"
    )  # Ray's workers import the training loop
    start_ray()
    cells = list(itertools.product(WORKERS, BATCHES[2:] if options.smoke else BATCHES))
    is_small = options.smoke or options.rest > 0
    config = {"lr": 0.03, "width": 16 if is_small else WIDTH, "rest": options.rest}
    results: Row = {"profiles": [], "runs": []}
    for _ in range(options.repeats):
        results["profiles"].append(profile(cells, config))
        for cell in cells:
            run = full_run(cell, config | {"epochs": options.epochs}, options.epochs)
            results["runs"].append(run)
        options.json.write_text(json.dumps(results, indent=1) + "\n")
        print(*table(results["profiles"][-1], results["runs"][-len(cells) :]), sep="\n", flush=True)


if __name__ == "__main__":
    main()
