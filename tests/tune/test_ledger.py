from dataclasses import replace
from pathlib import Path

import pytest

from raycosttune.core.observation import Report
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.results.header import read_header_space
from raycosttune.results.journal import read_journal
from raycosttune.results.rows import ELAPSED
from raycosttune.tune.folder import run_journal
from raycosttune.tune.ledger import Ledger
from tests.tune.fakes import GOAL


def make_session() -> Session:
    return Session(Space((1, 2), (32,)), GOAL, clock=lambda: 0.0)


def test_rows_wait_until_the_folder_is_known(tmp_path: Path) -> None:
    ledger, session = Ledger(), make_session()
    session.ask("a")
    ledger.asked(session, "a")
    assert ledger.run_reports("a", "accuracy") == []
    assert ledger.open(tmp_path, session, trial_id="a", is_restored=False) == {}
    assert ledger.open(tmp_path, session, trial_id="b", is_restored=False) == {}
    rows = read_journal(tmp_path / "raycosttune" / "journal.jsonl")
    assert [row["row"] for row in rows] == ["header", "asked"]


def test_a_search_in_a_second_folder_takes_everything_along(tmp_path: Path) -> None:
    ledger, session = Ledger(), make_session()
    session.ask("a")
    for name in ("one", "two"):
        ledger.open(tmp_path / name, session, trial_id="a", is_restored=False)
        rows = read_journal(tmp_path / name / "raycosttune" / "journal.jsonl")
        assert [row["row"] for row in rows] == ["header", "asked"]


def test_an_unreadable_run_journal_holds_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger()
    ledger.open(tmp_path, make_session(), trial_id="a", is_restored=False)
    path = run_journal(tmp_path, "a")
    path.parent.mkdir()
    path.write_text('{"row": "report"}\n')
    assert ledger.run_reports("a", "accuracy") == []
    assert "left out" in caplog.text
    path.unlink()
    path.mkdir()
    assert ledger.run_reports("a", "accuracy") == []
    assert "can't be read" in caplog.text


def test_the_journal_says_when_why_and_over_which_cells(tmp_path: Path) -> None:
    ledger, session = Ledger(), make_session()
    session.ask("a")
    ledger.open(tmp_path, session, trial_id="a", is_restored=False)
    ledger.tell(session, "a", Report(1.0, 0.95, 3.0))
    ledger.over(session, "nothing pays")
    header, asked, report, over = read_journal(tmp_path / "raycosttune" / "journal.jsonl")
    assert read_header_space(header) == session.space
    assert asked["why"] == "is the cheapest guess before any accuracy is seen"
    assert header[ELAPSED] <= report[ELAPSED] <= over[ELAPSED]
    assert over["why"] == "nothing pays"


def test_values_of_another_metric_are_kept_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger, session = Ledger(), make_session()
    session.ask("a")
    ledger.open(tmp_path, session, trial_id="a", is_restored=False)
    ledger.tell(session, "a", Report(1.0, 0.5, 3.0))
    other = Session(Space((1, 2), (32,)), replace(GOAL, metric="loss"), clock=lambda: 0.0)
    Ledger().open(tmp_path, other, trial_id="a", is_restored=True)
    assert not other.records
    kept = tmp_path / "raycosttune" / "journal.jsonl.kept-1"
    assert f"has values of accuracy; it is kept as {kept}." in caplog.text
    same = make_session()
    kept.rename(tmp_path / "raycosttune" / "journal.jsonl")
    Ledger().open(tmp_path, same, trial_id="a", is_restored=True)
    assert list(same.records) == ["a"]
