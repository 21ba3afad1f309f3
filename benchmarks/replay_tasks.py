"""The replay tasks: a measured job, a target, and how tight the deadline is."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from raycosttune import Goal, NodeHours, WorkerHours
from raycosttune.simulate import TraceWorkload, Truth
from raycosttune.simulate.oracle import seconds_to_target

FACTORS = (1.5, 2.0, 4.0, 8.0, None)
JOBS = {
    "pollux-bert": (88.0, "max"),
    "pollux-cifar10": (0.93, "max"),
    "pollux-deepspeech2": (25.0, "min"),
    "pollux-imagenet": (0.74, "max"),
    "pollux-yolov3": (13.0, "min"),
}
GROUPS = {"pollux-t4": ("t4", 4)}  # start of the device's name, workers of a node


@dataclass(frozen=True)
class Task:
    """Is one job under one deadline.

    Attributes:
        workload: Name of the job's traces.
        factor: Deadline over the fastest time to target of the grid, None for no deadline.
        group: Key of GROUPS.
    """

    workload: str
    factor: float | None
    group: str

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.workload} k={'none' if self.factor is None else f'{self.factor:g}'}"


def tasks(group: str) -> list[Task]:
    """Lists the 25 tasks of a group."""
    return [Task(job, factor, group) for job in JOBS for factor in FACTORS]


@cache
def read(traces: Path, task: Task, startup_seconds: float) -> tuple[TraceWorkload, Goal]:
    """Reads a task's job, and its goal with one planned run."""
    device, workers_per_node = GROUPS[task.group]
    target, mode = JOBS[task.workload]
    workload = TraceWorkload.read(
        traces,
        task.workload,
        device=device,
        workers_per_node=workers_per_node,
        startup_seconds=startup_seconds,
    )
    aim = Goal(metric="metric", mode="max" if mode == "max" else "min", target=target)
    fastest = min(seconds_to_target(workload, aim).values())
    deadline = None if task.factor is None else task.factor * fastest
    return workload, Goal(
        metric="metric", mode=aim.mode, target=target, deadline_seconds=deadline, planned_runs=1
    )


@cache
def truth(traces: Path, task: Task, startup_seconds: float, cost: NodeHours | WorkerHours) -> Truth:
    """Computes what every cell of a task costs."""
    workload, goal = read(traces, task, startup_seconds)
    return Truth(workload, goal, cost)
