"""Replays sweeps on measured traces and compares what they cost in all.

Usage: python benchmarks/replay.py --traces DIR --json FILE
           [--tasks pollux-t4] [--cost worker-hours|node-hours] [--startup SECONDS]
           [--planned-runs 1,10,100] [--seeds 10] [--policies ours,tpe,...] [--noise 0.05]

A policy sees a task only through what its runs report. Times have 5 % noise, curves their own
evaluation noise; the same seed gives every policy the same runs. One trial runs at a time.

Beside FILE come FILE with the endings .md (tables) and, where matplotlib is installed, .svg.
"""

import argparse
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from replay_careful import careful_share
from replay_summary import HINDSIGHT, Row, figure, markdown, summary
from replay_tasks import GROUPS, Task, read, tasks, truth

from raycosttune import NodeHours, Plan, WorkerHours
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate import Moment, Noise, Outcome, Policy, bill, simulate
from raycosttune.simulate.policies import OURS, OURS_FIXED, ZEUS, policy_names, start_policy

COSTS: dict[str, NodeHours | WorkerHours] = {
    "worker-hours": WorkerHours(),
    "node-hours": NodeHours(),
}
ORACLES = ("oracle", "oracle_resize")
FIXED_STOP = 20
MOST_TRIALS = 40
SLOW = {"gp-constrained": 3}  # a Gaussian process takes minutes: so many seeds


@dataclass(frozen=True)
class Job:
    """Is one policy on one task with one seed."""

    policy: str
    task: Task
    seed: int
    planned_runs: tuple[int, ...]
    traces: Path
    startup_seconds: float
    cost: str
    noise: float


def run(job: Job) -> list[Row]:
    """Simulates a job and returns a row for each number of planned runs, and each stop."""
    started = time.process_time()
    if job.policy in ORACLES:
        rows = list(_oracle_rows(job))
    elif job.policy in (OURS, OURS_FIXED):
        rows = [_certified_row(job, planned) for planned in job.planned_runs]
    else:
        outcomes = [_simulate(replace(job, policy=name), 1) for name in _variants(job)]
        fixed = [_stopped_at(outcome, FIXED_STOP) for outcome in outcomes]
        every = [moment for outcome in outcomes for moment in outcome.moments]
        rows = [
            _row(job, name, planned, moments)
            for planned in job.planned_runs
            for name, moments in ((job.policy, fixed), (job.policy + HINDSIGHT, every or fixed))
        ]
    seconds = time.process_time() - started
    return [{**row, "seconds": seconds / len(rows)} for row in rows]


def _variants(job: Job) -> list[str]:
    """Names what a policy stands for: Zeus knows one worker count, and gets the best one."""
    if job.policy != ZEUS:
        return [job.policy]
    counts = read(job.traces, job.task, job.startup_seconds)[0].space.workers
    coarse = {counts[0], counts[-1], *(n for n in counts if n & (n - 1) == 0)}
    return [f"{ZEUS}@{n}" for n in sorted(coarse)]


def _simulate(job: Job, planned: int) -> Outcome:
    workload, goal = read(job.traces, job.task, job.startup_seconds)
    cost = COSTS[job.cost]
    aim = replace(goal, planned_runs=planned)
    start: Callable[[Callable[[], float]], Policy] = start_policy(
        job.policy, workload, aim, cost, seed=job.seed, trials=MOST_TRIALS
    )
    return simulate(
        start,
        workload,
        cost=cost,
        deadline_seconds=goal.deadline_seconds,
        noise=Noise(job.noise, curves=True),
        seed=job.seed,
    )


def _stopped_at(outcome: Outcome, runs: int) -> Moment:
    """Returns the state after so many runs, profiles not counted."""
    ended = [trial.cause is not None and not trial.is_profile for trial in outcome.trials]
    counts = list(itertools.accumulate(ended))
    at = [moment for count, moment in zip(counts, outcome.moments, strict=True) if count <= runs]
    return at[-1] if at else outcome.last


def _row(job: Job, name: str, planned: int, moments: list[Moment]) -> Row:
    """Returns the row of the moment with the smallest bill."""
    where = job.traces, job.task, job.startup_seconds, COSTS[job.cost]
    exact = truth(*where)
    exact = replace(exact, goal=replace(exact.goal, planned_runs=planned))
    best = min((bill(exact, moment) for moment in moments), key=lambda each: each.ratio)
    return {
        "policy": name,
        "task": job.task.name,
        "workload": job.task.workload,
        "seed": job.seed,
        "planned_runs": planned,
        "ratio": best.ratio,
        "spend": best.spend,
        "regret": best.regret,
        "misses_deadline": best.misses_deadline,
        "misses_target": best.misses_target,
        "chosen": best.chosen and [best.chosen.workers, best.chosen.batch_size],
        "oracle": [exact.oracle.workers, exact.oracle.batch_size],
        "careful": careful_share(*where, job.noise),
    }


def _certified_row(job: Job, planned: int) -> Row:
    """Returns the row of ours, with what its certificate says against what is so.

    The saving is that of the best cell of all, tried ones too, over the plan's.
    """
    outcome = _simulate(job, planned)
    row = _row(job, job.policy, planned, [outcome.last])
    if isinstance(outcome.plan, Plan) and math.isfinite(row["regret"]):
        gap, saving = outcome.plan.certificate.gap, 1 - 1 / (1 + row["regret"])
        row |= {"gap": gap, "certificate_holds": saving <= gap + 1e-9}
        if (likely := outcome.plan.likely_saving) is not None:
            row |= {"likely": likely, "likely_holds": saving <= likely + 1e-9}
    return row


def _oracle_rows(job: Job) -> Iterator[Row]:
    exact = truth(job.traces, job.task, job.startup_seconds, COSTS[job.cost])
    for planned in job.planned_runs:
        row = _row(
            job, job.policy, planned, [Moment(exact.oracle_cost, exact.oracle, delivered=True)]
        )
        if job.policy == "oracle_resize":
            share = exact.resize_cost / exact.oracle_cost
            row |= {"ratio": share, "spend": share, "regret": share - 1}
        yield row


def arguments() -> argparse.Namespace:
    """Returns what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--traces", type=Path, required=True, help="folder of traces")
    parser.add_argument("--json", type=Path, required=True, help="file of all results")
    parser.add_argument("--tasks", choices=sorted(GROUPS), default="pollux-t4")
    parser.add_argument("--cost", choices=sorted(COSTS), default="worker-hours")
    parser.add_argument("--startup", type=float, default=0.0, help="seconds of every start")
    parser.add_argument("--planned-runs", default="1,10,100")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--policies", default=",".join([OURS, *ORACLES]), help="or: all")
    parser.add_argument("--noise", type=float, default=0.05, help="deviation of log seconds")
    parser.add_argument("--processes", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    """Runs every job and writes what came out."""
    options = arguments()
    known = [*policy_names(), *ORACLES]
    names = known if options.policies == "all" else options.policies.split(",")
    if unknown := [name for name in names if name.partition("@")[0] not in known]:
        sys.exit(f"--policies must be among {', '.join(known)}, got {', '.join(unknown)}")
    planned = tuple(int(text) for text in options.planned_runs.split(","))
    jobs = [
        Job(
            name,
            task,
            seed,
            planned,
            options.traces,
            options.startup,
            options.cost,
            options.noise,
        )
        for name in names
        for seed in range(1 if name in ORACLES else min(options.seeds, SLOW.get(name, 10**9)))
        for task in tasks(options.tasks)
    ]
    started = time.monotonic()
    try:
        read(options.traces, jobs[0].task, options.startup)
        os.environ["OMP_NUM_THREADS"] = "1"  # of the processes, which share the cores
        with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
            rows = [row for made in pool.map(run, jobs, chunksize=5) for row in made]
    except InvalidWorkloadError as error:
        sys.exit(str(error))
    settings = {
        key: str(value) if isinstance(value, Path) else value
        for key, value in vars(options).items()
        if key not in ("json", "traces")
    }
    result = summary(rows, settings) | {"seconds": time.monotonic() - started}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    text = markdown(result)
    options.json.with_suffix(".md").write_text(text)
    figure(result, options.json.with_suffix(".svg"))
    print(text)
    print(f"{len(jobs)} jobs took {result['seconds']:.0f} s on {options.processes} processes")


if __name__ == "__main__":
    main()
