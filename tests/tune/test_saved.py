import errno
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
    del state["sha256"]
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


def save_one(path: Path, metric: str = "accuracy") -> CostAwareSearch:
    search = CostAwareSearch(Goal(metric=metric, mode="max", target=0.9))
    search.set_search_properties(None, None, SPACE)
    search.suggest("a")
    search.save(str(path))
    return search


def test_a_state_that_was_changed_on_disk_is_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.pkl"
    save_one(path)
    text = path.read_text()
    assert '"elapsed_seconds": 0.' in text
    path.write_text(text.replace('"elapsed_seconds": 0.', '"elapsed_seconds": 9.'))
    CostAwareSearch(GOAL).restore(str(path))
    assert "its checksum is wrong" in caplog.text
    assert (tmp_path / "state.pkl.kept-1").exists()


def test_a_state_without_a_checksum_is_that_of_an_earlier_release(tmp_path: Path) -> None:
    path = tmp_path / "state.pkl"
    search = save_one(path)
    state = json.loads(path.read_text())
    del state["sha256"]
    path.write_text(json.dumps(state))
    restored = CostAwareSearch(GOAL)
    restored.restore(str(path))
    assert restored.session.records == search.session.records


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), TypeError("x")]
)
def test_a_state_that_cannot_be_written_is_told_and_the_last_one_stays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    path = tmp_path / "state.pkl"
    search = save_one(path)
    before = path.read_bytes()

    def fail(_: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    search.save(str(path))
    assert "can't be saved" in caplog.text
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    search.save(str(tmp_path / "no folder" / "state.pkl"))


@pytest.mark.parametrize("damage", ["directory", "unreadable", "another metric", "truncated"])
def test_what_cannot_be_read_gives_way_to_the_state_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    old, new = (tmp_path / f"searcher-state-{day}.pkl" for day in ("1", "2"))
    search = save_one(old)
    match damage:
        case "directory":
            new.mkdir()
        case "unreadable":
            new.touch()
            read = Path.read_bytes

            def refuse(path: Path) -> bytes:
                if path == new:
                    raise PermissionError(errno.EACCES, "Permission denied")
                return read(path)

            monkeypatch.setattr(Path, "read_bytes", refuse)
        case "another metric":
            save_one(new, metric="f1")
        case _:
            new.write_bytes(old.read_bytes()[:-10])
    restored = CostAwareSearch(GOAL)
    restored.restore_from_dir(str(tmp_path))
    assert restored.session.records == search.session.records
    assert new.with_name(f"{new.name}.kept-1").exists()


def test_a_folder_without_any_state_is_told_and_does_not_raise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    CostAwareSearch(GOAL).restore_from_dir(str(tmp_path))
    assert "no saved search was found" in caplog.text


def test_a_tuner_gives_its_search_back() -> None:
    search = CostAwareSearch(GOAL)
    tuner: Any = type("Tuner", (), {})()
    with pytest.raises(InvalidStateError, match="must hold a CostAwareSearch"):
        CostAwareSearch.of(tuner)
    config = type("Config", (), {"search_alg": ConcurrencyLimiter(search, max_concurrent=1)})
    tuner._local_tuner = type("Local", (), {"_tune_config": config})
    assert CostAwareSearch.of(tuner) is search
