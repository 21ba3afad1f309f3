"""Runs that get other workers, on a clock that is moved by hand."""

import time
from pathlib import Path
from typing import Any

from ray import tune

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.train import keys
from raycosttune.tune.resources import DriverResources
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import FakeTrial, FakeTune

GOAL = Goal(metric="accuracy", mode="max", target=0.9, deadline_seconds=1000)
SPACE = {"num_workers": tune.choice([1, 2]), "batch_size": tune.choice([64]), "seed": 1}
TRAIN = DriverResources({"CPU": 1.0})


class Clock:
    """Is the clock of a process, moved by hand."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def __call__(self) -> float:
        return self.now


def begin(folder: Path, goal: Goal = GOAL, factory: Any = TRAIN, **more: Any) -> FakeTune:
    search = CostAwareSearch(goal, cost=WorkerHours(), **more)
    ray_tune = FakeTune(search, folder, SPACE, factory=factory)
    ray_tune.suggest()
    ray_tune.start()
    return ray_tune


def metered(epoch: int, seconds: float, **more: Any) -> dict[str, Any]:
    """Returns what a metered report of an epoch adds."""
    known = dict[str, Any](epoch=epoch, accuracy=0.1)
    known |= {keys.SECONDS: seconds, keys.STARTUP_SECONDS: 0.0, keys.INDEX: epoch}
    known |= {keys.ATTEMPT: 1, keys.WORKERS: 1, keys.CHECKPOINT: f"/c{epoch}"}
    return known | more


def resize(ray_tune: FakeTune, clock: Clock, seconds: float = 300.0) -> FakeTrial:
    """Lets a trial report slow epochs until it gets other workers."""
    (trial,) = ray_tune.trials
    for epoch in range(1, 4):
        clock.now += seconds
        if ray_tune.report(trial, **metered(epoch, seconds)) == "PAUSE":
            return trial
    message = "it was not resized"
    raise AssertionError(message)
