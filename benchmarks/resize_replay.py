"""Replays single runs under a deadline on measured traces, with and without changes of workers.

Usage: python benchmarks/resize_replay.py --traces DIR [--json FILE]
           [--startup 20] [--seeds 10] [--planned-runs 1] [--cost worker-hours]

Of the tasks of `replay.py` those are taken whose deadline binds: without it another cell would
be the cheapest. Told are

* the median bill with changes over that without, and each median;
* of the runs whose chance to meet the deadline was put at 90 % or more at their start, how many
  met it. A run that was given up as too dear has not.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from replay import COSTS, _row
from replay import Job as Replay
from replay_tasks import GROUPS, Task, read, tasks, truth

from raycosttune.core.decision import Answer, Run
from raycosttune.core.guard import SAFE, chances
from raycosttune.core.node_type import Free
from raycosttune.core.observation import EndCause, recipe_key
from raycosttune.core.session import Session
from raycosttune.simulate import Noise, Outcome, simulate
from raycosttune.simulate.policies import start_session


@dataclass(frozen=True)
class Job:
    """Is one replay: a task, a seed, and whether runs may change their workers."""

    task: Task
    seed: int
    resize: bool
    options: argparse.Namespace


class Watched:
    """Is a session that notes how likely each run seemed in time when it was started."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.chances: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        """Passes everything else on."""
        return getattr(self._session, name)

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
        """See Session.ask."""
        forecast = self._session.moment.forecast
        answer = self._session.ask(trial_id, free_workers=free_workers)
        if isinstance(answer, Run) and forecast is not None:
            tried = recipe_key(answer.recipe)
            recipe = tried if tried in self._session.known.recipes else None
            cell = answer.allocation
            outlook = forecast.outlook(recipe)
            seen = chances(outlook, cell.batch_size, seconds_left=outlook.limit)
            self.chances[trial_id] = float(seen.in_time[seen.workers.index(cell.workers)])
        return answer


def run(job: Job) -> dict[str, Any]:
    """Replays a job."""
    options = job.options
    workload, goal = read(options.traces, job.task, options.startup)
    cost, aim = COSTS[options.cost], replace(goal, planned_runs=options.planned_runs)
    watched: list[Watched] = []

    def start(clock: Callable[[], float]) -> Watched:
        watched.append(Watched(start_session(workload, aim, cost, clock, resize=job.resize)))
        return watched[0]

    outcome = simulate(
        start,
        workload,
        cost=cost,
        deadline_seconds=goal.deadline_seconds,
        noise=Noise(options.noise, curves=True),
        seed=job.seed,
    )
    plain = (options.planned_runs,), options.traces, options.startup, options.cost, options.noise
    row = _row(
        Replay("ours", job.task, job.seed, *plain), "ours", options.planned_runs, [outcome.last]
    )
    return {
        "task": job.task.name,
        "seed": job.seed,
        "resize": job.resize,
        "ratio": row["ratio"],
        "resizes": sum(trial.resizes for trial in outcome.trials),
        "likely": [
            [chance, is_met(outcome, name, goal.deadline_seconds)]
            for name, chance in watched[0].chances.items()
        ],
    }


def is_met(outcome: Outcome, trial_id: str, deadline: float | None) -> bool:
    """Tells whether a run reached the target by the deadline."""
    trial = next(each for each in outcome.trials if each.trial_id == trial_id)
    return trial.cause is EndCause.REACHED and (deadline is None or trial.seconds <= deadline)


def binds(task: Task, options: argparse.Namespace) -> bool:
    """Tells whether another cell would be the cheapest without a task's deadline."""
    own = partial(truth, options.traces, startup_seconds=options.startup, cost=COSTS[options.cost])
    return own(task).oracle != own(replace(task, factor=None)).oracle


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums the replays up."""
    told: dict[str, Any] = {}
    for resize in (True, False):
        own = [row for row in rows if row["resize"] is resize]
        likely = [met for row in own for chance, met in row["likely"] if chance >= SAFE]
        told["on" if resize else "off"] = {
            "median_bill_ratio": statistics.median(row["ratio"] for row in own),
            "runs": len(own),
            "resizes": sum(row["resizes"] for row in own),
            "likely_runs": len(likely),
            "likely_runs_in_time": sum(likely) / len(likely) if likely else None,
        }
    told["on_over_off"] = told["on"]["median_bill_ratio"] / told["off"]["median_bill_ratio"]
    fixed = {(r["task"], r["seed"]): r["ratio"] for r in rows if not r["resize"]}
    paired = [r["ratio"] / fixed[r["task"], r["seed"]] for r in rows if r["resize"]]
    told["median_of_pairs"] = statistics.median(paired)
    return told


def main() -> None:
    """Runs every job and prints the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--traces", type=Path, required=True, help="folder of traces")
    parser.add_argument("--json", type=Path, help="file of all results")
    parser.add_argument("--tasks", choices=sorted(GROUPS), default="pollux-t4")
    parser.add_argument("--cost", choices=sorted(COSTS), default="worker-hours")
    parser.add_argument("--startup", type=float, default=0.0, help="seconds of every start")
    parser.add_argument("--planned-runs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--noise", type=float, default=0.05, help="deviation of log seconds")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    bound = [task for task in tasks(options.tasks) if task.factor and binds(task, options)]
    jobs = [
        Job(task, seed, resize, options)
        for task in bound
        for seed in range(options.seeds)
        for resize in (True, False)
    ]
    started = time.monotonic()
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes, which share the cores
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        rows = list(pool.map(run, jobs, chunksize=4))
    told = {"tasks": [task.name for task in bound], **figures(rows)}
    told["by_task"] = {
        task.name: figures([row for row in rows if row["task"] == task.name]) for task in bound
    }
    print(json.dumps(told, indent=1))
    print(f"{len(jobs)} replays took {time.monotonic() - started:.0f} s")
    if options.json:
        options.json.write_text(json.dumps({**told, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
