"""Sweeps that begin with a profile, and what Ray Train says of one."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ray import tune
from ray.tune.experiment import Trial

from raycosttune.core.goal import Goal
from raycosttune.core.profile import ProfileRecord
from raycosttune.train.keys import PROFILE
from raycosttune.tune.profile_run import result_row
from raycosttune.tune.resources import DriverResources
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import FakeTrial, FakeTune, journal, session_of

SPACE = {
    "num_workers": tune.choice([1, 2]),
    "batch_size": tune.choice([32, 64, 128, 256, 512]),
    "seed": 1,
}
GOAL = Goal(metric="accuracy", mode="max", target=0.9, planned_runs=1000)


def make_search(**settings: Any) -> CostAwareSearch:
    return CostAwareSearch(GOAL, profile=True, **settings)


def tune_with(search: CostAwareSearch, folder: Path, space: Any = SPACE) -> FakeTune:
    return FakeTune(search, folder, space, factory=DriverResources({"CPU": 1.0}))


def begin(folder: Path, **settings: Any) -> tuple[FakeTune, FakeTrial]:
    """Starts a sweep and its first profile."""
    ray_tune = tune_with(make_search(**settings), folder)
    trial: FakeTrial = ray_tune.suggest()
    ray_tune.start()
    assert trial.status == Trial.RUNNING
    return ray_tune, trial


def shown(trial: FakeTrial, *, failed: dict[int, tuple[str, bool]] | None = None) -> Any:
    """Returns what Ray Train says of a profile: a second an epoch, and batches that failed."""
    cells = [(cell["workers"], cell["batch_size"]) for cell in trial.config[PROFILE]["cells"]]
    failed = failed or {}
    common = {"step_seconds": 0.1, "steps": 10, "steps_per_epoch": 10, "epoch_seconds": 1.0}
    result = {
        "workers": max(workers for workers, _ in cells),
        "startup_seconds": 12.0,
        "seconds": 20.0,
        "cells": [
            {"workers": n, "batch_size": b, "whole_epoch_seconds": None, **common}
            for n, b in cells
            if b not in failed
        ],
        "failed": [
            {"workers": n, "batch_size": b, "reason": failed[b][0], "out_of_memory": failed[b][1]}
            for n, b in cells
            if b in failed
        ],
    }
    return SimpleNamespace(return_value=result, metrics=None)


def row_of(trial: FakeTrial, **settings: Any) -> dict[str, Any]:
    return result_row(trial.trial_id, trial.config, shown(trial, **settings))


def tell(ray_tune: FakeTune, trial: FakeTrial, **settings: Any) -> str:
    return ray_tune.report(trial, **{PROFILE: json.dumps(row_of(trial, **settings))})


def profile_of(ray_tune: FakeTune, trial: FakeTrial) -> ProfileRecord:
    record: ProfileRecord = session_of(ray_tune).profiles[trial.trial_id]
    return record


def rows_of(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    return [row for row in journal(folder) if row["row"] in kinds]
