from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray import tune

from raycosttune.core.decision import Run
from raycosttune.errors import InvalidSpaceError
from raycosttune.tune import setup
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, FakeTune

SPACE = {
    "num_workers": tune.choice([1, 2]),
    "batch_size": tune.choice([32, 33, 64]),
    "model": {"head": {"deep": {"lr": tune.loguniform(1e-3, 1e-1)}}, "name": "cnn"},
    "momentum": tune.quniform(0.1, 0.9, 0.1),
    "layers": tune.randint(1, 9),
}


def fill(point: Any, tmp_path: Path) -> dict[str, Any]:
    search = CostAwareSearch(GOAL, points_to_evaluate=[point])
    config: dict[str, Any] = FakeTune(search, tmp_path, SPACE).suggest().config
    return config


def test_a_nested_point_is_the_first_trial(tmp_path: Path) -> None:
    point = {
        "num_workers": 2,
        "batch_size": np.int64(32),
        "model": {"head": {"deep": {"lr": 0.02}}, "name": "cnn"},
        "momentum": 0.5,
    }
    config = fill(point, tmp_path)
    del config["model"]["head"]["deep"]  # compared on its own, below
    assert (config["num_workers"], config["batch_size"], config["momentum"]) == (2, 32, 0.5)
    assert type(config["batch_size"]) is int
    flat = {"model/head/deep/lr": 0.02}
    assert fill(flat, tmp_path / "flat")["model"]["head"]["deep"] == {"lr": 0.02}


def test_a_point_in_part_is_filled_by_the_search(tmp_path: Path) -> None:
    config = fill({"model": {"head": {"deep": {"lr": 0.05}}}}, tmp_path)
    assert config["model"]["head"]["deep"]["lr"] == 0.05
    assert config["num_workers"] in (1, 2)
    assert config["batch_size"] in (32, 33, 64)
    assert 0.1 <= config["momentum"] <= 0.9


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"num_workers": 3}, r'points_to_evaluate\[0\] .*"num_workers": 3 .*\[1, 2\]'),
        ({"batch_size": 48}, r'"batch_size": 48 .*\[32, 33, 64\]'),
        ({"model": {"head": {"deep": {"lr": 5.0}}}}, r'"model/head/deep/lr": 5.0 .*high=0.1'),
        ({"momentum": "much"}, r"\"momentum\": 'much'"),
        ({"model": {"name": "mlp"}}, r"\"model/name\": 'mlp' where the space has 'cnn'"),
        ({"model/head/deep/lr": "0.05"}, r"\"model/head/deep/lr\": '0.05' where"),
        ({"momentum": True}, r'"momentum": True where'),
        ({"momentum": float("nan")}, r'"momentum": nan where'),
        ({"num_workers": True}, r'"num_workers": True where'),
        ({"num_workers": float("nan")}, r'"num_workers": nan where'),
        ({"layers": 2.5}, r'"layers": 2.5 where'),
        ({"model": {"name": np.zeros(2)}}, r'"model/name": array'),
        ({"num_workers": 2, "batch_size": 33}, r"2 workers at batch 33: its batch can't be split"),
        ({"weight": 1}, r'"weight": 1 where the space searches'),
        ("lr=0.1", "points_to_evaluate must be a list of dicts"),
    ],
)
def test_a_point_outside_the_space_is_refused_before_any_trial(
    point: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSpaceError, match=message):
        fill(point, tmp_path)
    with pytest.raises(InvalidSpaceError, match=message):
        CostAwareSearch(GOAL, space=SPACE, points_to_evaluate=[point])


def test_after_a_restore_a_point_that_ran_is_not_run_again(tmp_path: Path) -> None:
    points = [{"num_workers": 2, "batch_size": 64}, {"num_workers": 1, "batch_size": 64}]
    search = CostAwareSearch(GOAL, points_to_evaluate=points)
    first = FakeTune(search, tmp_path, SPACE).suggest()
    search.save(str(tmp_path / "state"))
    again = CostAwareSearch(GOAL, points_to_evaluate=points)
    again.restore(str(tmp_path / "state"))
    again.set_search_properties(None, None, SPACE)
    (record,) = again.session.records.values()
    assert record.allocation.workers == first.config["num_workers"] == 2
    answer = again.session.ask("next", free_workers=8)
    assert not isinstance(answer, Run) or answer.allocation.workers == 1


def test_a_point_that_the_cluster_is_too_small_for_is_left_out_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(setup, "cluster_nodes", lambda: [{"CPU": 1.0}])
    config = fill({"num_workers": 2, "batch_size": 64}, tmp_path)
    assert config["num_workers"] == 1
    assert "points_to_evaluate[0], 2 workers at batch 64, is left out" in caplog.text
