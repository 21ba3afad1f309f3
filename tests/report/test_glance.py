import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.live import Live

from raycosttune.core.observation import EndCause, Ended, Report, Resized
from raycosttune.report import screen as screens
from raycosttune.report.glance import Glance, glance_of, to_come, told
from raycosttune.report.lines import Lines
from raycosttune.report.panel import MOST_RUNNING, fitted, panel
from raycosttune.report.run import Run, read_run
from raycosttune.report.screen import Screen
from tests.report.injections import injected
from tests.report.sweeps import GOAL, SPACE, empty, finished, running


def glance(run: Run) -> Glance:
    return glance_of(run.session, name=run.name, to_come=to_come(run.session))


def drawn(glance: Glance, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(panel(glance))
    file: Any = console.file
    text: str = file.getvalue()
    return text


def flat(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_a_running_sweep_shows_what_runs_and_why_and_what_comes(tmp_path: Path) -> None:
    text = flat(drawn(glance(read_run(running(tmp_path / "mine")))))
    assert "raycosttune mine" in text
    assert "spent 0.0125 worker-hours, no budget" in text
    assert "best 2 workers, batch 32: 0.00777 (" in text
    assert "14 s of 100 s; nothing untried can save more than" in text
    assert "runs b: 1 worker, batch 64: 3 epochs, accuracy 0.6; target expected at epoch " in text
    assert "s; deadline in 83 s" in text  # of 100: 10 of the start, 2, 2 and 3
    assert "last a: 2 workers, batch 32: reached the target 0.9" in text
    assert "it is the cheapest guess" in text
    assert "next 1 worker, batch 32, which tries the best recipe here" in text
    assert "trials 2 started, 1 running on 1 worker, 1 reached" in text


def test_limits_of_the_sweep_are_shown_with_what_is_left(tmp_path: Path) -> None:
    seen = glance(read_run(running(tmp_path)))
    goal = replace(seen.goal, sweep_budget=0.1, sweep_deadline_seconds=4000)
    text = flat(drawn(replace(seen, goal=goal)))
    assert "0.0125 of 0.1 worker-hours, 0.0875 left" in text
    assert "0:28 of 1:06:40" in text


def test_an_empty_sweep_has_no_plan_yet(tmp_path: Path) -> None:
    text = flat(drawn(glance(read_run(empty(tmp_path)))))
    assert "best none yet: no trial has started" in text


def test_a_sweep_that_is_over_says_so(tmp_path: Path) -> None:
    run = read_run(finished(tmp_path))
    seen = glance(replace(run, times=replace(run.times)))
    assert seen.running == ()
    assert seen.ends == {"reached": 2, "stopped": 1, "failed": 1, "out_of_memory": 1}
    assert "1 out of memory" in flat(drawn(seen))


def test_many_running_trials_are_counted(tmp_path: Path) -> None:
    seen = glance(read_run(running(tmp_path)))
    many = replace(seen, running=seen.running * (MOST_RUNNING + 3), profiles=1)
    text = flat(drawn(many))
    assert "and 3 more" in text
    assert "1 profile of step time" in text


def test_a_low_terminal_holds_the_whole_panel(tmp_path: Path) -> None:
    seen = glance(read_run(running(tmp_path)))
    many = replace(seen, running=seen.running * MOST_RUNNING)
    for height, told_why, told_more in ((60, True, ""), (24, False, ""), (19, False, "4 more")):
        console = Console(file=io.StringIO(), width=80, height=height, color_system=None)
        console.print(fitted(many, console))
        file: Any = console.file
        text = file.getvalue()
        assert len(text.splitlines()) < height
        assert "6 running" in flat(text)
        assert ("it is the cheapest guess" in flat(text)) == told_why
        assert told_more in flat(text)


def test_a_terminal_that_gets_narrower_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100, height=50, legacy_windows=False)
    monkeypatch.setattr(screens, "_live", lambda: Live(console=console, auto_refresh=False))
    run, screen = read_run(running(tmp_path)), Screen(is_live=True)
    for width, is_cleared in ((100, False), (120, False), (80, True), (80, False)):
        console.width = width
        file.truncate(0)
        screen.show(glance(run), run.session)
        assert "raycosttune" in file.getvalue()
        assert ("\x1b[2J" in file.getvalue()) == is_cleared
    screen.close()


@pytest.mark.parametrize("text", ["[red]x[/red]", "[/]", "\x1b[2J", "<b>", "x" * 500])
def test_names_are_text_in_a_panel(text: str, tmp_path: Path) -> None:
    out = drawn(glance(read_run(injected(tmp_path, text))))
    assert "\x1b" not in out
    assert text.replace("\x1b", "")[:20] in flat(out).replace(" ", "") or len(text) > 100


def test_a_trial_that_starts_has_nothing_to_expect(tmp_path: Path) -> None:
    seen = glance(read_run(running(tmp_path))).running[0]
    assert told(replace(seen, value=None), GOAL) == "b: 1 worker, batch 64: starting"
    silent = replace(seen, expected=None)
    assert told(silent, GOAL) == "b: 1 worker, batch 64: 3 epochs, accuracy 0.6"
    assert told(seen, replace(GOAL, deadline_seconds=None)).endswith(" s")
    assert told(seen, replace(GOAL, deadline_seconds=1.0)).endswith("; deadline in 0 s")


def test_a_trial_that_was_moved_says_so(tmp_path: Path) -> None:
    run = read_run(running(tmp_path))
    assert glance(run).running[0].moved == ""
    run.session.tell("b", Resized(2, 3, "the deadline is at risk"))
    seen = glance(run)
    assert "runs b: 2 workers, batch 64: 3 epochs" in flat(drawn(seen))
    assert "it began on 1 worker: the deadline is at risk" in flat(drawn(seen))


def test_what_is_left_of_a_moved_trial_goes_by_its_present_workers(tmp_path: Path) -> None:
    run = read_run(running(tmp_path))
    run.session.tell("b", Resized(2, 3, "the deadline is at risk"))
    likely = run.session.known.time.predict(SPACE.allocation(2, 64)).mid
    (moved,) = glance(run).running
    assert moved.expected is not None
    assert moved.seconds_left == pytest.approx((moved.expected - 3) * likely)
    run.session.tell("b", Report(4.0, 0.7, 21.0, startup_seconds=20.5, workers=2))
    (seen,) = glance(run).running
    assert seen.expected is not None
    assert seen.seconds_left == pytest.approx((seen.expected - 4) * 0.5)
    run.session.tell("b", Ended(EndCause.FAILED, "boom"))
    assert glance(run).last == "b: 2 workers, batch 64: failed: boom"
    assert "trials 2 started, none running, 1 reached, 1 failed" in flat(drawn(glance(run)))


def test_each_start_end_change_and_best_is_a_line_once(tmp_path: Path) -> None:
    session, lines = read_run(running(tmp_path)).session, Lines()
    told = lines(session)
    assert told == [
        "a starts: 2 workers, batch 32, which is the cheapest guess",
        "b starts: 1 worker, batch 64, which is the cheapest guess",
        "a ended after 2 epochs and 0.00778 worker-hours: reached the target 0.9",
        "best so far: 2 workers, batch 32: 0.00777 worker-hours a run",
    ]
    assert lines(session) == []
    session.tell("b", Report(4.0, 0.7, 2.0, workers=2))
    assert lines(session) == ["b goes on with 2 workers instead of 1"]
    session.tell("b", Resized(1, 1, "1 worker\nis cheaper"))
    assert lines(session) == ["b goes on with 1 worker instead of 2: 1 worker is cheaper"]
    session.tell("b", Ended(EndCause.FAILED, "boom\nbang"))
    (line,) = lines(session)
    assert line.startswith("b ended after 4 epochs and 0.0")
    assert line.endswith(" worker-hours: boom bang")


def test_without_a_terminal_the_screen_says_lines(tmp_path: Path) -> None:
    run, said = read_run(finished(tmp_path)), list[str]()
    screen = Screen(say=said.append)
    screen.show(glance(run), run.session)
    screen.close()
    assert not screen.is_live
    assert len(said) == 11


@pytest.mark.parametrize(
    ("console", "has_widgets", "is_live"),
    [
        ({"force_jupyter": True}, True, True),
        ({"force_jupyter": True}, False, False),
        ({"force_terminal": True}, False, True),
        ({"force_terminal": False}, True, False),
    ],
)
def test_a_notebook_with_widgets_gets_a_panel_too(
    console: dict[str, bool], has_widgets: bool, is_live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    live = Live(console=Console(file=io.StringIO(), **console), auto_refresh=False)  # type: ignore[arg-type]
    monkeypatch.setattr(screens, "_live", lambda: live)
    monkeypatch.setattr(screens, "find_spec", lambda name: name if has_widgets else None)
    assert Screen().is_live == is_live


def test_in_a_terminal_the_screen_draws_a_panel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_INTERACTIVE", "1")
    run, said = read_run(running(tmp_path)), list[str]()
    screen = Screen(is_live=True, say=said.append)
    assert screen.is_live
    screen.show(glance(run), run.session)
    screen.close()
    assert said == []
    assert "raycosttune" in capsys.readouterr().out
