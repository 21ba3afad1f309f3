import logging
import math
from typing import Any

import pytest

from raycosttune.core.decision import Run
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Report, Resized
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.results.replay import merge_rows, read_names, read_run_reports, read_trials
from raycosttune.results.rows import asked_row, observation_row


def make_session() -> Session:
    goal = Goal(metric="accuracy", mode="max", target=0.9)
    return Session(Space((1, 2), (32, 64)), goal, clock=lambda: 0.0)


def test_a_session_learns_a_journal_once() -> None:
    told = make_session()
    assert isinstance(told.ask("a"), Run)
    report, end = Report(1.0, 0.95, 10.0), Ended(EndCause.REACHED, "done", 1.0)
    told.tell("a", report)
    told.tell("a", end)
    record = told.records["a"]
    rows = [asked_row(record), observation_row("a", report), observation_row("a", end)]
    read = make_session()
    assert merge_rows(read, rows) == 2
    assert merge_rows(read, rows) == 0
    assert read.records == told.records
    assert read.spent == told.spent
    assert str(read.plan()) == str(told.plan())


@pytest.mark.parametrize("why", ["is cheap", "", None, 5])
def test_a_session_learns_why_a_trial_was_started(why: object) -> None:
    session = make_session()
    merge_rows(session, [{**ASKED, "why": why}])
    begun = "Started because it is cheap." if why == "is cheap" else "Found in the journal."
    assert begun in session.explain()


def test_the_time_of_a_sweep_that_lost_its_state_goes_on() -> None:
    session = make_session()
    rows = [{"row": "header", "elapsed_seconds": 30.0}, {"row": "x", "elapsed_seconds": 90.5}]
    merge_rows(session, [*rows, {"row": "x", "elapsed_seconds": "long"}, {"row": "x"}])
    assert session.elapsed_seconds == 90.5


def test_a_row_that_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    session = make_session()
    with caplog.at_level(logging.WARNING):
        new = merge_rows(session, [{"row": "asked", "trial_id": "a"}, {"row": "news"}])
    assert new == 0
    assert session.records == {}
    assert "left out" in caplog.text


ASKED: dict[str, Any] = {
    "row": "asked",
    "trial_id": "z",
    "workers": 1,
    "batch_size": 32,
    "nodes": 1,
    "recipe": {},
    "proposal": 0,
}
REPORT: dict[str, Any] = {
    "row": "report",
    "trial_id": "z",
    "epoch": 1,
    "value": 0.5,
    "seconds": 1,
    "startup_seconds": 0,
    "attempt": 1,
    "checkpoint": None,
}
ENDED = {"row": "ended", "trial_id": "z", "cause": "finished", "reason": "", "seconds": 0}


Wrong = dict[str, tuple[object, ...]]
WRONG_TRIAL: Wrong = {
    "trial_id": (None, ["z"]),
    "workers": (math.inf, 0, -1, 10**30, 10**400, "x", 1.5),
    "batch_size": (0, None),
    "nodes": (0,),
    "recipe": ([], "x", None),
    "proposal": (-1, math.nan),
}
WRONG_REPORT: Wrong = {
    "epoch": (10**400, math.inf, "x"),
    "value": (10**400, [1], "0.95"),
    "seconds": (10**400, None),
    "attempt": (math.inf, -5),
    "checkpoint": ({"a": 1},),
}
WRONG_END: Wrong = {"cause": ([], "tired"), "seconds": (10**400, math.nan), "reason": ({},)}


def damaged(row: dict[str, Any], wrong: Wrong) -> list[dict[str, Any]]:
    return [{**row, key: value} for key, values in wrong.items() for value in values]


@pytest.mark.parametrize("asked", damaged(ASKED, WRONG_TRIAL))
def test_a_damaged_trial_is_left_out_and_so_is_what_it_reported(
    caplog: pytest.LogCaptureFixture, asked: dict[str, Any]
) -> None:
    session = make_session()
    assert merge_rows(session, [asked, REPORT, ENDED]) == 0
    assert session.records == {}
    assert "a journal row is left out" in caplog.text


@pytest.mark.parametrize("row", [*damaged(REPORT, WRONG_REPORT), *damaged(ENDED, WRONG_END)])
def test_a_damaged_row_is_left_out_alone(
    caplog: pytest.LogCaptureFixture, row: dict[str, Any]
) -> None:
    session = make_session()
    other = ENDED if row["row"] == "report" else REPORT
    assert merge_rows(session, [ASKED, row, other]) == 1
    record = session.records["z"]
    assert bool(record.reports) is (other is REPORT)
    assert (record.ended is not None) is (other is ENDED)
    assert len(caplog.records) == 1


def test_a_trial_of_another_space_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    session = make_session()
    rows = [ASKED, {**ASKED, "trial_id": "y", "workers": 7}]
    merge_rows(session, rows, lambda record: record.trial_id == "z")
    assert list(session.records) == ["z"]
    assert "isn't of this search space" in caplog.text


def test_names_and_run_reports_that_can_be_read_are_read(caplog: pytest.LogCaptureFixture) -> None:
    good = {"row": "renamed", "trial_id": "new", "record": "old"}
    assert read_names([{"row": "renamed"}, {**good, "record": 5}, good]) == {"new": "old"}
    run = {**REPORT, "metrics": {"a": 0.5}}
    (report,) = read_run_reports([{**run, "metrics": 3}, {**run, "attempt": "x"}, run], "a")
    assert report == Report(1.0, 0.5, 1.0)
    assert len(caplog.records) == 4


def test_changed_workers_come_back_from_a_journal() -> None:
    told = make_session()
    told.ask("a")
    change = Resized(2, 1, "the deadline is at risk")
    seen = (Report(1.0, 0.5, 10.0, checkpoint="c", workers=1), change)
    for each in seen:
        told.tell("a", each)
    rows = [asked_row(told.records["a"]), *(observation_row("a", each) for each in seen)]
    assert rows[-1] == {
        "row": "resized",
        "trial_id": "a",
        "workers": 2,
        "attempt": 1,
        "reason": "the deadline is at risk",
    }
    read = make_session()
    assert merge_rows(read, rows) == 2
    assert merge_rows(read, rows) == 0
    assert read.records == told.records == read_trials(rows)
    assert read.committed_workers == told.committed_workers == 2
