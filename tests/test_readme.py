import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import tune

from raycosttune import Allocation, NoPlan
from raycosttune.core.cost import check_cost_metric
from raycosttune.core.space import Space
from raycosttune.tune import CostAwareScheduler, CostAwareSearch

TEXT = (Path(__file__).parents[1] / "README.md").read_text()
FIRST, LOOP, FUNCTION, COST, RESTORE = re.findall(
    r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL
)


def run(block: str, **names: object) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "readme", **names}
    exec(compile(block, "README.md", "exec"), scope)  # noqa: S102 - the README's own code
    return scope


def test_the_first_example_ends_within_25_lines() -> None:
    assert TEXT[: TEXT.index(FIRST) + len(FIRST)].count("\n") < 25


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
    assert capsys.readouterr().out.startswith("no plan: no trial has started")


def test_the_training_loop_is_a_function_of_a_config() -> None:
    assert callable(run(LOOP)["train_loop"])


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_sweep_of_a_function_finds_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tune, "run", partial(tune.run, storage_path=str(tmp_path), verbose=0))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        search = run(FUNCTION)["search"]
    finally:
        ray.shutdown()
    assert not isinstance(search.plan(), NoPlan)
    assert str(search.plan()) in capsys.readouterr().out


def test_a_restored_sweep_has_its_plan(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Restored:
        def __init__(self, path: str, trainable: object) -> None:
            assert callable(trainable)
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
