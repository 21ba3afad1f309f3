import json
import math
import pickle
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import tune
from tensorboardX.proto.event_pb2 import Event

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.report import read_sweep
from raycosttune.tune import (
    CostAwareScheduler,
    CostAwareSearch,
    Progress,
    SweepMetrics,
    function_trainable,
    sweep_metrics,
)
from raycosttune.tune.sweep_metrics import BEST, COMMITTED, DESCRIPTIONS, GAP, SPENT
from tests.tune.fakes import GOAL, begin

TRIAL = SimpleNamespace(storage=SimpleNamespace(experiment_dir_name="mine"))


def test_a_result_gets_the_sweep_s_figures(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    metrics = SweepMetrics(ray_tune.searcher)  # type: ignore[arg-type]
    first: dict[str, Any] = {"raycosttune/imbalance": 0.2}
    metrics.on_trial_result(1, [], TRIAL, first)
    assert math.isnan(first[BEST])
    assert math.isnan(first[GAP])
    assert (first[SPENT], first[COMMITTED]) == (0, trial.config["num_workers"])
    ray_tune.report(trial, epoch=1, accuracy=0.95)
    last: dict[str, Any] = {}
    metrics.on_trial_result(2, [], TRIAL, last)
    assert last[SPENT] == pytest.approx(ray_tune.searcher.session.spent)  # type: ignore[attr-defined]
    assert last[BEST] > 0
    assert 0 <= last[GAP] <= 1
    assert last[COMMITTED] == 0


def test_gauges_are_set_where_a_trial_ends_without_a_result(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    metrics = SweepMetrics(ray_tune.searcher)  # type: ignore[arg-type]
    told: dict[str, tuple[float, dict[str, str]]] = {}

    class Seen:
        def __init__(self, name: str, *_: object) -> None:
            self.name = name

        def set(self, value: float, tags: dict[str, str]) -> None:
            told[self.name] = value, tags

    metrics.on_trial_complete(1, [], TRIAL)  # nothing is known yet, and nothing is set
    assert told == {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep_metrics, "Gauge", Seen)
        metrics.on_trial_result(1, [], TRIAL, {})
        held = told["raycosttune_sweep_committed_workers"]
        assert held == (trial.config["num_workers"], {"experiment": "mine"})
        ray_tune.report(trial, epoch=1, accuracy=0.95)
        metrics.on_trial_complete(2, [], TRIAL)
    assert told["raycosttune_sweep_committed_workers"][0] == 0
    assert told["raycosttune_sweep_best_cost"][0] > 0
    metrics._search = CostAwareSearch(GOAL)
    metrics.on_trial_error(3, [], TRIAL)
    assert metrics._is_broken
    metrics.on_experiment_end([])


def test_what_can_t_be_logged_ends_no_sweep(caplog: pytest.LogCaptureFixture) -> None:
    metrics = SweepMetrics(CostAwareSearch(GOAL))
    for _ in range(2):
        metrics.on_trial_result(1, [], TRIAL, {})
    assert caplog.text.count("can't be logged any more; the sweep goes on") == 1


def test_it_is_saved_without_its_gauges() -> None:
    metrics = SweepMetrics(CostAwareSearch(GOAL))
    metrics._gauges = {"a": lambda: None}  # type: ignore[dict-item]
    assert pickle.loads(pickle.dumps(metrics))._gauges == {}  # noqa: S301 - its own


def test_the_dashboard_asks_for_what_is_exported() -> None:
    text = (Path(__file__).parents[2] / "docs" / "grafana.json").read_text()
    asked = set(re.findall(r"ray_(raycosttune_\w+)", text))
    assert asked == {key.replace("/", "_") for key in DESCRIPTIONS}
    assert {panel["type"] for panel in json.loads(text)["panels"]} == {"timeseries"}


def train(config: dict[str, Any]) -> None:
    for epoch in range(1, 4):
        tune.report({"epoch": epoch, "accuracy": 0.4 * epoch * config["num_workers"]})


def scalars(path: Path) -> Iterator[tuple[str, float]]:
    """Reads the scalars of TensorBoard's event files: records with their length before them."""
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        event = Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]
        for value in event.summary.value:
            yield value.tag, value.simple_value


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("shared_ray")
def test_tensorboard_and_the_page_show_a_real_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goal = Goal(metric="accuracy", mode="max", target=0.7, deadline_seconds=60, planned_runs=1)
    search = CostAwareSearch(goal, cost=WorkerHours())
    tune.run(
        function_trainable(train),
        config={"num_workers": tune.choice([1, 2]), "batch_size": tune.choice([32, 64])},
        search_alg=search,
        scheduler=CostAwareScheduler(),
        callbacks=[SweepMetrics(search), Progress(search)],
        num_samples=-1,
        storage_path=str(tmp_path),
        name="mine",
        verbose=0,
    )
    files = list((tmp_path / "mine").rglob("events.out.tfevents.*"))
    told = [pair for path in files for pair in scalars(path)]
    spent = [value for tag, value in told if tag == f"ray/tune/{SPENT}"]
    best = [value for tag, value in told if tag == f"ray/tune/{BEST}"]
    assert spent
    assert max(spent) == pytest.approx(search.session.spent, rel=0.1)  # its end comes after
    assert best[-1] > 0
    assert "best so far: " in capsys.readouterr().out
    view = read_sweep(tmp_path / "mine")
    assert view.plan is not None
    assert str(search.plan()) == view.summary
    assert view.status == "finished"
    assert all(trial.why for trial in view.trials)
