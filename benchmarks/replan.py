"""Times planning a finished sweep anew under another cost, from its journal.

Usage: OMP_NUM_THREADS=1 python benchmarks/replan.py

Sweeps of 25 to 200 trials on 100 cells are written as journals: 12 reports a trial, epoch times
with 5 % noise. Each is read once (`read_sweep`), then planned under five metrics in turn. "plan"
is `read_sweep(...).plan(cost=...)` after the reading; the first one of a process, which imports
scikit-learn and fits nothing yet known, is given apart. Medians of five.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from raycosttune import (
    Allocation,
    Dollars,
    EnergyKWh,
    Goal,
    NodeHours,
    NodePrice,
    PriceSheet,
    WeightedSum,
    WorkerHours,
    read_sweep,
)
from raycosttune.core.cost import CostMetric
from raycosttune.core.observation import EndCause, Ended, Observation, Recipe, Report, TrialRecord
from raycosttune.core.space import Space
from raycosttune.results.header import header_row
from raycosttune.results.journal import Journal
from raycosttune.results.rows import asked_row, observation_row

SPACE = Space(tuple(range(1, 11)), tuple(2**k for k in range(5, 15)), divisible=False)
GOAL = Goal(target=0.9, metric="accuracy", mode="max", deadline_seconds=36_000)
SHEET = PriceSheet(
    (
        NodePrice(
            name="a", per_hour=3.0, spot_per_hour=1.0, interruptions_per_hour=0.1, workers=4,
            granularity_seconds=60, minimum_seconds=600,
        ),
    )
)  # fmt: skip
COSTS: tuple[tuple[str, CostMetric], ...] = (
    ("node-hours", NodeHours()),
    ("worker-hours", WorkerHours()),
    ("dollars, spot", Dollars(SHEET, market="spot", checkpoint_seconds=600)),
    ("dollars, held", Dollars(SHEET, billing="held")),
    ("a sum", WeightedSum(((1.0, Dollars(SHEET)), (0.3, EnergyKWh(watts_per_node=900))), "USD")),
)
REPORTS, REPEATS = 12, 5


def seconds_of(cell: Allocation) -> float:
    """Returns the seconds of an epoch."""
    return 600 * (1 / cell.workers + 32 / cell.batch_size + 0.05)


def trial(k: int, rng: np.random.Generator) -> TrialRecord:
    """Returns a trial in a drawn cell with a recipe of its own."""
    cell = SPACE.cells[int(rng.integers(len(SPACE.cells)))]
    needed = 6 * (1 + cell.batch_size / 4096)
    reports = [
        Report(
            float(epoch),
            min(0.9 * epoch / needed, 0.99),
            seconds_of(cell) * float(rng.lognormal(0, 0.05)) + (15.0 if epoch == 1 else 0.0),
            15.0 if epoch == 1 else 0.0,
        )
        for epoch in range(1, REPORTS + 1)
    ]
    recipe: Recipe = {"lr": float(f"{10 ** rng.uniform(-3, -1):.3g}")}
    return TrialRecord(f"t{k}", cell, recipe, k, reports, Ended(EndCause.STOPPED))


def write(folder: Path, trials: int) -> None:
    """Writes the journal of a sweep."""
    rng, journal = np.random.default_rng(trials), Journal(folder / "raycosttune" / "journal.jsonl")
    rows = [header_row(GOAL, "node-hours", SPACE)]
    for k in range(trials):
        record = trial(k, rng)
        told: list[Observation] = [*record.reports, Ended(EndCause.STOPPED)]
        rows += [asked_row(record), *(observation_row(record.trial_id, o) for o in told)]
    journal.append(*rows)


def timed(what: Callable[[], object]) -> float:
    """Returns the milliseconds that a call takes."""
    since = time.perf_counter()
    what()
    return 1000 * (time.perf_counter() - since)


def main() -> None:
    """Times all, and prints a table."""
    print("milliseconds")
    print("| trials | read | " + " | ".join(name for name, _ in COSTS) + " |")
    print("|---|---|" + "---|" * len(COSTS))
    first = None
    for trials in (25, 50, 100, 200):
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), trials)
            read = statistics.median(timed(partial(read_sweep, name)) for _ in range(REPEATS))
            sweep = read_sweep(name)
        if first is None:
            first = timed(sweep.plan)
        took = [
            statistics.median(timed(partial(sweep.plan, cost=cost)) for _ in range(REPEATS))
            for _, cost in COSTS
        ]
        print(f"| {trials} | {read:.0f} | " + " | ".join(f"{ms:.0f}" for ms in took) + " |")
    print(f"first plan of the process: {first:.0f} ms")


if __name__ == "__main__":
    main()
