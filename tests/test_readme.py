import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import ray.train.torch
import torch
from ray import tune

from raycosttune import Allocation, Goal, NoPlan
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.space import Space
from raycosttune.tune import CostAwareScheduler, CostAwareSearch, Progress, torch_trainable
from raycosttune.tune.plan import TunePlan
from tests.real_ray import wait_for_two_workers
from tests.train.lean import LeanTrainer

TEXT = (Path(__file__).parents[1] / "README.md").read_text()
FIRST, LOOP, TRAINER, STOP, FUNCTION, ESTIMATE, COST, BALANCE, TUNER, RESTORE = re.findall(
    r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL
)
SPACE = {"num_workers": tune.choice([1, 2]), "batch_size": tune.choice([64])}


def run(block: str, **names: object) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "readme", **names}
    exec(compile(block, "README.md", "exec"), scope)  # noqa: S102 - the README's own code
    return scope


def test_the_first_example_ends_within_25_lines() -> None:
    assert TEXT[: TEXT.index(FIRST) + len(FIRST)].count("\n") < 25


def test_the_example_of_rebalancing_makes_a_trainable() -> None:
    made: list[Any] = []

    def keep(train_loop: Any, callbacks: list[Any]) -> None:
        made.append(torch_trainable(train_loop, callbacks=callbacks))

    scope = run(
        BALANCE, torch_trainable=keep, dataset=[1.0, 2.0], Net=lambda: torch.nn.Linear(1, 1)
    )
    scope["train_loop"]({"batch_size": 2})
    assert len(made) == 1


def test_a_sweep_costs_at_most_12_lines_on_top_of_the_loop() -> None:
    assert len([line for line in FIRST.splitlines() if line.strip()]) <= 12


def test_the_first_example_makes_a_sweep(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: dict[str, Any] = {}

    def run_no_trial(_: object, **options: Any) -> None:
        called.update(options)
        options["search_alg"].set_search_properties(None, None, options["config"])

    monkeypatch.setattr(tune, "run", run_no_trial)
    search = run(FIRST, train_loop=lambda _: None)["search"]
    assert called["search_alg"] is search
    assert isinstance(search, CostAwareSearch)
    assert isinstance(called["scheduler"], CostAwareScheduler)
    assert called["verbose"] == 0  # else Tune's tables bury what a sweep tells
    assert [type(callback) for callback in called["callbacks"]] == [Progress]
    assert f"~/ray_results/{called['name']}" in TEXT
    assert capsys.readouterr().out.startswith("no plan: no trial has started")


def test_the_training_loop_is_a_function_of_a_config() -> None:
    assert callable(run(LOOP)["train_loop"])


def test_a_sweep_that_reached_nothing_has_no_production_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    goal = Goal(metric="accuracy", mode="max", target=0.97)
    assert "trainer" not in run(TRAINER, search=CostAwareSearch(goal, space=SPACE))
    assert capsys.readouterr().out.startswith("no plan: no trial has started")


def network() -> torch.nn.Linear:
    """Returns a classifier that learns the same on any order of its samples."""
    model = torch.nn.Linear(1, 2)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[-0.1], [0.1]]))
        model.bias.zero_()
    return model


def by_weight(model: torch.nn.Linear) -> float:
    """Returns an accuracy that rises with every epoch, as the weights grow."""
    return min(0.5 + float(model.weight.abs().max()), 1.0)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("shared_ray")
@pytest.mark.timeout(480)
def test_the_production_runs_end_at_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_tune: Callable[..., Any] = tune.run
    kept = ray.train.RunConfig(storage_path=str(tmp_path))
    quiet = {"num_samples": 1, "storage_path": str(tmp_path), "verbose": 0}
    monkeypatch.setattr(tune, "run", lambda what, **own: run_tune(what, **{**own, **quiet}))
    samples = [(torch.tensor([x]), int(x > 0)) for x in (-1.0, 1.0) for _ in range(128)]
    loop = run(LOOP, Net=network, dataset=samples, evaluate=by_weight)["train_loop"]
    search = run(FIRST, train_loop=loop)["search"]
    wait_for_two_workers()
    for record in search.session.records.values():
        reported = [report.epoch for report in record.reports]
        assert reported == list(range(1, len(reported) + 1))
        assert record.reports[0].startup_seconds > 0
        assert all(report.startup_seconds == 0 for report in record.reports[1:])
    plan = search.plan()
    assert isinstance(plan, TunePlan)
    epochs = math.ceil(plan.epochs)
    monkeypatch.setattr(ray.train.torch, "TorchTrainer", partial(LeanTrainer, run_config=kept))
    capsys.readouterr()
    run(TRAINER, search=search, train_loop=loop, Net=network)
    first = str(capsys.readouterr().out).strip().removesuffix(")").split("path=")[1]
    run(STOP, plan=plan, train_loop=loop)
    wait_for_two_workers()  # a run that Tune itself stops frees its own
    second = str(capsys.readouterr().out).strip().splitlines()[-1]
    for folder in (plan.checkpoint, first, second):
        assert torch.load(f"{folder}/state.pt", weights_only=True)["epoch"] == epochs


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("shared_ray")
@pytest.mark.timeout(240)
def test_the_sweep_of_a_function_finds_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tune, "run", partial(tune.run, storage_path=str(tmp_path)))
    search = run(FUNCTION)["search"]
    assert not isinstance(search.plan(), NoPlan)
    told = capsys.readouterr().out
    assert str(search.plan()) in told
    assert " starts: " in told  # by Progress
    assert len(told.splitlines()) < 60 + 3 * len(search.session.records)


def test_the_estimate_needs_no_trial(capsys: pytest.CaptureFixture[str]) -> None:
    run(ESTIMATE)
    assert "likely" in capsys.readouterr().out


def test_the_tuner_takes_the_first_example(monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, Any] = {}

    def make(trainable: object, **options: object) -> SimpleNamespace:
        made.update(options, trainable=trainable)
        return SimpleNamespace(fit=lambda: made.update(is_fitted=True))

    monkeypatch.setattr(tune, "Tuner", make)
    search = CostAwareSearch(Goal(metric="accuracy", mode="max", target=0.97))
    run(
        TUNER,
        tune=tune,
        search=search,
        train_loop=lambda _: None,
        torch_trainable=torch_trainable,
        CostAwareScheduler=CostAwareScheduler,
        Progress=Progress,
    )
    assert made["is_fitted"]
    assert callable(made["trainable"])
    assert made["tune_config"].search_alg is search
    assert isinstance(made["tune_config"].scheduler, CostAwareScheduler)
    assert f"~/ray_results/{made['run_config'].name}" in RESTORE
    search.set_search_properties(None, None, made["param_space"])


def test_a_restored_sweep_has_its_plan(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Restored:
        def __init__(self, path: str, trainable: object, param_space: dict[str, Any]) -> None:
            assert callable(trainable)
            assert set(param_space) == {"num_workers", "batch_size"}
            self.path = path
            self.is_fitted = False

        def fit(self) -> None:
            self.is_fitted = True

    class Search:
        def __init__(self, tuner: Restored) -> None:
            self.tuner = tuner

        def plan(self) -> str:
            return f"the plan of {self.tuner.path}, fitted: {self.tuner.is_fitted}"

    monkeypatch.setattr(tune.Tuner, "restore", Restored)
    monkeypatch.setattr(CostAwareSearch, "of", Search)
    run(RESTORE, train_loop=lambda _: None)
    assert capsys.readouterr().out == "the plan of ~/ray_results/NAME, fitted: True\n"


def test_the_cost_metric_obeys_the_laws_and_bills_by_the_minute() -> None:
    euros = run(COST)["Euros"]()
    check_cost_metric(euros, Space((1, 2, 4), (32, 64), workers_per_node=2).cells)
    assert euros(Allocation(4, 64, nodes=2), 61) == pytest.approx(2 * 1.35 * 2 / 60)
