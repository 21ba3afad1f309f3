"""Replays the search for the cheapest type of machine among three.

Usage: OMP_NUM_THREADS=1 python benchmarks/node_types.py --traces DIR [--seeds N]

A cross-source combination: step times on K80, P100 and V100 are Gavel's, learning curves are
Pollux's, on other machines. A batch of Gavel's has the curve of the nearest batch of Pollux's
(for ResNet-18 on CIFAR-10 the same, for ResNet-50 on ImageNet 200 for 256 and so on). Prices are
made up, near what such machines cost by the hour, one worker each, billed by the second.

One type is searched first, as by `CostAwareSearch(profile=True)`; then each other one by a
session that knows the epochs of the first (`read_sweep(...).on_other_machines()`) and what the
cheapest plan before it costs (`Goal(rival_cost=...)`). The cheapest of the three plans is
chosen. 100 planned runs, times with 5 % noise, every order in which a type comes first, without
a deadline and with one of twice the fastest run of all types.

- bill: dollars of the chosen (type, workers, batch), by the truth, over those of the cheapest
  over all types that meets the deadline
- first: dollars that the first search spent; others: what the two others spent, and the part of
  it that was profiles, both over the first's
"""

import argparse
import csv
import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from raycosttune import Dollars, Goal, NodePrice, Plan, PriceSheet
from raycosttune.core.abilities import Abilities
from raycosttune.core.measured import measured_space
from raycosttune.core.prior import Prior
from raycosttune.core.session import Session
from raycosttune.simulate import Noise, TraceWorkload, Truth, simulate
from raycosttune.simulate.oracle import seconds_to_target
from raycosttune.simulate.outcome import Outcome
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.workload import Curve

JOBS = {
    "resnet18-cifar10": ("pollux-cifar10", 0.93),
    "resnet50-imagenet": ("pollux-imagenet", 0.74),
}
SHEET = PriceSheet(
    tuple(
        NodePrice(name=name, per_hour=price, workers=1)
        for name, price in (("k80", 0.90), ("p100", 1.60), ("v100", 3.06))
    )
)
TYPES = tuple(node.name for node in SHEET.nodes)
FACTORS, STARTUP, PLANNED_RUNS = (None, 2.0), 30.0, 100


@dataclass(frozen=True)
class Result:
    """Is what a search over the types came to; see the head of this file."""

    job: str
    factor: float | None
    first: str
    chosen: str
    best: str
    bill: float
    spent: float
    others: float
    profiles: float


@cache
def curves(traces: Path, source: str) -> dict[int, Curve]:
    """Returns Pollux's curves by batch."""
    read = TraceWorkload.read(traces, source, device="t4", workers_per_node=4)
    return dict(read.curves)


@cache
def workload(traces: Path, job: str, node_type: str) -> TableWorkload:
    """Returns a job on a type of machine."""
    source, _ = JOBS[job]
    by_batch = curves(traces, source)
    with (traces / f"gavel-{job}.times.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["device"] == f"gavel:{node_type}"]
    times: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for row in rows:
        batch = int(row["batch_size"])
        if min(by_batch) / 1.5 <= batch <= max(by_batch) * 1.5:
            pair = int(row["workers"]), batch
            times.setdefault(pair, []).append(
                (float(row["epoch_seconds"]), float(row["step_seconds"]))
            )
    space = measured_space(set(times), 1)
    medians = {
        cell: [statistics.median(told) for told in zip(*times[cell.workers, cell.batch_size])]  # noqa: B905 - pairs
        for cell in space.cells
    }
    nearest = {b: min(by_batch, key=lambda own: abs(math.log(own / b))) for b in space.batches}
    return TableWorkload(
        name=f"{job} on {node_type}",
        space=space,
        epochs={cell: epoch for cell, (epoch, _) in medians.items()},
        steps={cell: step for cell, (_, step) in medians.items()},
        curves={batch: by_batch[own] for batch, own in nearest.items()},
        startup=STARTUP,
    )


def searched(
    job: TableWorkload, goal: Goal, cost: Dollars, prior: Prior | None, seed: int
) -> tuple[Session, Outcome]:
    """Runs a search on one type."""
    sessions: list[Session] = []
    able = Abilities(profile=True, resize=True)

    def start(clock):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - simulate types it
        args = job.space, goal
        sessions.append(
            Session(*args, cost=cost, max_concurrent=1, abilities=able, prior=prior, clock=clock)
        )
        return sessions[0]

    limit, noise = goal.deadline_seconds, Noise(time_sd=0.05)
    outcome = simulate(start, job, cost=cost, deadline_seconds=limit, noise=noise, seed=seed)
    return sessions[0], outcome


def results(traces: Path, seeds: int) -> Iterator[Result]:
    """Yields what each search over the types came to."""
    for job, (_, target) in JOBS.items():
        aim = Goal(metric="metric", mode="max", target=target, planned_runs=PLANNED_RUNS)
        jobs = {name: workload(traces, job, name) for name in TYPES}
        fastest = min(min(seconds_to_target(table, aim).values()) for table in jobs.values())
        for factor in FACTORS:
            goal = replace(aim, deadline_seconds=factor and factor * fastest)
            truths = {}
            for name, table in jobs.items():
                if min(seconds_to_target(table, aim).values()) <= (factor or math.inf) * fastest:
                    truths[name] = Truth(table, goal, Dollars(SHEET, name))
            best = min(truths, key=lambda name: truths[name].oracle_cost)
            for first in TYPES:
                for seed in range(seeds):
                    yield one(jobs, truths, goal, best, first, seed, job, factor)


def one(
    jobs: dict[str, TableWorkload],
    truths: dict[str, Truth],
    goal: Goal,
    best: str,
    first: str,
    seed: int,
    job: str,
    factor: float | None,
) -> Result:
    """Searches one type, then the others with its epochs, and judges the cheapest plan."""
    plans: dict[str, Plan] = {}
    spent: dict[str, float] = {}
    prior, profiles = None, 0.0
    for name in (first, *(other for other in TYPES if other != first)):
        cost = Dollars(SHEET, name)
        rival = min((p.predicted_cost.mid for p in plans.values()), default=None)
        aim = replace(goal, rival_cost=rival)
        session, outcome = searched(jobs[name], aim, cost, prior, seed)
        plan, spent[name] = session.plan(), session.spent
        if isinstance(plan, Plan):
            plans[name] = plan
        if prior is None:
            prior = Prior(tuple(session.records.values()), is_elsewhere=True)
        else:
            profiles += sum(
                cost(trial.allocation, trial.seconds)
                for trial in outcome.trials
                if trial.is_profile
            )
    chosen = min(plans, key=lambda name: plans[name].predicted_cost.mid, default="")
    paid = math.inf
    if chosen in truths:
        cell, truth = plans[chosen].allocation, truths[chosen]
        limit = goal.deadline_seconds or math.inf
        if truth.seconds[cell] <= limit * 1.05:  # times have 5 % noise
            paid = truth.costs[cell]
    others = sum(spent.values()) - spent[first]
    return Result(
        job=job,
        factor=factor,
        first=first,
        chosen=chosen,
        best=best,
        bill=paid / truths[best].oracle_cost,
        spent=spent[first],
        others=others / spent[first],
        profiles=profiles / spent[first],
    )


def main() -> None:
    """Replays all, and prints a table of medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--traces", type=Path, required=True, help="folder of the measured traces")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if not options.traces.is_dir():
        parser.error(f"the folder of traces must exist, got {options.traces}")
    found = list(results(options.traces, options.seeds))
    print("| job | deadline | first type | cheapest | bill | first, USD | others | profiles |")
    print("|---|---|---|---|---|---|---|---|")
    for job in JOBS:
        for factor in FACTORS:
            for first in TYPES:
                some = [r for r in found if (r.job, r.factor, r.first) == (job, factor, first)]
                bill, spent, others, profiles = (
                    statistics.median(getattr(r, key) for r in some)
                    for key in ("bill", "spent", "others", "profiles")
                )
                kept = sum(r.chosen == r.best for r in some)
                print(
                    f"| {job} | {'none' if factor is None else f'{factor:g} x'} | {first} | "
                    f"{some[0].best}, chosen {kept} of {len(some)} | {bill:.3f} | {spent:.3g} | "
                    f"{others:.3f} | {profiles:.3f} |"
                )
    print(f"median bill of all: {statistics.median(r.bill for r in found):.3f}")
    print(f"worst: {max(r.bill for r in found):.3f}")


if __name__ == "__main__":
    main()
