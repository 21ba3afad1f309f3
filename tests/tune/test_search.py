import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ray import tune
from ray.tune.search import ConcurrencyLimiter

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.observation import EndCause
from raycosttune.core.plan import NoPlan
from raycosttune.errors import InvalidGoalError, InvalidSpaceError
from raycosttune.train import keys
from raycosttune.tune.plan import TunePlan
from raycosttune.tune.search import CostAwareSearch
from raycosttune.tune.wrapper import unwrapped
from tests.tune.fakes import GOAL, FakeTune

SPACE = {
    "num_workers": tune.choice([1, 2]),
    "batch_size": tune.choice([32, 64]),
    "optimizer": {"lr": tune.loguniform(1e-3, 1e-1), "name": "sgd"},
}


def test_a_suggestion_is_nested_and_made_of_builtin_numbers(tmp_path: Path) -> None:
    trial = FakeTune(CostAwareSearch(GOAL), tmp_path, SPACE).suggest()
    assert trial.config["num_workers"] in (1, 2)
    assert trial.config["batch_size"] in (32, 64)
    assert set(trial.config["optimizer"]) == {"lr"}
    assert type(trial.config["num_workers"]) is int
    assert type(trial.config["optimizer"]["lr"]) is float


def test_a_local_batch_is_handed_out_as_the_user_reads_it(tmp_path: Path) -> None:
    search = CostAwareSearch(GOAL, batch="local")
    space = {"num_workers": 4, "batch_size": tune.choice([32])}
    assert FakeTune(search, tmp_path, space).suggest().config["batch_size"] == 32
    (record,) = search.session.records.values()
    assert record.allocation.batch_size == 128


def test_the_rate_follows_the_batch(tmp_path: Path) -> None:
    rate = LearningRate(reference_batch=32, rule="linear", key="optimizer/lr")
    search = CostAwareSearch(GOAL, learning_rate=rate)
    space = {**SPACE, "batch_size": 128, "optimizer": {"lr": tune.choice([0.1])}}
    trial = FakeTune(search, tmp_path, space).suggest()
    assert trial.config["optimizer"]["lr"] == pytest.approx(0.4)


def test_a_sweep_ends_by_itself_with_a_config_that_runs(tmp_path: Path) -> None:
    search = CostAwareSearch(replace(GOAL, planned_runs=1), cost=WorkerHours())
    ray_tune = FakeTune(search, tmp_path, SPACE)
    trial = ray_tune.suggest()
    assert isinstance(search.plan(), NoPlan)
    trial.config = {**trial.config, "optimizer": {**trial.config["optimizer"], "name": "sgd"}}
    search.sweep.configs[trial.trial_id] = trial.config
    ray_tune.start()
    assert ray_tune.report(trial, accuracy=0.5, epoch=1) == "CONTINUE"
    assert ray_tune.suggest() is None
    assert ray_tune.report(trial, accuracy=0.95, epoch=2) == "STOP"
    assert ray_tune.suggest() == "FINISHED"
    plan = search.plan()
    assert isinstance(plan, TunePlan)
    assert plan.config == trial.config
    assert str(plan).startswith(f"{plan.allocation.workers} worker")
    assert trial.trial_id in search.explain()


def test_metric_and_mode_may_come_from_tune(tmp_path: Path) -> None:
    search = CostAwareSearch(Goal(target=0.1))
    ray_tune = FakeTune(search, tmp_path, SPACE, metric="val/loss", mode="min")
    assert search.metric == "val/loss"
    trial = ray_tune.suggest()
    ray_tune.start()
    assert ray_tune.report(trial, **{"val/loss": 0.2, "epoch": 1}) == "CONTINUE"
    assert ray_tune.report(trial, **{"val/loss": 0.05, "epoch": 2}) == "STOP"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"metric": "loss"}, "metric must be the same in Goal.metric and in tune.run.*'loss'"),
        ({"mode": "min"}, "mode must be the same in Goal.mode and in tune.run.*'min'"),
    ],
)
def test_two_different_names_are_refused(names: dict[str, str], message: str) -> None:
    search = CostAwareSearch(GOAL)
    with pytest.raises(InvalidGoalError, match=message):
        search.set_search_properties(names.get("metric"), names.get("mode"), SPACE)


@pytest.mark.parametrize("name", ["metric", "mode"])
def test_a_missing_name_is_refused(name: str) -> None:
    missing: dict[str, Any] = {name: None}
    search = CostAwareSearch(replace(GOAL, **missing))
    with pytest.raises(InvalidGoalError, match=f"{name} must be given"):
        search.set_search_properties(None, None, SPACE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_workers": tune.grid_search([1])}, "grid_search"),
        ({"batch_size": tune.uniform(1, 2)}, '"batch_size" must have finitely'),
        ({"lr": tune.sample_from(lambda _: 1)}, '"lr"'),
        ({"lr": tune.randn(0, 1)}, '"lr"'),
        ({"model": tune.choice([[1], [2]])}, '"model"'),
        ({"batch_size": tune.choice([33]), "num_workers": 2}, "33 can't be split"),
    ],
)
def test_a_bad_space_is_refused_before_any_trial(changes: dict[str, Any], message: str) -> None:
    search = CostAwareSearch(GOAL)
    with pytest.raises(InvalidSpaceError, match=message):
        search.set_search_properties(None, None, {**SPACE, **changes})


def test_a_search_without_a_space_says_so() -> None:
    with pytest.raises(InvalidSpaceError, match="must arrive before the first trial"):
        CostAwareSearch(GOAL).suggest("a")


def test_the_space_may_be_given_to_the_search(tmp_path: Path) -> None:
    search = CostAwareSearch(GOAL, space=SPACE)
    assert search.estimate().spent == 0
    assert FakeTune(search, tmp_path).suggest().config["optimizer"]["name"] == "sgd"
    # False makes Tune refuse domains that would stay unresolved in its own config.
    assert search.set_search_properties(None, None, {"seed": 1}) is False


def test_another_space_is_refused_once_it_has_begun() -> None:
    search = CostAwareSearch(GOAL)
    search.set_search_properties(None, None, SPACE)
    search.set_search_properties(None, None, SPACE)
    with pytest.raises(InvalidSpaceError, match="must keep its space"):
        search.set_search_properties(None, None, {**SPACE, "batch_size": 16})


def test_more_than_the_limit_never_run(tmp_path: Path) -> None:
    search = CostAwareSearch(GOAL, max_concurrent=3)
    limiter = ConcurrencyLimiter(search, max_concurrent=2)
    ray_tune = FakeTune(limiter, tmp_path, SPACE)
    assert unwrapped(limiter, CostAwareSearch) is search
    assert ray_tune.suggest().config
    assert ray_tune.suggest().config
    assert ray_tune.suggest() is None


@pytest.mark.parametrize("value", [math.nan, math.inf, None, "high", [0.9]])
def test_a_value_that_is_no_number_is_an_observation(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, value: object
) -> None:
    search = CostAwareSearch(GOAL)
    ray_tune = FakeTune(search, tmp_path, SPACE)
    trial = ray_tune.suggest()
    ray_tune.start()
    with caplog.at_level(logging.WARNING):
        ray_tune.report(trial, accuracy=value, epoch=1)
        ray_tune.report(trial, accuracy=value, epoch=2)
    (record,) = search.session.records.values()
    assert [report.value for report in record.reports] == [None, None]
    assert search.session.spent > 0
    (said,) = [r.getMessage() for r in caplog.records if "no finite number" in r.message]
    assert said.endswith("It reported: accuracy, epoch.")


def test_a_missing_metric_is_told_with_what_was_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ray_tune = FakeTune(CostAwareSearch(GOAL), tmp_path, SPACE)
    trial = ray_tune.suggest()
    ray_tune.start()
    added = {"pid": 1, "done": False, "config/lr": 1, keys.SECONDS: 1.0, keys.CHECKPOINT: "/c"}
    ray_tune.report(trial, acc=0.9, epoch=1, **added)
    assert "as 'accuracy', got None: there it is never at the target" in caplog.text
    assert "It reported: acc, epoch; perhaps metric='acc' is meant." in caplog.text


def test_a_used_up_search_says_why_a_second_run_gets_no_trial(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    search = CostAwareSearch(replace(GOAL, planned_runs=1))
    with caplog.at_level(logging.WARNING):
        ray_tune = FakeTune(search, tmp_path / "one", SPACE)
        trial = ray_tune.suggest()
        ray_tune.start()
        ray_tune.report(trial, accuracy=0.95, epoch=1)
        assert ray_tune.suggest() == "FINISHED"
        assert "gets no trial" not in caplog.text
        assert FakeTune(search, tmp_path / "two", SPACE).suggest("new") == "FINISHED"
    assert "its search has already run 1 trial," in caplog.text
    assert "Make a new CostAwareSearch" in caplog.text


@pytest.mark.parametrize("much", [1e308, 1e300])
def test_amounts_beyond_reason_do_not_end_the_sweep(tmp_path: Path, much: float) -> None:
    search = CostAwareSearch(GOAL)
    ray_tune = FakeTune(search, tmp_path, SPACE)
    trial = ray_tune.suggest()
    ray_tune.start()
    ray_tune.report(trial, accuracy=0.1, epoch=much, time_this_iter_s=much)
    ray_tune.report(trial, accuracy=0.95, epoch=2)
    (record,) = search.session.records.values()
    assert [report.epoch for report in record.reports] == [1.0, 2.0]
    assert search.session.spent < 1
    assert isinstance(search.plan(), TunePlan)


@pytest.mark.parametrize("rate", [0.1, tune.choice(["0.1"]), tune.choice([0.1, "auto"])])
def test_a_rate_that_is_no_domain_of_numbers_is_refused_before_any_trial(rate: object) -> None:
    search = CostAwareSearch(GOAL, learning_rate=LearningRate(reference_batch=64))
    with pytest.raises(InvalidSpaceError, match=r"must name a domain of numbers.*got 'lr'.*Write"):
        search.set_search_properties(None, None, {**SPACE, "lr": rate})


def test_a_missing_epoch_counts_iterations(tmp_path: Path) -> None:
    search = CostAwareSearch(GOAL)
    ray_tune = FakeTune(search, tmp_path, SPACE)
    trial = ray_tune.suggest()
    ray_tune.start()
    ray_tune.report(trial, accuracy=0.1)
    ray_tune.report(trial, accuracy=0.2)
    (record,) = search.session.records.values()
    assert [report.epoch for report in record.reports] == [1.0, 2.0]


def test_reports_within_an_epoch_are_paid_for(tmp_path: Path) -> None:
    search = CostAwareSearch(GOAL)
    ray_tune = FakeTune(search, tmp_path, SPACE)
    trial = ray_tune.suggest()
    ray_tune.start()
    for epoch in (1, 1, 1, 2):
        ray_tune.report(trial, accuracy=0.1, epoch=epoch)
    (record,) = search.session.records.values()
    assert [report.seconds for report in record.reports] == [1.0, 3.0]


def test_a_trial_of_someone_else_is_ignored_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    search = CostAwareSearch(GOAL)
    FakeTune(search, tmp_path, SPACE)
    with caplog.at_level(logging.WARNING):
        search.on_trial_result("x", {"accuracy": 1, "training_iteration": 1})
        search.on_trial_complete(trial_id="x", result={"accuracy": 1}, error=False)
        search.on_trial_complete(trial_id="y", result=None, error=True)
    assert search.session.records == {}
    assert len(caplog.records) == 1


def test_a_result_that_cannot_be_read_is_an_observation(tmp_path: Path) -> None:
    class Hostile:
        def __float__(self) -> float:
            raise ZeroDivisionError

    search = CostAwareSearch(GOAL)
    ray_tune = FakeTune(search, tmp_path, SPACE)
    trial = ray_tune.suggest()
    ray_tune.start()
    ray_tune.report(trial, accuracy=Hostile(), epoch=1)
    (record,) = search.session.records.values()
    assert [(report.epoch, report.value) for report in record.reports] == [(1.0, None)]


def test_a_search_without_its_scheduler_warns_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    search = CostAwareSearch(GOAL)
    FakeTune(search, tmp_path, SPACE)
    search.suggest("a")
    search.on_trial_result("a", {"accuracy": 0.1, "training_iteration": 1})
    search.on_trial_result("a", {"accuracy": 0.2, "training_iteration": 2})
    assert len([r for r in caplog.records if "no CostAwareScheduler" in r.message]) == 1


def test_a_trial_that_returns_without_a_report_has_finished(tmp_path: Path) -> None:
    search = CostAwareSearch(GOAL)
    ray_tune = FakeTune(search, tmp_path, SPACE)
    trial = ray_tune.suggest()
    ray_tune.start()
    ray_tune.finish(trial)
    (record,) = search.session.records.values()
    assert record.reports == []
    assert record.ended is not None
    assert record.ended.cause is EndCause.FINISHED
    assert record.ended.reason.startswith(
        "the training function returned without a report: a loop "
    )
