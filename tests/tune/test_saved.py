import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle, tune
from ray.tune.search import ConcurrencyLimiter

from raycosttune.core.goal import Goal
from raycosttune.errors import InvalidStateError
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, FakeTune

SPACE = {"num_workers": tune.choice([1, 2]), "batch_size": tune.choice([32, 64])}


def test_a_search_comes_back_from_a_pickle_and_allows_missing_metrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = CostAwareSearch(GOAL, sampler=lambda seed: seed)  # type: ignore[arg-type,return-value]
    monkeypatch.delenv("TUNE_DISABLE_STRICT_METRIC_CHECKING")
    again = cloudpickle.loads(cloudpickle.dumps(search))
    again.set_search_properties(None, None, {"num_workers": 1, "batch_size": 32})
    assert isinstance(again.suggest("a"), dict)
    assert os.environ["TUNE_DISABLE_STRICT_METRIC_CHECKING"] == "1"


def test_a_restored_search_goes_on_as_the_unbroken_one(tmp_path: Path) -> None:
    search = CostAwareSearch(Goal(target=0.9), max_concurrent=4)
    ray_tune = FakeTune(search, tmp_path / "one", SPACE, metric="accuracy", mode="max")
    trial = ray_tune.suggest()
    ray_tune.start()
    ray_tune.report(trial, accuracy=0.3, epoch=1)
    path = tmp_path / "state.pkl"
    search.save(str(path))
    restored = CostAwareSearch(Goal(target=0.9), max_concurrent=4)
    restored.restore(str(path))
    assert restored.metric == "accuracy"
    assert restored.session.records == search.session.records
    assert restored.suggest("next") == search.suggest("next")
    assert json.loads(path.read_text())["version"] == 1


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"version": 99}', b'{"version": 1}', b"\x80\x04\x95"]
)
def test_restoring_a_damaged_file_never_raises(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path = tmp_path / "state.pkl"
    path.write_bytes(content)
    search = CostAwareSearch(GOAL)
    with caplog.at_level(logging.ERROR):
        search.restore(str(path))
    assert len(caplog.records) == 1
    assert not path.exists()
    assert (tmp_path / "state.pkl.kept-1").read_bytes() == content
    search.restore(str(path))


def test_a_session_that_cannot_be_read_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.pkl"
    search = CostAwareSearch(GOAL)
    FakeTune(search, tmp_path, SPACE).suggest()
    search.save(str(path))
    state = json.loads(path.read_text())
    state["session"]["version"] = 99
    path.write_text(json.dumps(state))
    restored = CostAwareSearch(GOAL)
    restored.restore(str(path))
    assert restored.session.records == {}
    assert "version 1, got 99" in caplog.text
    assert path.with_name("state.pkl.kept-1").exists()


def test_a_search_is_saved_before_it_has_a_space(tmp_path: Path) -> None:
    path = tmp_path / "state.pkl"
    CostAwareSearch(Goal(target=0.9)).save(str(path))
    restored = CostAwareSearch(Goal(target=0.9))
    restored.restore(str(path))
    restored.set_search_properties("accuracy", "max", SPACE)
    assert isinstance(restored.suggest("a"), dict)


def test_a_tuner_gives_its_search_back() -> None:
    search = CostAwareSearch(GOAL)
    tuner: Any = type("Tuner", (), {})()
    with pytest.raises(InvalidStateError, match="must hold a CostAwareSearch"):
        CostAwareSearch.of(tuner)
    config = type("Config", (), {"search_alg": ConcurrencyLimiter(search, max_concurrent=1)})
    tuner._local_tuner = type("Local", (), {"_tune_config": config})
    assert CostAwareSearch.of(tuner) is search
