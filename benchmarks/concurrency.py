"""Replays sweeps that may run several trials at once, on measured traces.

Usage: python benchmarks/concurrency.py --traces DIR --json FILE
           [--at-once 1,2,4,paying] [--planned-runs 10,100] [--seeds 1] [--startup 20]
           [--cost worker-hours|node-hours] [--noise 0.05] [--processes 2]

`paying` is the search's own default: one trial until the target is reached, then as many as pay.
The cluster holds as many trials of the largest cell as may run at once, four for `paying`. Of the
tasks of `replay.py` those with a deadline of twice the fastest run, and without one, are taken.

Told are the median bill, and spend and wall time over those of the same sweep with one trial at a
time, as medians over tasks and seeds. Sweeps without profiles leave the choice to bounds and
outcomes; those with profiles plan the whole bill.
"""

import argparse
import json
import math
import os
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from replay import COSTS
from replay_tasks import Task, read, tasks, truth

from raycosttune.core.abilities import Abilities
from raycosttune.core.session import Session
from raycosttune.simulate import Noise, bill, simulate

PAYING = "paying"
MOST_PAYING = 4
FACTORS = (2.0, None)


@dataclass(frozen=True)
class Job:
    """Is one replay."""

    task: Task
    seed: int
    planned_runs: int
    at_once: str
    profile: bool
    options: argparse.Namespace


def run(job: Job) -> dict[str, Any]:
    """Replays a job."""
    options, cost = job.options, COSTS[job.options.cost]
    workload, goal = read(options.traces, job.task, options.startup)
    aim = replace(goal, planned_runs=job.planned_runs)
    most = None if job.at_once == PAYING else int(job.at_once)

    def start(clock: Callable[[], float]) -> Session:
        able = Abilities(profile=job.profile, resize=job.profile)
        where = workload.space, aim
        return Session(*where, cost=cost, max_concurrent=most, abilities=able, clock=clock)

    outcome = simulate(
        start,
        workload,
        cost=cost,
        workers=(most or MOST_PAYING) * max(cell.workers for cell in workload.space.cells),
        deadline_seconds=goal.deadline_seconds,
        noise=Noise(options.noise, curves=True),
        seed=job.seed,
    )
    exact = truth(options.traces, job.task, options.startup, cost)
    paid = bill(replace(exact, goal=aim), outcome.last)
    return {
        "task": job.task.name,
        "seed": job.seed,
        "planned_runs": job.planned_runs,
        "at_once": job.at_once,
        "profile": job.profile,
        "ratio": paid.ratio,
        "spend": paid.spend,
        "seconds": outcome.seconds,
        "trials": len(outcome.trials),
    }


def lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yields a Markdown table of the rows."""
    yield "| profiles | planned runs | at once | bill | spend over one at a time | time over it |"
    yield "|---|---|---|---|---|---|"
    serial = {_world(row): row for row in rows if row["at_once"] == "1"}
    groups = dict.fromkeys((row["profile"], row["planned_runs"], row["at_once"]) for row in rows)
    for group in groups:
        own = [r for r in rows if (r["profile"], r["planned_runs"], r["at_once"]) == group]
        profile, planned, at_once = group
        ratio = statistics.median(row["ratio"] for row in own)
        spend, seconds = (_over(own, serial, key) for key in ("spend", "seconds"))
        kind = "yes" if profile else "no"
        yield f"| {kind} | {planned} | {at_once} | {ratio:.2f} | {spend:.2f} | {seconds:.2f} |"


def _world(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["task"], row["seed"], row["planned_runs"], row["profile"]


def _over(own: list[dict[str, Any]], serial: dict[Any, dict[str, Any]], key: str) -> float:
    pairs = [(row[key], serial[_world(row)][key]) for row in own if _world(row) in serial]
    return float(statistics.median([value / one for value, one in pairs] or [math.nan]))


def main() -> None:
    """Runs all jobs, and writes and prints what they show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True, help="folder of traces")
    parser.add_argument("--json", type=Path, required=True, help="file of all results")
    parser.add_argument("--at-once", default=f"1,2,4,{PAYING}", help=f"trials, or {PAYING}")
    parser.add_argument("--planned-runs", default="10,100")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--startup", type=float, default=20.0, help="seconds of every start")
    parser.add_argument("--cost", choices=sorted(COSTS), default="worker-hours")
    parser.add_argument("--noise", type=float, default=0.05, help="deviation of log seconds")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    jobs = [
        Job(task, seed, int(planned), at_once, profile, options)
        for profile in (True, False)
        for planned in options.planned_runs.split(",")
        for at_once in options.at_once.split(",")
        for task in tasks("pollux-t4")
        if task.factor in FACTORS
        for seed in range(options.seeds)
    ]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        rows = list(pool.map(run, jobs))
    options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print("\n".join(lines(rows)))


if __name__ == "__main__":
    main()
