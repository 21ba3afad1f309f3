import logging

import pytest

from raycosttune.core.decision import Run
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Report
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.results.replay import merge_rows
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


def test_a_row_that_cannot_be_read_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    session = make_session()
    with caplog.at_level(logging.WARNING):
        new = merge_rows(session, [{"row": "asked", "trial_id": "a"}, {"row": "news"}])
    assert new == 0
    assert session.records == {}
    assert "left out" in caplog.text
