"""Compares the digits sweep with training every choice of workers and batch.

Usage: python benchmarks/digits_brute_force.py --json FILE [--repeats 3] [--sweep FILE] [--smoke]

Every cell is trained to the target at one base rate, several times, through the trainable
that the sweep uses; then the sweep runs (or is read from an earlier file), and its choice is
judged by what the cells were measured to cost. The file is written after every run, and a
second call goes on where the first stopped. Takes about half an hour on two idle cores.
"""

import argparse
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ray import tune

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from digits import train_loop
from digits_sweep import BATCHES, RULE, WORKERS, counted, goal, start_ray, sweep
from digits_task import WIDTH

from raycosttune import Allocation, NoPlan, WorkerHours
from raycosttune.results.journal import read_journal
from raycosttune.results.rows import read_run_report
from raycosttune.tune import torch_trainable

COST = WorkerHours()
RESAMPLES = 2000
Row = dict[str, Any]
Cell = tuple[int, int]


def train(cell: Cell, base_rate: float, *, smoke: bool) -> Row:
    """Trains one cell to the target and returns what it took."""
    workers, batch_size = cell
    aim = goal(smoke=smoke)
    config = {
        "num_workers": workers,
        "batch_size": batch_size,
        **RULE.apply({"lr": base_rate}, batch_size),
        "width": 16 if smoke else WIDTH,
        "target": aim.target,
        "epochs": aim.max_epochs,
    }
    with tempfile.TemporaryDirectory() as storage:
        tune.run(
            torch_trainable(train_loop), config=config, storage_path=storage, name="cell", verbose=0
        )
        (journal,) = Path(storage, "cell").glob("raycosttune/trials/*.jsonl")
        rows = read_journal(journal)
    reports = [read_run_report(row, "accuracy") for row in rows if row["row"] == "report"]
    return {
        "workers": workers,
        "batch": batch_size,
        "epochs": reports[-1].epoch,
        "reached": aim.is_reached(reports[-1].value),
        "accuracy": reports[-1].value,
        "startup_seconds": sum(report.startup_seconds for report in reports),
        "training_seconds": sum(report.training_seconds for report in reports),
        "epoch_seconds": statistics.median(report.training_seconds for report in reports),
    }


def search_once(storage: Path, *, smoke: bool) -> Row:
    """Runs the sweep and returns its choice and what it spent."""
    search = sweep(COST, storage, smoke=smoke)
    plan = search.plan()
    trials = len(search.session.records)
    if isinstance(plan, NoPlan):
        return {"plan": None, "why": plan.reason, "spent": plan.spent, "trials": trials}
    return {
        "plan": {
            "workers": plan.allocation.workers,
            "batch": plan.allocation.batch_size,
            "epochs": plan.epochs,
            "predicted_cost": plan.predicted_cost.mid,
            "measured_cost": plan.measured_cost,
        },
        "why": str(plan),
        "spent": plan.spent,
        "trials": trials,
    }


def cost_of(run: Row, *, startup: bool) -> float:
    """Returns the worker-hours of a run, with its start-up or without."""
    seconds = run["training_seconds"] + (run["startup_seconds"] if startup else 0.0)
    return COST(Allocation(run["workers"], run["batch"]), seconds)


def grouped(runs: list[Row]) -> dict[Cell, list[Row]]:
    """Returns the runs of each cell."""
    cells: dict[Cell, list[Row]] = {}
    for run in runs:
        cells.setdefault((run["workers"], run["batch"]), []).append(run)
    return cells


def is_feasible(repeats: list[Row]) -> bool:
    """Tells whether most runs of a cell reached the target by the deadline."""
    limit = goal().deadline_seconds or float("inf")
    within = [
        run["reached"] and run["startup_seconds"] + run["training_seconds"] <= limit
        for run in repeats
    ]
    return within.count(True) * 2 > len(within)


def bootstrap(values: list[float]) -> tuple[float, float]:
    """Returns the 95 % interval of the median of a cell's costs."""
    rng = random.Random(0)
    medians = sorted(
        statistics.median(rng.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    return medians[RESAMPLES // 40], medians[-RESAMPLES // 40]


def compare(runs: list[Row], searched: Row) -> Row:
    """Judges the sweep's choice and spend by the measured cells, start-up apart and with it."""
    one_pass = sum(
        statistics.median(cost_of(run, startup=True) for run in repeats)
        for repeats in grouped(runs).values()
    )
    return {
        "training": judged(runs, searched["plan"], startup=False),
        "with_startup": judged(runs, searched["plan"], startup=True),
        "brute_force_pass": one_pass,
        "search_over_pass": searched["spent"] / one_pass,
    }


def judged(runs: list[Row], plan: Row | None, *, startup: bool) -> Row | None:
    """Compares the chosen cell with the cheapest feasible one, None where none is feasible."""
    costs = {
        cell: [cost_of(run, startup=startup) for run in repeats]
        for cell, repeats in grouped(runs).items()
        if is_feasible(repeats)
    }
    if not costs:
        return None
    medians = {cell: statistics.median(values) for cell, values in costs.items()}
    best = min(medians, key=medians.__getitem__)
    low, high = bootstrap(costs[best])
    chosen = medians.get((plan["workers"], plan["batch"])) if plan else None
    return {
        "cheapest": best,
        "cheapest_cost": medians[best],
        "cheapest_interval": [low, high],
        "second_over_cheapest": sorted(medians.values())[min(1, len(medians) - 1)] / medians[best],
        "dearest_over_cheapest": max(medians.values()) / medians[best],
        "median_over_cheapest": statistics.median(medians.values()) / medians[best],
        "feasible_cells": len(medians),
        "chosen_over_cheapest": None if chosen is None else chosen / medians[best],
        "is_good": chosen is not None and (chosen <= 1.1 * medians[best] or chosen <= high),
    }


def table(runs: list[Row]) -> Iterator[str]:
    """Yields a line for each cell, medians over its runs."""
    yield "workers  batch  reached  epochs  s/epoch  start s  training s  worker-hours  with start"
    for (workers, batch), repeats in sorted(grouped(runs).items()):
        keys = ("epochs", "epoch_seconds", "startup_seconds", "training_seconds")
        epochs, each, start, training = (
            statistics.median(run[key] for run in repeats) for key in keys
        )
        bare, whole = (
            statistics.median(cost_of(run, startup=startup) for run in repeats)
            for startup in (False, True)
        )
        reached = sum(run["reached"] for run in repeats)
        yield (
            f"{workers:7}  {batch:5}  {reached:3} / {len(repeats)}  {epochs:6.0f}  {each:7.2f}  "
            f"{start:7.1f}  {training:10.1f}  {bare:12.5f}  {whole:10.5f}"
        )


def arguments() -> argparse.Namespace:
    """Returns what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--json", type=Path, required=True, help="file of all results")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each cell")
    parser.add_argument("--base-rate", type=float, default=0.03, help="rate at batch 32")
    parser.add_argument("--sweep", type=Path, help="earlier file to take the sweep from")
    parser.add_argument("--smoke", action="store_true", help="a tiny network and few cells")
    parser.add_argument("--storage", type=Path, default=Path("runs"), help="where the sweep goes")
    return parser.parse_args()


def main() -> None:
    """Runs what the file lacks, and prints the comparison."""
    options = arguments()
    os.environ["PYTHONPATH"] = sys.path[0]  # Ray's workers import the training loop
    start_ray()
    settings = {"base_rate": options.base_rate, "smoke": options.smoke}
    results: Row = {"settings": settings, "runs": []}
    if options.json.exists():
        results = json.loads(options.json.read_text())
        if results["settings"] != settings:
            sys.exit(f"--json must name a file of the same settings, got {results['settings']}")

    def write() -> None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")

    cells = list(itertools.product(WORKERS, BATCHES[:1] if options.smoke else BATCHES))
    # Repeats outermost, so that a drift of the machine meets every cell alike.
    for number, cell in itertools.product(range(options.repeats), cells):
        if len(grouped(results["runs"]).get(cell, [])) <= number:
            results["runs"].append(train(cell, options.base_rate, smoke=options.smoke))
            write()
            print(*table(results["runs"][-1:]), sep="\n", flush=True)
    if options.sweep is not None:
        results["sweep"] = json.loads(options.sweep.read_text())["sweep"]
    elif "sweep" not in results:
        results["sweep"] = search_once(options.storage, smoke=options.smoke)
    results["comparison"] = compare(results["runs"], results["sweep"])
    write()
    print(*table(results["runs"]), sep="\n")
    print(f"{results['sweep']['why']} ({counted(results['sweep']['trials'], 'trial')})")
    print(json.dumps(results["comparison"], indent=1))


if __name__ == "__main__":
    main()
