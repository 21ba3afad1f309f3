"""The cheapest cell that keeps the deadline in its own noisy runs, not in one without noise."""

import math
from functools import cache
from pathlib import Path

from replay_tasks import Task, read, truth

from raycosttune import Goal, NodeHours, WorkerHours
from raycosttune.core.space import Allocation
from raycosttune.simulate import Noise, TraceWorkload

RUNS = 200
SURE = 0.95  # of a cell's runs
FIRST_SEED = 10**6  # no replayed sweep meets these runs


@cache
def careful_share(
    traces: Path, task: Task, startup_seconds: float, cost: NodeHours | WorkerHours, noise: float
) -> float:
    """Returns what the cheapest cell costs that is in time in 95 % of its runs.

    The oracle's cell may be in time by a hair where nothing is noisy, and late in every third
    run. Whoever is to keep deadlines can't choose it, even knowing everything.

    Args:
        traces: Folder of the traces.
        task: The job and its deadline.
        startup_seconds: Of every start.
        cost: The cost metric.
        noise: Deviation of log seconds.

    Returns:
        Over the oracle's cost, at least 1; where no cell is so sure, of the surest.
    """
    workload, goal = read(traces, task, startup_seconds)
    exact = truth(traces, task, startup_seconds, cost)
    if goal.deadline_seconds is None:
        return 1.0
    share, surest = 0.0, exact.oracle
    for cell in sorted(exact.feasible, key=exact.costs.__getitem__):
        in_time = _in_time(workload, goal, cell, startup_seconds, noise)
        if in_time > share:
            share, surest = in_time, cell
        if in_time >= SURE:
            break
    return exact.costs[surest] / exact.oracle_cost


def _in_time(
    workload: TraceWorkload, goal: Goal, cell: Allocation, startup_seconds: float, noise: float
) -> float:
    """Returns the share of a cell's runs that reach the target by the deadline."""
    noisy, limit = Noise(noise, curves=True), goal.deadline_seconds or math.inf
    found = 0
    for seed in range(FIRST_SEED, FIRST_SEED + RUNS):
        seconds = startup_seconds
        for evaluation in noisy.run(workload, cell, seed=seed, repetition=0):
            seconds += evaluation.seconds
            if seconds > limit:
                break
            if goal.is_reached(evaluation.value):
                found += 1
                break
    return found / RUNS
