from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from raycosttune.report import read_sweep, write_study
from tests.report.injections import CORPUS, injected
from tests.report.sweeps import broken_off, empty, finished, running


def stored(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/sweep.db"


def test_a_study_is_read_back_from_its_storage(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path / "mine"))
    write_study(view, stored(tmp_path))
    study = optuna.load_study(study_name="mine", storage=stored(tmp_path))
    assert study.user_attrs["plan"] == view.summary
    assert [trial.state for trial in study.trials] == [
        TrialState.COMPLETE,
        TrialState.PRUNED,
        TrialState.FAIL,
        TrialState.FAIL,
        TrialState.COMPLETE,
    ]
    first = study.trials[0]
    assert first.params == {"workers": 2, "batch_size": 32, "lr": 0.1}
    assert first.value == 0.92
    assert first.intermediate_values == {1: 0.5, 2: 0.8, 3: 0.92}
    assert first.user_attrs["cost (worker-hours)"] == pytest.approx(view.trials[0].cost)
    assert study.best_value == 0.92


def test_running_and_empty_sweeps_are_studies_too(tmp_path: Path) -> None:
    study = write_study(read_sweep(running(tmp_path / "a")), stored(tmp_path), "now")
    assert study.trials[1].state is TrialState.RUNNING
    dead = write_study(read_sweep(broken_off(tmp_path / "c")), stored(tmp_path), "dead")
    assert dead.trials[1].state is TrialState.FAIL
    assert write_study(read_sweep(empty(tmp_path / "b")), stored(tmp_path)).trials == []


def test_a_metric_that_falls_is_minimised(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path / "a"))
    falling = replace(view, goal=replace(view.goal, mode="min", target=0.5))
    study = write_study(falling, stored(tmp_path), "low")
    assert study.direction.name == "MINIMIZE"
    assert study.trials[0].value == 0.5


def test_values_of_any_kind_and_name_are_kept(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path / "a"))
    recipes: list[dict[str, object]] = [
        {"kind": "adam", "lr": 1e-4},
        {"kind": None, "lr": 1},
        {"kind": (1, 2), "lr": 0.1},
    ]
    mixed = [
        replace(trial, recipe=recipe) for trial, recipe in zip(view.trials, recipes, strict=False)
    ]
    study = write_study(replace(view, trials=tuple(mixed)), stored(tmp_path), "mixed")
    assert [trial.params["kind"] for trial in study.trials] == ["adam", None, "(1, 2)"]
    for number, text in enumerate(CORPUS[:6]):
        view = read_sweep(injected(tmp_path / f"i{number}", text))
        assert len(write_study(view, stored(tmp_path), f"i{number}").trials) == 3


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    view = read_sweep(empty(tmp_path / "mine"))
    write_study(view, stored(tmp_path))
    with pytest.raises(optuna.exceptions.DuplicatedStudyError):
        write_study(view, stored(tmp_path))
