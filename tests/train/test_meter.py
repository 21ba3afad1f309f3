import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from raycosttune.results.journal import read_journal
from raycosttune.results.replay import read_requested
from raycosttune.results.rows import read_run_report
from raycosttune.train import keys
from raycosttune.train.meter import Meter


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def kind(row: dict[str, Any]) -> str:
    return str(row["row"])


def start(meter: Meter, clock: Clock, startup: float) -> None:
    meter.request()
    clock.now += startup
    meter.begin_training()


def test_seconds_sum_to_the_time_since_the_workers_were_asked_for(tmp_path: Path) -> None:
    clock = Clock()
    meter = Meter("a", tmp_path / "a.jsonl", clock)
    start(meter, clock, 8.0)
    told = []
    for _ in range(3):
        clock.now += 2.0
        told.append(meter.report({"accuracy": 0.5}, None))
    assert [row[keys.SECONDS] for row in told] == [10.0, 2.0, 2.0]
    assert [row[keys.STARTUP_SECONDS] for row in told] == [8.0, 0.0, 0.0]
    assert [row[keys.INDEX] for row in told] == [1, 2, 3]


def test_a_start_writes_down_once_when_it_asked_for_its_workers(tmp_path: Path) -> None:
    path, calendar = tmp_path / "a.jsonl", Clock()
    first = Meter("a", path, Clock(), calendar)
    first.request()
    calendar.now += 5.0
    first.request()  # Train's own restart: what is paid goes on from the last report
    assert read_requested(read_journal(path)) == 100.0
    Meter("a", path, Clock(), calendar).request()
    assert read_requested(read_journal(path)) == 105.0
    assert [*map(kind, read_journal(path))] == ["header", "requested", "requested"]


def test_the_epoch_is_the_loop_s_own_or_counts_reports(tmp_path: Path) -> None:
    meter = Meter("a", tmp_path / "a.jsonl", Clock())
    meter.request()
    assert meter.report({}, None)["epoch"] == 1
    assert meter.report({"epoch": 7}, None)["epoch"] == 7
    assert meter.report({}, None)["epoch"] == 8


def test_a_restart_is_a_new_attempt_and_pays_for_what_was_lost(tmp_path: Path) -> None:
    clock = Clock()
    meter = Meter("a", tmp_path / "a.jsonl", clock)
    start(meter, clock, 1.0)
    clock.now += 1.0
    meter.report({}, "/checkpoint/1")
    clock.now += 5.0
    start(meter, clock, 3.0)
    clock.now += 1.0
    told = meter.report({}, None)
    assert told[keys.ATTEMPT] == 2
    assert told[keys.SECONDS] == 9.0
    assert told[keys.STARTUP_SECONDS] == 3.0
    assert told["epoch"] == 2


def test_a_restart_without_a_checkpoint_counts_epochs_from_one(tmp_path: Path) -> None:
    meter = Meter("a", tmp_path / "a.jsonl", Clock())
    meter.request()
    meter.report({}, None)
    meter.request()
    assert meter.report({}, None)["epoch"] == 1


def test_a_driver_that_died_is_followed_by_the_next_attempt(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    first = Meter("a", path, Clock())
    first.request()
    first.report({"epoch": 3}, "/checkpoint/3")
    second = Meter("a", path, Clock())
    second.request()
    told = second.report({}, None)
    assert told[keys.ATTEMPT] == 2
    assert told["epoch"] == 4


def test_each_report_is_in_the_run_s_own_journal(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "runs" / "a.jsonl"
    meter = Meter("a", path, clock)
    start(meter, clock, 1.0)
    clock.now += 2.0
    meter.report({"accuracy": 0.25, "epoch": 1}, "/checkpoint/1")
    header, _, _, row = read_journal(path)
    assert header == {"row": "header", "version": 1, "trial_id": "a"}
    report = read_run_report(row, "accuracy")
    assert (report.epoch, report.value, report.seconds) == (1.0, 0.25, 3.0)
    assert (report.startup_seconds, report.checkpoint) == (1.0, "/checkpoint/1")


def write_damage(path: Path) -> None:
    path.write_text("no JSON\n[]\n")


def write_version(path: Path) -> None:
    path.write_text('{"row": "header", "version": 99}\n')


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [write_damage, write_version, os.mkfifo, os.mkdir])
@pytest.mark.parametrize("is_movable", [True, False])
def test_a_journal_that_cannot_be_read_does_no_harm_to_the_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    make: Callable[[Path], None],
    *,
    is_movable: bool,
) -> None:
    def refuse(_: Path, target: Path) -> Path:
        raise OSError(target)

    path, clock = tmp_path / "a.jsonl", Clock()
    make(path)
    if not is_movable:
        monkeypatch.setattr(Path, "rename", refuse)
    meter = Meter("a", path, clock)
    with caplog.at_level(logging.WARNING):
        start(meter, clock, 8.0)
    clock.now += 2.0
    told = meter.report({"accuracy": 0.5}, None)
    assert (told[keys.SECONDS], told[keys.STARTUP_SECONDS]) == (10.0, 8.0)
    assert (told[keys.ATTEMPT], told["epoch"]) == (1, 1)
    assert "can't be read" in caplog.text
    if is_movable:
        assert (tmp_path / "a.jsonl.kept-1").exists()
        assert [*map(kind, read_journal(path))] == ["header", "requested", "begun", "report"]


def test_a_start_that_nobody_saw_begin_has_no_start_up(tmp_path: Path) -> None:
    meter = Meter("a", tmp_path / "a.jsonl", Clock())
    meter.begin_training()
    assert meter.report({}, None)[keys.STARTUP_SECONDS] == 0.0


def test_a_report_says_on_how_many_workers_it_was_made(tmp_path: Path) -> None:
    meter = Meter("a", tmp_path / "a.jsonl", Clock())
    meter.request(2)
    assert meter.report({"epoch": 1}, None)[keys.WORKERS] == 2
    meter.request(3)
    assert meter.report({"epoch": 2}, None)[keys.WORKERS] == 3
    meter.request()
    assert keys.WORKERS not in meter.report({"epoch": 3}, None)
    rows = read_journal(tmp_path / "a.jsonl")
    assert [row["workers"] for row in rows if row["row"] == "report"] == [2, 3, None]
