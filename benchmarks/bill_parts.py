"""Splits the bills of replayed sweeps of ours into what they were spent on.

Usage: OMP_NUM_THREADS=1 python benchmarks/bill_parts.py --traces DIR [--json FILE]
           [--seeds 3] [--planned-runs 1,10,100] [--cost worker-hours|node-hours]
           [--startup SECONDS] [--noise 0.05] [--times-known]

Of each bill over the oracle's it tells profiles, runs given up before a first one in time, runs
that reached the target too late, that first one, further runs, and what the planned runs cost
more than the oracle's. With `--times-known` the epoch times of all cells are told beforehand: what
a sweep would cost that had not to time anything.
"""

import argparse
import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from replay import COSTS
from replay_tasks import GROUPS, Task, read, tasks, truth

from raycosttune.core.cost import CostMetric, checked_cost
from raycosttune.core.observation import EndCause
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.session import Session
from raycosttune.simulate import Noise, Outcome, bill, simulate
from raycosttune.simulate.policies import start_session

PARTS = ("profiles", "given up", "too late", "first in time", "further", "dearer plan")
TOLD = "told beforehand"


@dataclass(frozen=True)
class Job:
    """Is one replay."""

    task: Task
    seed: int
    planned_runs: int


def run(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """Replays a sweep and returns its bill and the parts, in bills of the oracle."""
    workload, goal = read(options.traces, job.task, options.startup)
    cost, goal = COSTS[options.cost], replace(goal, planned_runs=job.planned_runs)

    def start(clock: Callable[[], float]) -> Session:
        session = start_session(workload, goal, cost, clock)
        if options.times_known:
            every = Profile(tuple(sorted(workload.space.cells)), why=TOLD)
            session.profiles[TOLD] = ProfileRecord(TOLD, every, started=0.0)
            seconds = {cell: workload.epoch_seconds(cell) for cell in every.cells}
            session.tell_profile(TOLD, Profiled(seconds, 0.0, 0.0))
        return session

    limit = goal.deadline_seconds
    noise = Noise(options.noise, curves=True)
    outcome = simulate(
        start, workload, cost=cost, deadline_seconds=limit, noise=noise, seed=job.seed
    )
    exact = truth(options.traces, job.task, options.startup, cost)
    exact = replace(exact, goal=goal)
    found, whole = bill(exact, outcome.last), job.planned_runs * exact.oracle_cost
    remaining = job.planned_runs - outcome.last.delivered
    parts = dict.fromkeys(PARTS, 0.0)
    if remaining:
        parts["dearer plan"] = remaining * found.regret / job.planned_runs
    for kind, paid in spent(outcome, cost, limit):
        parts[kind] += paid / whole
    return {
        "task": job.task.name,
        "seed": job.seed,
        "planned_runs": job.planned_runs,
        "ratio": found.ratio,
        **parts,
    }


def spent(outcome: Outcome, cost: CostMetric, limit: float | None) -> list[tuple[str, float]]:
    """Returns what each start of workers was for, and what it cost."""
    found, is_delivered = [], False
    for trial in outcome.trials:
        paid = trial.paid + checked_cost(cost, trial.allocation, trial.held_seconds)
        is_reached = trial.cause is EndCause.REACHED
        in_time = is_reached and (limit is None or trial.seconds <= limit)
        if trial.is_profile:
            kind = "profiles"
        elif is_delivered:
            kind = "further"
        elif in_time:
            kind, is_delivered = "first in time", True
        else:
            kind = "too late" if is_reached else "given up"
        found.append((kind, paid))
    return found


def main() -> None:
    """Runs every job and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--traces", type=Path, required=True, help="folder of traces")
    parser.add_argument("--json", type=Path, help="file of all results")
    parser.add_argument("--tasks", choices=sorted(GROUPS), default="pollux-t4")
    parser.add_argument("--cost", choices=sorted(COSTS), default="worker-hours")
    parser.add_argument("--startup", type=float, default=0.0, help="seconds of every start")
    parser.add_argument("--planned-runs", default="1,10,100")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--noise", type=float, default=0.05, help="deviation of log seconds")
    parser.add_argument("--times-known", action="store_true", help="tell all epoch times before")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    planned = [int(text) for text in options.planned_runs.split(",")]
    jobs = [
        Job(task, seed, count)
        for count in planned
        for task in tasks(options.tasks)
        for seed in range(options.seeds)
    ]
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes, which share the cores
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        rows = list(pool.map(partial(run, options=options), jobs, chunksize=4))
    print(f"| planned runs | {' | '.join(PARTS)} | bill |")
    print("|---" * (len(PARTS) + 2) + "|")
    for count in planned:
        own = [row for row in rows if row["planned_runs"] == count]
        for name, middle in (("median", np.median), ("mean", np.mean)):
            figures = [f"{middle([row[key] for row in own]):.3f}" for key in (*PARTS, "ratio")]
            print(f"| {count}, {name} | {' | '.join(figures)} |")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
