import json
import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import tune

from raycosttune.core.cost import NodeHours
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.observation import EndCause
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.session import Session
from raycosttune.errors import InvalidTrainableError
from raycosttune.proposal.optuna import SamplerError
from raycosttune.train.keys import PROFILE
from raycosttune.tune.move import fit
from raycosttune.tune.plan import TunePlan
from raycosttune.tune.profile_run import profiled_loop, result_row
from raycosttune.tune.resources import DriverResources, WorkerResources
from tests.tune.fakes import FakeTrial, FakeTune, journal, session_of
from tests.tune.profiles import (
    GOAL,
    SPACE,
    begin,
    make_search,
    profile_of,
    rows_of,
    shown,
    tell,
    tune_with,
)


def test_a_profile_is_a_trial_with_the_most_workers_and_a_config_for_each_cell(
    tmp_path: Path,
) -> None:
    space = {
        "cluster": {"workers": tune.choice([2, 4]), "batch": tune.choice([8, 16])},
        "lr": tune.choice([0.1]),
        "seed": 1,
    }
    search = make_search(
        space=space,
        workers_key="cluster/workers",
        batch_key="cluster/batch",
        batch="local",
        learning_rate=LearningRate(reference_batch=16),
    )
    factory = DriverResources({"CPU": 1.0}, "cluster/workers")
    trial = FakeTune(search, tmp_path, factory=factory).suggest()
    asked = trial.config[PROFILE]
    assert trial.config["cluster"] == {"workers": 2, "batch": 8}
    assert trial.config["seed"] == 1
    assert asked["steps"] > 0
    assert asked["cells"] == [
        {
            "workers": 2,
            "batch_size": batch,
            "nodes": 1,
            "config": {"cluster": {"workers": 2, "batch": batch // 2}, "lr": 0.1 * batch / 16},
        }
        for batch in (16, 32)
    ]
    assert json.loads(json.dumps(trial.config)) == trial.config


def test_the_loop_gets_the_config_of_a_run_in_each_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trial = begin(tmp_path, learning_rate=None)
    config = {**trial.config, "big": {"deep": [1]}}
    seen: list[dict[str, Any]] = []
    asked: dict[str, Any] = {}

    def fake_profile_loop(loop: Any, cells: Any, **settings: Any) -> Any:
        asked.update(cells=cells, **settings)
        return loop

    monkeypatch.setattr("raycosttune.train.profile.profile_loop", fake_profile_loop)
    loop, every = profiled_loop(seen.append, config, 500)
    assert asked["samples"] == 500
    for workers, batch in asked["cells"]:
        loop({**every, asked["workers_key"]: workers, asked["batch_key"]: batch})

    def of_none() -> None:
        seen.append({})

    no_config: Any = of_none
    loop_of_none, _ = profiled_loop(no_config, config, None)
    loop_of_none({**every, asked["workers_key"]: 1, asked["batch_key"]: 32})
    assert seen.pop() == {}
    own = {"num_workers": 1, "big": {"deep": [1]}}
    assert seen == [{**own, "batch_size": batch} for batch in (32, 64, 128)]
    assert (asked["steps"], asked["samples"]) == (10, None)


def test_seconds_of_an_epoch_are_those_between_reports_where_it_was_seen_whole(
    tmp_path: Path,
) -> None:
    _, trial = begin(tmp_path)
    told = shown(trial)
    told.return_value["cells"][0]["whole_epoch_seconds"] = 1.5
    told.return_value["cells"][1]["epoch_seconds"] = None
    row = result_row("t", trial.config, told)
    by_batch = {cell["batch_size"]: cell["epoch_seconds"] for cell in row["cells"]}
    assert by_batch == {32: 1.5, 64: None, 128: 1.0}
    (lost,) = [cell for cell in row["cells"] if "reason" in cell]
    assert "samples=" in lost["reason"]


def test_a_profile_is_told_written_and_paid_for_and_a_run_follows(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path)
    session = session_of(ray_tune)
    assert ray_tune.suggest() is None
    assert tell(ray_tune, trial) == "CONTINUE"
    ray_tune.finish(trial)
    record = profile_of(ray_tune, trial)
    assert set(record.epoch_seconds.values()) == {1.0}
    assert len(record.epoch_seconds) == 3
    assert record.ended is None
    assert session.spent == NodeHours()(record.profile.held, 20.0)
    assert [row["row"] for row in journal(tmp_path)] == ["header", "profile", "profiled"]
    assert not session.records
    for _ in range(5):
        run = ray_tune.suggest()
        if PROFILE not in run.config:
            break
        ray_tune.start()
        tell(ray_tune, run)
        ray_tune.finish(run)
    ray_tune.start()
    ray_tune.report(run, accuracy=0.95, epoch=1)
    plan = ray_tune.searcher.plan()  # type: ignore[attr-defined]
    assert isinstance(plan, TunePlan)
    assert PROFILE not in plan.config


def test_a_cell_that_could_not_be_timed_is_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ray_tune, trial = begin(tmp_path)
    with caplog.at_level(logging.WARNING):
        tell(ray_tune, trial, failed={128: ("CUDA out of memory", True)})
    assert "1 worker at batch 128 can't be timed in a profile: CUDA out of memory" in caplog.text
    assert [cell.batch_size for cell in profile_of(ray_tune, trial).epoch_seconds] == [32, 64]
    (row,) = rows_of(tmp_path, "profiled")
    assert row["cells"][2]["out_of_memory"] is True


def test_cells_out_of_memory_count_against_their_share_of_the_batch(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path)
    tell(ray_tune, trial, failed=dict.fromkeys((64, 128), ("too large", True)))
    ray_tune.finish(trial)
    left = {(cell.workers, cell.batch_size) for cell in session_of(ray_tune).known.cells}
    assert left == {(1, 32), (2, 32), (2, 64), (2, 128)}  # a share of 64 failed once only


def test_a_profile_out_of_memory_everywhere_is_a_failed_one(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path)
    tell(ray_tune, trial, failed=dict.fromkeys((32, 64, 128), ("too large", True)))
    assert profile_of(ray_tune, trial).is_failed
    left = {(cell.workers, cell.batch_size) for cell in session_of(ray_tune).known.cells}
    assert left == {(2, 32), (2, 64)}


def test_a_profile_that_timed_nothing_has_failed(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path)
    cause = EndCause.FAILED
    tell(ray_tune, trial, failed=dict.fromkeys((32, 64, 128), ("too bad", False)))
    ray_tune.finish(trial)
    record = profile_of(ray_tune, trial)
    assert record.ended is not None
    assert (record.ended.cause, record.ended.reason) == (cause, "too bad")
    assert record.seconds == 20.0
    assert [row["row"] for row in journal(tmp_path)] == ["header", "profile", "ended"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(now=1000.0)
    monkeypatch.setattr("raycosttune.tune.sweep.time.monotonic", lambda: now.now)
    return now


def test_a_profile_that_dies_ends_with_its_seconds_paid(
    tmp_path: Path, clock: SimpleNamespace
) -> None:
    ray_tune, trial = begin(tmp_path)
    clock.now += 30
    ray_tune.fail(trial, "RuntimeError: a worker died")
    record = profile_of(ray_tune, trial)
    assert record.ended is not None
    assert record.ended.cause is EndCause.FAILED
    assert record.seconds == 30
    assert session_of(ray_tune).spent == NodeHours()(record.profile.held, 30)
    assert isinstance(ray_tune.suggest(), FakeTrial)


def test_a_sweep_whose_profiles_all_fail_goes_on_to_runs(tmp_path: Path) -> None:
    ray_tune = tune_with(make_search(), tmp_path)
    for _ in range(10):
        trial: FakeTrial = ray_tune.suggest()
        ray_tune.start()
        if PROFILE not in trial.config:
            break
        ray_tune.fail(trial, "MemoryError")
    assert PROFILE not in trial.config
    ray_tune.report(trial, accuracy=0.95, epoch=1)
    assert session_of(ray_tune).known.incumbent is not None


def test_a_profile_that_is_tried_again_pays_for_both_starts(
    tmp_path: Path, clock: SimpleNamespace
) -> None:
    ray_tune, trial = begin(tmp_path)
    clock.now += 30
    ray_tune.fail(trial, "RuntimeError: a worker died", again=True)
    assert profile_of(ray_tune, trial).is_live
    ray_tune.start()
    clock.now += 21
    tell(ray_tune, trial)  # says 20 seconds
    assert profile_of(ray_tune, trial).seconds == 50


def test_a_profile_that_returns_without_a_result_has_ended(
    tmp_path: Path, clock: SimpleNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    ray_tune, trial = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    ray_tune.report(trial, **{PROFILE: "[]"})
    ray_tune.report(trial, **{PROFILE: '{"row": "profiled", "cells": [1]}'})
    clock.now += 5
    ray_tune.finish(trial)
    record = profile_of(ray_tune, trial)
    assert record.ended is not None
    assert record.ended.cause is EndCause.FINISHED
    assert record.seconds == 5
    assert "can't be read" in caplog.text


def test_a_profile_that_is_removed_before_it_ran_has_stopped(tmp_path: Path) -> None:
    ray_tune = tune_with(make_search(), tmp_path)
    trial = ray_tune.suggest()
    ray_tune.stop_trial(trial)
    record = profile_of(ray_tune, trial)
    assert record.ended is not None
    assert record.ended.cause is EndCause.STOPPED


@pytest.mark.parametrize("factory", [None, WorkerResources(1, {"CPU": 1.0})])
def test_only_a_torch_trainable_can_be_profiled(tmp_path: Path, factory: Any) -> None:
    ray_tune = FakeTune(make_search(), tmp_path, SPACE, factory=factory)
    with pytest.raises(InvalidTrainableError, match="profile=True must go with torch_trainable"):
        ray_tune.suggest()


def test_a_profile_that_no_longer_fits_is_ended(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path)
    session = session_of(ray_tune)
    two = Profile(tuple(cell for cell in session.space.cells if cell.workers == 2))
    session.profiles["t2"] = ProfileRecord("t2", two)
    smaller = replace(session.space, max_workers=1)
    sweep = ray_tune.searcher.sweep  # type: ignore[attr-defined]
    sweep.move_to(Session(smaller, GOAL, clock=lambda: 0.0))
    fit(FakeTrial("t2", {}, tmp_path), sweep)  # type: ignore[arg-type]
    fit(trial, sweep)  # type: ignore[arg-type]
    assert profile_of(ray_tune, trial).is_live
    ended = session_of(ray_tune).profiles["t2"].ended
    assert ended is not None
    assert ended.reason == "the cluster holds at most 1 worker"


def test_a_failing_sampler_is_told_before_the_first_trial(tmp_path: Path) -> None:
    def broken(seed: int) -> Any:
        raise RuntimeError(seed)

    space = {**SPACE, "lr": tune.loguniform(1e-3, 1e-1)}
    ray_tune = tune_with(make_search(sampler=broken), tmp_path, space)
    with pytest.raises(SamplerError):
        ray_tune.suggest()
