import pickle
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from raycosttune.core.session import Session
from raycosttune.errors import InvalidSpaceError
from raycosttune.report.glance import Glance
from raycosttune.tune import CostAwareSearch, Progress, SweepMetrics
from raycosttune.tune.progress import PATIENCE
from tests.tune.fakes import GOAL, begin


def step(progress: Progress) -> None:
    trials = [SimpleNamespace(storage=SimpleNamespace(experiment_dir_name="mine"))]
    progress._next = 0.0
    progress.on_step_end(1, trials)


def test_what_happens_is_told_in_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    progress = Progress(ray_tune.searcher)  # type: ignore[arg-type]
    step(progress)
    assert "t1 starts: " in capsys.readouterr().out
    ray_tune.report(trial, epoch=1, accuracy=0.95)
    step(progress)
    told = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in told][-1] == "best so far"
    assert any(
        line.endswith("reached the target of at least 0.9 with accuracy 0.95") for line in told
    )
    progress.on_experiment_end([])
    assert capsys.readouterr().out == ""


def test_looks_are_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ray_tune, _ = begin(tmp_path)
    progress = Progress(ray_tune.searcher)  # type: ignore[arg-type]
    step(progress)
    assert "starts" in capsys.readouterr().out
    ray_tune.suggest()
    progress.on_step_end(2, [])
    assert capsys.readouterr().out == ""
    progress.on_experiment_end([])
    assert "t2 starts" in capsys.readouterr().out


class Panel:
    """Is a screen that draws a panel, or one that prints lines."""

    def __init__(self, *, is_live: bool) -> None:
        self.is_live = is_live
        self.told: list[str] = []

    def show(self, glance: Glance, session: Session) -> None:
        del session
        self.told.append(glance.to_come)

    def close(self) -> None:
        """Has nothing to give back."""


@pytest.mark.parametrize("is_live", [True, False])
def test_what_is_to_come_is_estimated_where_it_is_shown_and_seldom_where_that_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_live: bool
) -> None:
    now, took = [100.0], 3.0

    def slow(session: Session) -> str:
        now[0] += took
        return f"at {len(session.records)}"

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr("raycosttune.tune.progress.to_come", slow)
    ray_tune, _ = begin(tmp_path)
    progress, screen = Progress(ray_tune.searcher), Panel(is_live=is_live)  # type: ignore[arg-type]
    progress._screens = [screen]  # type: ignore[list-item]
    step(progress)
    ray_tune.suggest()
    step(progress)
    assert now[0] == 100.0 + took * is_live
    now[0] += PATIENCE * took
    step(progress)
    assert screen.told == (["at 1", "at 1", "at 2"] if is_live else ["", "", ""])


def test_a_quiet_one_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ray_tune, _ = begin(tmp_path)
    progress = Progress(ray_tune.searcher, verbose=0)  # type: ignore[arg-type]
    step(progress)
    progress.on_experiment_end([])
    assert capsys.readouterr().out == ""


def test_what_can_t_be_shown_ends_no_sweep(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(CostAwareSearch(GOAL))  # has no session before a sweep
    step(progress)
    step(progress)
    assert caplog.text.count("progress can't be shown any more; the sweep goes on") == 1
    assert capsys.readouterr().out == ""


def test_it_is_saved_without_its_terminal() -> None:
    progress = Progress(CostAwareSearch(GOAL))
    progress._screens = [lambda: None]  # type: ignore[list-item]
    again = pickle.loads(pickle.dumps(progress))  # noqa: S301 - its own
    assert again._screens == []


def test_the_most_verbose_tells_each_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    progress = Progress(ray_tune.searcher, verbose=3)  # type: ignore[arg-type]
    step(progress)
    capsys.readouterr()
    ray_tune.report(trial, epoch=1, accuracy=0.25)
    step(progress)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("t1: 1 epoch, accuracy 0.25, in ")
    step(progress)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("verbose", [-1, 4, 9, "2", None, True, 1.5])
def test_how_much_is_shown_is_checked_before_a_sweep(verbose: object) -> None:
    with pytest.raises(InvalidSpaceError, match="verbose must be a whole number from 0"):
        Progress(CostAwareSearch(GOAL), verbose=verbose)  # type: ignore[arg-type]


@pytest.mark.parametrize("callback", [Progress, SweepMetrics])
def test_only_a_search_is_shown(callback: type) -> None:
    with pytest.raises(InvalidSpaceError, match="must be the sweep's CostAwareSearch, got Goal"):
        callback(GOAL)
