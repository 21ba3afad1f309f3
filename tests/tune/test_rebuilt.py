import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import tune
from ray.tune.experiment import Trial

from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.observation import EndCause
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import FakeTrial, FakeTune, session_of

SPACE = {
    "workers": {"count": tune.choice([1, 2])},
    "batch_size": tune.choice([32, 64]),
    "lr": tune.loguniform(1e-3, 1e-1),
}
FLAT = {
    "training_iteration": 1,
    "time_this_iter_s": 2.0,
    "epoch": 1,
    "val": {"accuracy": 0.3},
    "done": False,
}


def make_search() -> CostAwareSearch:
    return CostAwareSearch(
        Goal(metric="val/accuracy", mode="max", target=0.9),
        workers_key="workers/count",
        learning_rate=LearningRate(reference_batch=32),
    )


def lose_everything(folder: Path, status: str, *rows: object) -> tuple[FakeTune, FakeTrial]:
    """Restores a trial of which Tune alone knows, with what Tune has logged of it."""
    ran = FakeTune(make_search(), folder / "ran", SPACE)
    trial = ran.suggest("t1")
    log = folder / "t1" / "result.json"
    log.parent.mkdir()
    log.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    search = make_search()
    search.restore(str(folder / "nothing"))
    again = FakeTune(search, folder)
    again.search_alg._experiment = SimpleNamespace(spec={"config": SPACE})
    restored = FakeTrial("t1", trial.config, folder)
    restored.status = status
    restored.last_result = rows[-1] if isinstance(rows[-1], dict) else {}
    again.add(restored)
    known, lost = session_of(ran).records["t1"], session_of(again).records["t1"]
    assert lost.allocation == known.allocation
    assert lost.recipe == pytest.approx(known.recipe)
    return again, restored


@pytest.mark.parametrize(
    ("status", "cause"),
    [(Trial.TERMINATED, EndCause.FINISHED), (Trial.ERROR, EndCause.FAILED)],
)
def test_an_ended_trial_is_rebuilt_from_what_tune_has_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: str, cause: EndCause
) -> None:
    last = {**FLAT, "training_iteration": 2, "epoch": 2, "val": {"accuracy": 0.4}}
    ray_tune, _ = lose_everything(tmp_path, status, FLAT, "[1]", "not JSON", last)
    record = session_of(ray_tune).records["t1"]
    assert [(r.epoch, r.value, r.seconds) for r in record.reports] == [
        (1.0, 0.3, 2.0),
        (2.0, 0.4, 2.0),
    ]
    assert record.ended.cause is cause
    assert "rebuilt from Tune's own record, with 2 reports" in caplog.text
    assert session_of(ray_tune).spent > 0
    rows = (tmp_path / "raycosttune" / "journal.jsonl").read_text()
    assert rows.count('"report"') == 2


def test_a_running_trial_goes_on_where_tune_has_logged_it(tmp_path: Path) -> None:
    ray_tune, trial = lose_everything(tmp_path, Trial.PENDING, FLAT)
    assert ray_tune.start() is trial
    ray_tune.report(trial, **{"val/accuracy": 0.95, "epoch": 2})
    record = session_of(ray_tune).records["t1"]
    assert [(r.attempt, r.epoch) for r in record.reports] == [(1, 1.0), (2, 2.0)]
    assert record.ended.cause is EndCause.REACHED


def test_a_trial_without_a_log_is_known_with_its_last_result(tmp_path: Path) -> None:
    ray_tune, trial = lose_everything(tmp_path, Trial.PENDING, "")
    assert ray_tune.start() is trial
    assert session_of(ray_tune).records["t1"].reports == []


@pytest.mark.parametrize("change", [{"batch_size": 7}, {"workers": 1}, {"workers": {}}])
def test_a_trial_of_another_space_is_left_out_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, change: dict[str, Any]
) -> None:
    search = make_search()
    search.restore(str(tmp_path / "nothing"))
    ray_tune = FakeTune(search, tmp_path)
    ray_tune.search_alg._experiment = SimpleNamespace(spec={"config": SPACE})
    config = {"workers": {"count": 1}, "batch_size": 32, "lr": 0.1, **change}
    with caplog.at_level(logging.ERROR):
        ray_tune.add(FakeTrial("t1", config, tmp_path))
    assert "none of this search" in caplog.text
    assert session_of(ray_tune).records == {}
