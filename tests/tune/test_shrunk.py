import time
from pathlib import Path
from typing import Any

import pytest
from ray.tune.experiment import Trial

from raycosttune.core.cost import WorkerHours
from raycosttune.train import keys
from raycosttune.tune import setup
from raycosttune.tune.ending import HALTED
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import FakeTrial, FakeTune, session_of
from tests.tune.moves import GOAL, TRAIN, Clock, begin, metered, resize


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


def restore(ray_tune: FakeTune, folder: Path, trial: FakeTrial, **more: Any) -> FakeTune:
    """Lets a new driver go on with a trial as Tune's last snapshot has it."""
    state = folder / "state.json"
    ray_tune.searcher.save(str(state))
    search = CostAwareSearch(GOAL, cost=WorkerHours(), **more)
    search.restore(str(state))
    again = FakeTune(search, folder, factory=TRAIN)
    old = FakeTrial(trial.trial_id, {"num_workers": 1, "batch_size": 64}, folder)
    old.placement_group_factory = TRAIN
    again.add(old)
    return again


def test_a_cluster_that_shrank_before_a_restore_takes_a_run_on_fewer_workers(
    tmp_path: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ray_tune = begin(tmp_path)
    trial = resize(ray_tune, clock)  # promised two, and the driver dies
    monkeypatch.setattr(setup, "cluster_nodes", lambda: [{"CPU": 1.0}])
    for _ in range(2):  # and dies again
        again = restore(ray_tune, tmp_path, trial)
        assert again.start() is again.trials[0]
        assert again.trials[0].config["num_workers"] == 1
        assert session_of(again).committed_workers == 1
    assert "goes on with 1 worker: the cluster holds at most 1 worker" in caplog.text
    told = metered(9, 100.0, **{keys.ATTEMPT: 2, "accuracy": 0.95})
    assert again.report(again.trials[0], training_iteration=1, **told) == "STOP"


def test_a_run_that_may_not_change_its_workers_is_ended_on_a_cluster_that_shrank(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray_tune = begin(tmp_path)
    trial = resize(ray_tune, clock)
    monkeypatch.setattr(setup, "cluster_nodes", lambda: [{"CPU": 1.0}])
    again = restore(ray_tune, tmp_path, trial, resize=False)
    assert again.start() is None
    (old,) = again.trials
    assert (old.status, old.last_result["accuracy"]) == (Trial.TERMINATED, 0.1)
    ended = session_of(again).records[trial.trial_id].ended
    assert ended.reason == "the cluster holds at most 1 worker"


def test_a_paused_run_whose_workers_never_come_is_ended_at_its_deadline(
    tmp_path: Path, clock: Clock
) -> None:
    ray_tune = begin(tmp_path)
    trial = resize(ray_tune, clock)
    assert ray_tune.scheduler.choose_trial_to_run(ray_tune) is trial
    trial.status = Trial.PENDING  # as Tune has it until its workers are there
    clock.now += 1000.0
    assert ray_tune.start() is None
    ended = session_of(ray_tune).records[trial.trial_id].ended
    assert (trial.status, trial.last_result["accuracy"]) == (Trial.TERMINATED, 0.1)
    assert "1000 s since a report" in ended.reason


def test_a_paused_run_that_tune_stops_has_not_been_removed_before_it_ran(
    tmp_path: Path, clock: Clock
) -> None:
    ray_tune = begin(tmp_path)
    trial = resize(ray_tune, clock)
    ray_tune.stop_trial(trial)
    ended = session_of(ray_tune).records[trial.trial_id].ended
    assert (ended.cause, ended.reason) == HALTED


def test_a_forgotten_trial_that_hangs_under_its_new_name_is_ended(
    tmp_path: Path, clock: Clock
) -> None:
    ray_tune = begin(tmp_path, resize=False)
    (trial,) = ray_tune.trials
    ray_tune.report(trial, **metered(1, 100.0))
    state = tmp_path / "state.json"
    ray_tune.searcher.save(str(state))
    search = CostAwareSearch(GOAL, cost=WorkerHours(), resize=False)
    search.restore(str(state))
    again = FakeTune(search, tmp_path, factory=TRAIN)
    other = FakeTrial("other", {}, tmp_path)
    again.scheduler.on_trial_add(again, other)  # has the journal read
    renamed = again.suggest("new")
    assert again.start() is renamed
    clock.now += 2000.0
    again.start()
    assert renamed is not None
    assert renamed.status == Trial.TERMINATED


def test_a_restore_on_a_cluster_that_holds_no_trial_waits_for_its_nodes(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A raise makes Tune begin the experiment anew, in silence."""
    ray_tune = begin(tmp_path)
    trial = resize(ray_tune, clock)
    monkeypatch.setattr(setup, "cluster_nodes", lambda: [{"CPU": 0.5}])
    again = restore(ray_tune, tmp_path, trial)
    assert session_of(again).records[trial.trial_id].is_live
    assert "too few for any trial of the sweep" in caplog.text
