import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ray.tune.experiment import Trial

from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Resize
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause
from raycosttune.core.session import Session
from raycosttune.results.journal import Journal
from raycosttune.results.rows import Row, begun_row, requested_row, run_header_row
from raycosttune.train import keys
from raycosttune.tune.move import can_move
from raycosttune.tune.resources import WorkerResources
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import FakeTrial, FakeTune, journal, session_of, write_run
from tests.tune.moves import GOAL, TRAIN, Clock, begin, metered, resize


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made)
    return made


def test_a_run_at_risk_is_paused_and_goes_on_with_more_workers(
    tmp_path: Path, clock: Clock
) -> None:
    ray_tune = begin(tmp_path)
    trial = resize(ray_tune, clock)
    session = session_of(ray_tune)
    assert trial.config["num_workers"] == 1
    assert session.committed_workers == 2
    assert ray_tune.start() is trial
    assert trial.config == {"num_workers": 2, "batch_size": 64}
    told = metered(9, 150.0, **{keys.ATTEMPT: 2, keys.WORKERS: 2, "accuracy": 0.95})
    clock.now += 155.0
    assert ray_tune.report(trial, training_iteration=1, **told) == "STOP"
    record = session.records[trial.trial_id]
    assert record.ended.cause is EndCause.REACHED
    assert [row["row"] for row in journal(tmp_path)][-3:] == ["resized", "report", "ended"]


def test_what_passes_between_two_starts_is_paid_as_start_up_of_the_new_one(
    tmp_path: Path, clock: Clock
) -> None:
    ray_tune = begin(tmp_path)
    trial = resize(ray_tune, clock)
    clock.now += 7.0
    ray_tune.start()
    clock.now += 3.0 + 160.0
    told = {keys.ATTEMPT: 2, keys.WORKERS: 2, keys.STARTUP_SECONDS: 10.0, keys.INDEX: 1}
    ray_tune.report(trial, training_iteration=1, **metered(4, 160.0, **told))
    last = session_of(ray_tune).records[trial.trial_id].reports[-1]
    assert last.seconds == pytest.approx(170.0)
    assert last.startup_seconds == pytest.approx(20.0)
    assert (last.workers, last.attempt) == (2, 2)


def test_epochs_that_end_after_the_decision_are_filled_in_and_paid_once(
    tmp_path: Path, clock: Clock
) -> None:
    ray_tune = begin(tmp_path)
    trial = resize(ray_tune, clock)
    epoch = int(session_of(ray_tune).records[trial.trial_id].epoch)
    rows = [(1, k, 0.1) for k in range(1, epoch + 2)]
    write_run(tmp_path, trial.trial_id, rows)  # each took a second
    clock.now += 7.0
    ray_tune.start()
    told = {keys.ATTEMPT: 2, keys.WORKERS: 2, keys.STARTUP_SECONDS: 10.0, keys.INDEX: 1}
    clock.now += 160.0
    ray_tune.report(trial, training_iteration=1, **metered(epoch + 2, 160.0, **told))
    record = session_of(ray_tune).records[trial.trial_id]
    assert [r.epoch for r in record.reports[-2:]] == [epoch + 1, epoch + 2]
    assert [r.seconds for r in record.reports[-2:]] == pytest.approx([1.0, 166.0])


@pytest.mark.parametrize("more", [{"resize": False}, {"factory": None}], ids=["off", "unwrapped"])
def test_a_run_stays_where_it_can_not_or_may_not_move(
    tmp_path: Path, clock: Clock, more: dict[str, Any]
) -> None:
    ray_tune = begin(tmp_path, **more)
    with pytest.raises(AssertionError, match="not resized"):
        resize(ray_tune, clock)


def test_a_run_stays_where_nothing_is_free(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CostAwareSearch, "free_workers", 0)
    ray_tune = begin(tmp_path)
    with pytest.raises(AssertionError, match="not resized"):
        resize(ray_tune, clock)


def test_a_function_gets_the_resources_of_its_new_workers(tmp_path: Path, clock: Clock) -> None:
    ray_tune = begin(tmp_path, factory=WorkerResources(1, {"CPU": 2.0}))
    trial = resize(ray_tune, clock)
    assert can_move(trial)  # type: ignore[arg-type]
    ray_tune.start()
    assert trial.placement_group_factory.bundles == [{"CPU": 2.0}, {"CPU": 2.0}]
    plain = {"epoch": 9, "accuracy": 0.2, keys.ITERATION_SECONDS: 1.0}
    ray_tune.report(trial, training_iteration=1, **plain)
    assert session_of(ray_tune).records[trial.trial_id].reports[-1].workers == 2


def test_a_batch_of_each_workers_own_is_cut_anew(tmp_path: Path) -> None:
    ray_tune = begin(tmp_path, batch="local")
    (trial,) = ray_tune.trials
    assert (trial.config["num_workers"], trial.config["batch_size"]) == (1, 64)
    ray_tune.report(trial, **metered(1, 1.0))
    ray_tune.searcher.sweep.resize(trial.trial_id, Resize(2, ""))  # type: ignore[attr-defined]
    trial.status = Trial.PAUSED
    assert ray_tune.start() is trial
    assert (trial.config["num_workers"], trial.config["batch_size"]) == (2, 32)


def test_a_restore_keeps_the_changed_workers(tmp_path: Path, clock: Clock) -> None:
    ray_tune = begin(tmp_path)
    state = tmp_path / "state.json"
    ray_tune.searcher.save(str(state))
    trial = resize(ray_tune, clock)  # the driver dies here
    search = CostAwareSearch(GOAL, cost=WorkerHours())
    search.restore(str(state))
    again = FakeTune(search, tmp_path, factory=TRAIN)
    old = FakeTrial(trial.trial_id, dict(trial.config), tmp_path)
    old.placement_group_factory = TRAIN
    again.add(old)
    assert old.config["num_workers"] == 2
    assert search.session.committed_workers == 2
    assert again.start() is old
    ray_tune.searcher.save(str(state))
    assert json.loads(state.read_text())["session"]["records"][0]["resized"]["workers"] == 2


def test_a_paused_trial_is_ended_at_a_limit_of_the_sweep(tmp_path: Path, clock: Clock) -> None:
    limits = replace(GOAL, sweep_deadline_seconds=2000.0)
    ray_tune = begin(tmp_path, limits)
    trial = resize(ray_tune, clock)
    clock.now += 5000.0
    assert ray_tune.start() is None
    assert trial.status == Trial.TERMINATED
    assert trial.last_result["accuracy"] == 0.1
    ended = session_of(ray_tune).records[trial.trial_id].ended
    assert (ended.cause, "deadline of 2000 s" in ended.reason) == (EndCause.STOPPED, True)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"sweep_deadline_seconds": 400.0}, "the sweep's deadline of 400 s is reached"),
        ({"sweep_budget": 0.1}, "the sweep's budget of 0.1 worker-hours is spent"),
        ({"deadline_seconds": 400.0}, "401 s have passed, 301 s since a report"),
    ],
)
def test_a_trial_that_hangs_is_ended_at_a_limit_with_its_results_kept(
    tmp_path: Path, clock: Clock, limits: dict[str, Any], reason: str
) -> None:
    goal = Goal(metric="accuracy", mode="max", target=0.9, **limits)
    ray_tune = begin(tmp_path, goal, resize=False)
    (trial,) = ray_tune.trials
    clock.now += 100.0
    ray_tune.report(trial, **metered(1, 100.0))
    clock.now += 100.0
    ray_tune.start()
    assert trial.status == Trial.RUNNING
    clock.now += 201.0
    ray_tune.start()
    assert trial.status == Trial.TERMINATED
    record = session_of(ray_tune).records[trial.trial_id]
    assert (record.ended.cause, record.ended.reason) == (EndCause.STOPPED, reason)
    assert record.seconds == pytest.approx(401.0)
    assert "the best was 0.1" in str(session_of(ray_tune).plan())


def ask_workers(folder: Path, trial_id: str, at: float) -> Journal:
    own = Journal(folder / "raycosttune" / "trials" / f"{trial_id}.jsonl")
    own.append(run_header_row(trial_id), requested_row(trial_id, at))
    return own


@pytest.mark.parametrize("more", [[], [begun_row("t1")], [requested_row("t1", 0.0)]])
def test_an_end_says_whether_its_first_workers_were_still_starting(
    tmp_path: Path, clock: Clock, more: list[Row]
) -> None:
    goal = Goal(metric="accuracy", mode="max", target=0.9, deadline_seconds=100.0)
    ray_tune = begin(tmp_path, goal, resize=False)
    (trial,) = ray_tune.trials
    ask_workers(tmp_path, trial.trial_id, clock.now).append(*more)
    clock.now += 101.0
    ray_tune.start()
    record = session_of(ray_tune).records[trial.trial_id]
    assert record.ended.is_starting is (more == [])
    assert journal(tmp_path)[-1]["is_starting"] is record.ended.is_starting


def test_a_deadline_counts_from_the_request_for_workers_before_a_report_as_after_it(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", clock)
    goal = Goal(metric="accuracy", mode="max", target=0.9, deadline_seconds=100.0)
    ray_tune = begin(tmp_path, goal, resize=False)
    (trial,) = ray_tune.trials
    clock.now += 30.0  # Ray boots
    ask_workers(tmp_path, trial.trial_id, clock.now)
    clock.now += 99.0
    ray_tune.start()
    assert trial.status == Trial.RUNNING
    clock.now += 2.0
    ray_tune.start()
    assert trial.status == Trial.TERMINATED
    record = session_of(ray_tune).records[trial.trial_id]
    assert record.ended.reason == "101 s have passed, 101 s since a report"
    assert record.seconds == pytest.approx(101.0)


def test_a_start_that_fails_is_paid_from_the_request_for_its_workers(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", clock)
    ray_tune = begin(tmp_path, resize=False)
    (trial,) = ray_tune.trials
    clock.now += 30.0
    ask_workers(tmp_path, trial.trial_id, clock.now)
    clock.now += 7.0
    ray_tune.fail(trial, "it broke")
    assert session_of(ray_tune).records[trial.trial_id].seconds == pytest.approx(7.0)


def test_a_profile_that_hangs_is_ended_at_the_sweeps_deadline(tmp_path: Path, clock: Clock) -> None:
    goal = Goal(metric="accuracy", mode="max", target=0.9, sweep_deadline_seconds=400.0)
    ray_tune = begin(tmp_path, goal, profile=True)
    (trial,) = ray_tune.trials
    assert keys.PROFILE in trial.config
    clock.now += 401.0
    ray_tune.start()
    assert trial.status == Trial.TERMINATED
    (profile,) = session_of(ray_tune).profiles.values()
    assert profile.ended.cause is EndCause.STOPPED
    assert profile.seconds == pytest.approx(401.0)


def test_a_change_of_an_unknown_trial_is_no_matter(tmp_path: Path) -> None:
    ray_tune = begin(tmp_path)
    sweep = ray_tune.searcher.sweep  # type: ignore[attr-defined]
    sweep.resize("unknown", Resize(2, ""))
    sweep.go_on("unknown")
    assert sweep.config("unknown", {}) is None
    assert isinstance(sweep.session, Session)
