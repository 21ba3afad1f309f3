import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from raycosttune.core.observation import EndCause
from raycosttune.core.plan import NoPlan
from raycosttune.train import keys
from raycosttune.tune.notice import WRAP_TRAIN, hint_at, told_instead
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTrial, FakeTune, begin, journal, session_of

SAID = "Report the passes over the data done so far"
BARE = (
    "ray.exceptions.RayTaskError(DeprecationWarning): ray::ImplicitFunc.train() (pid=1)\n"
    "DeprecationWarning: `ray.train.get_context` is deprecated when running in a function passed "
    "to Ray Tune. Please use the equivalent `ray.tune` API instead. See this issue for more "
    "context: https://github.com/ray-project/ray/issues/49454"
)


def said(caplog: pytest.LogCaptureFixture, text: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if text in r.getMessage()]


@pytest.mark.parametrize(
    ("epochs", "seen"),
    [
        ((1, 1, 1), "reports epoch 1 again: of reports of one epoch only the first counts"),
        ((0, 1, 2), "reports epoch 0 first: each epoch is counted one too few"),
        ((3, 2, 1), "reports epoch 2 after 3: costs and epochs come out wrong"),
        (("1", "2", "3"), "reports '1' as its epoch: its reports are counted instead"),
        ((None, None, None), "reports None as its epoch: its reports are counted instead"),
        ((True, True, True), "reports True as its epoch: its reports are counted instead"),
    ],
)
def test_an_epoch_that_misleads_is_told_once_and_its_results_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, epochs: tuple[Any, ...], seen: str
) -> None:
    with caplog.at_level(logging.WARNING):
        ray_tune, (trial,) = begin(tmp_path)
        for epoch in epochs:
            ray_tune.report(trial, accuracy=0.5, epoch=epoch)
    (text,) = said(caplog, SAID)
    assert f"{trial.trial_id} {seen}" in text
    (record,) = session_of(ray_tune).records.values()
    assert record.reports
    assert record.reports[0].value == 0.5


def test_no_epoch_at_all_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ray_tune, (trial,) = begin(tmp_path)
        ray_tune.report(trial, accuracy=0.5)
        ray_tune.report(trial, accuracy=0.6)
    (text,) = said(caplog, SAID)
    assert f"{trial.trial_id} reports no epoch: its reports are counted instead" in text


@pytest.mark.parametrize("epochs", [(1, 2, 3), (0.5, 1.0, 1.5), (5, 10, 20)])
def test_an_epoch_that_rises_is_as_it_should_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, epochs: tuple[float, ...]
) -> None:
    with caplog.at_level(logging.WARNING):
        ray_tune, (trial,) = begin(tmp_path)
        for epoch in epochs:
            ray_tune.report(trial, accuracy=0.5, epoch=epoch)
        ray_tune.fail(trial, "the node is gone", again=True)
        ray_tune.start()
        ray_tune.report(trial, accuracy=0.5, epoch=epochs[0])
        ray_tune.report(trial, accuracy=0.5, epoch=epochs[1])
    assert said(caplog, SAID) == []


def test_a_function_without_its_wrapper_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        ray_tune, (trial,) = begin(tmp_path)
        ray_tune.report(trial, accuracy=0.5, epoch=1)
        ray_tune.report(trial, accuracy=0.6, epoch=2)
    (text,) = said(caplog, "is not wrapped")
    assert "Pass function_trainable(train), or torch_trainable(train_loop)" in text


@pytest.mark.parametrize("key", [keys.SECONDS, keys.ITERATION_SECONDS])
def test_a_wrapped_function_is_not_told_to_be_wrapped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    with caplog.at_level(logging.WARNING):
        ray_tune, (trial,) = begin(tmp_path)
        ray_tune.report(trial, accuracy=0.5, epoch=1, **{key: 1.0})
    assert said(caplog, "is not wrapped") == []


def test_a_bare_training_loop_is_told_to_be_wrapped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        ray_tune, (trial,) = begin(tmp_path)
        ray_tune.fail(trial, BARE)
    assert said(caplog, "must be wrapped: pass torch_trainable(train_loop)")
    ended = session_of(ray_tune).records[trial.trial_id].ended
    assert ended.reason.endswith(f"; {WRAP_TRAIN}")
    assert hint_at("ValueError: no such layer") == ""


def run_blind(folder: Path, trials: int, **metrics: Any) -> tuple[FakeTune, CostAwareSearch]:
    search = CostAwareSearch(GOAL)
    ray_tune = FakeTune(search, folder, SPACE)
    for _ in range(trials):
        trial = ray_tune.suggest()
        assert isinstance(trial, FakeTrial)
        ray_tune.start()
        ray_tune.report(trial, **metrics)
        ray_tune.finish(trial)
    return ray_tune, search


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ({"score": 0.99, "epoch": 1}, "epoch, score"),
        ({"accuracy": float("nan"), "epoch": 1}, "accuracy = nan, epoch"),
        ({"accuracy": "high", "epoch": 1}, "accuracy = 'high', epoch"),
        ({}, "nothing"),
    ],
)
def test_a_metric_that_never_comes_ends_the_sweep_after_three_trials(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, metrics: dict[str, Any], told: str
) -> None:
    with caplog.at_level(logging.INFO, logger="raycosttune"):
        ray_tune, search = run_blind(tmp_path, 3, **metrics)
        assert ray_tune.suggest() == "FINISHED"
    end = f"the last one: the training function returned; it reported {told}"
    reason = f"none of the first 3 trials reported a finite 'accuracy'; {end}"
    assert said(caplog, "the search ends") == [f"the search ends: {reason}"]
    explained = search.explain()
    assert f"ended: {reason}\n" in explained
    assert "%" not in explained
    plan = search.plan()
    assert isinstance(plan, NoPlan)
    assert f"none reported a finite 'accuracy'; {end}" in str(plan)


def test_a_metric_of_nearly_the_name_ends_the_sweep_after_one_trial(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="raycosttune"):
        ray_tune, search = run_blind(tmp_path, 1, acc=0.99, epoch=1)
        assert ray_tune.suggest() == "FINISHED"
    (text,) = said(caplog, "reports no finite number")
    assert text.endswith("It reported: acc, epoch; perhaps metric='acc' is meant.")
    (record,) = search.session.records.values()
    assert record.ended is not None
    assert record.ended.cause is EndCause.MISNAMED
    assert len(record.reports) == 1
    end = "the training function returned; it reported acc, epoch; perhaps metric='acc' is meant"
    assert "the first trial never reported a finite 'accuracy'" in search.explain()
    assert end in str(search.plan())
    assert [row["cause"] for row in journal(tmp_path) if row["row"] == "ended"] == ["misnamed"]


def test_a_run_that_reports_nearly_the_name_is_not_stopped_by_it(tmp_path: Path) -> None:
    """Its evaluation may come with every tenth report."""
    ray_tune, (trial,) = begin(tmp_path)
    for epoch in range(1, 10):
        assert ray_tune.report(trial, acc=0.99, epoch=epoch) == "CONTINUE"
    assert ray_tune.report(trial, acc=0.99, accuracy=0.5, epoch=10) == "CONTINUE"
    assert ray_tune.report(trial, acc=0.99, epoch=11) == "CONTINUE"
    ray_tune.finish(trial)
    assert session_of(ray_tune).records[trial.trial_id].ended.cause is EndCause.FINISHED
    assert isinstance(ray_tune.suggest(), FakeTrial)


def test_a_failure_before_an_evaluation_is_no_wrong_name(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, acc=0.99, epoch=1)
    ray_tune.fail(trial, "the node is gone")
    assert session_of(ray_tune).records[trial.trial_id].ended.cause is EndCause.FAILED
    assert isinstance(ray_tune.suggest(), FakeTrial)


def test_a_run_that_a_deadline_ends_without_the_metric_was_likely_misnamed(tmp_path: Path) -> None:
    search = CostAwareSearch(replace(GOAL, deadline_seconds=5.0))
    ray_tune = FakeTune(search, tmp_path, SPACE)
    trial = ray_tune.suggest()
    assert isinstance(trial, FakeTrial)
    ray_tune.start()
    epoch, decision = 0, "CONTINUE"
    while decision == "CONTINUE":
        epoch += 1
        decision = ray_tune.report(trial, Accuracy=0.99, epoch=epoch)
    assert ray_tune.suggest() == "FINISHED"
    assert "perhaps metric='Accuracy' is meant" in str(search.plan())


def test_one_usable_value_lets_the_sweep_go_on(tmp_path: Path) -> None:
    ray_tune, _ = run_blind(tmp_path, 2, score=0.9, epoch=1)
    trial = ray_tune.suggest()
    ray_tune.start()
    ray_tune.report(trial, accuracy=0.1, epoch=1)
    ray_tune.finish(trial)
    assert isinstance(ray_tune.suggest(), FakeTrial)


def test_a_first_report_at_the_target_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    goal = GOAL.__class__(metric="accuracy", mode="min", target=0.97)
    with caplog.at_level(logging.WARNING):
        ray_tune = FakeTune(CostAwareSearch(goal, max_concurrent=2), tmp_path, SPACE)
        first, second = ray_tune.suggest(), ray_tune.suggest()
        ray_tune.report(first, accuracy=0.93, epoch=1)
        ray_tune.report(second, accuracy=0.93, epoch=1)
    (text,) = said(caplog, "is the mode right")
    assert text == (
        "the first report of t1 is at the target already (accuracy 0.93, at most 0.97): is the "
        "mode right, is the target too easy?"
    )
    (record, _) = session_of(ray_tune).records.values()
    assert record.ended.reason == "reached the target of at most 0.97 with accuracy 0.93"


@pytest.mark.parametrize("values", [(0.5, 0.95), (0.5,)])
def test_a_later_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, values: tuple[float, ...]
) -> None:
    with caplog.at_level(logging.WARNING):
        ray_tune, (first, second) = begin(tmp_path, trials=2)
        for epoch, value in enumerate(values, 1):
            ray_tune.report(first, accuracy=value, epoch=epoch)
        ray_tune.report(second, accuracy=0.95, epoch=1)
    assert said(caplog, "is the mode right") == []


def test_many_names_are_cut_short() -> None:
    result = {f"metric{k}": k for k in range(10)}
    assert told_instead(result, "accuracy").endswith("metric6, metric7 and 2 more")


def test_a_trial_that_tune_itself_stops_is_said_to_be(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.1, epoch=1)
    # Tune hands the result at which its own stop holds to nobody but on_trial_complete.
    trial.last_result = {**trial.last_result, "training_iteration": 2, "epoch": 2, "done": True}
    ray_tune.stop_trial(trial)
    record = session_of(ray_tune).records[trial.trial_id]
    assert [report.epoch for report in record.reports] == [1.0, 2.0]
    assert record.ended.cause is EndCause.FINISHED  # so that the next is expected to end so too
    assert record.ended.reason == "Tune's own stop ended it"
    search: Any = ray_tune.searcher
    assert "; the last one: Tune's own stop ended it. " in str(search.plan())


def test_a_worker_that_is_held_until_a_limit_is_paid_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    goal = GOAL.__class__(**{**vars(GOAL), "sweep_deadline_seconds": 0.5})
    search = CostAwareSearch(goal)
    ray_tune = FakeTune(search, tmp_path, SPACE)
    assert isinstance(ray_tune.suggest(), FakeTrial)
    now = 2.0
    assert ray_tune.start() is None
    (record,) = search.session.records.values()
    assert record.ended is not None
    assert (record.ended.cause, record.ended.seconds) == (EndCause.STOPPED, 2.0)
    assert search.session.spent > 0
    assert "the search ended: the sweep's deadline of 0.5 s is reached" in str(search.plan())
