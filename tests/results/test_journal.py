import contextlib
import json
import logging
import os
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Observation, Report, TrialRecord
from raycosttune.core.space import Allocation
from raycosttune.core.value import read_number
from raycosttune.errors import InvalidStateError
from raycosttune.results.header import header_row, read_header
from raycosttune.results.journal import Journal, kept_aside, read_journal
from raycosttune.results.replay import read_names, read_trials
from raycosttune.results.rows import (
    asked_row,
    observation_row,
    over_row,
    read_observation,
    read_record,
    read_run_report,
    renamed_row,
    run_header_row,
    run_report_row,
)

seconds = st.floats(0, 1e6)
reports = st.builds(
    Report,
    epoch=st.floats(0, 1e6),
    value=st.none() | st.floats(-1e9, 1e9),
    seconds=seconds,
    startup_seconds=seconds,
    attempt=st.integers(1, 9),
    checkpoint=st.none() | st.text(),
)
ends = st.builds(
    Ended,
    cause=st.sampled_from(EndCause),
    reason=st.text(),
    seconds=seconds,
    is_starting=st.booleans(),
)
ROW = {"row": "asked", "trial_id": "a"}


@given(reports | ends)
def test_an_observation_survives_its_row(observation: Observation) -> None:
    row = json.loads(json.dumps(observation_row("a", observation)))
    assert read_observation(row) == observation.cleaned()
    kept = json.loads(json.dumps(observation_row("a", observation.cleaned())))
    assert read_observation(kept) == observation.cleaned()


def test_a_record_survives_its_row() -> None:
    record = TrialRecord("a", Allocation(2, 64, 1), {"lr": 0.1, "model": "wide"}, 3)
    assert read_record(json.loads(json.dumps(asked_row(record)))) == record


def test_a_run_row_gives_the_metric_that_is_asked_for() -> None:
    report = Report(2.0, None, 3.0, 1.0, 2, "/checkpoint")
    row = run_report_row("a", report, {"loss": 0.5, "val": {"acc": 0.25}, "name": "x"})
    back = json.loads(json.dumps(row))
    assert read_run_report(back, "val/acc") == Report(2.0, 0.25, 3.0, 1.0, 2, "/checkpoint")
    assert read_run_report(back, "name") == report


@pytest.mark.parametrize(
    "value", [None, "0.5", b"1", True, float("nan"), float("inf"), [1], 10**400]
)
def test_what_is_no_finite_number_is_none(value: object) -> None:
    assert read_number(value) is None


def test_a_header_gives_back_its_goal_and_unit() -> None:
    goal = Goal(target=0.9, metric="a", mode="min", planned_runs=3)
    row = json.loads(json.dumps(header_row(goal, "EUR")))
    row["goal"]["of a newer release"] = 1
    assert read_header(row) == (goal, "EUR")
    assert read_header({**row, "unit": 5}) == (goal, None)


@pytest.mark.parametrize("goal", [None, 5, {"metric": "a"}, []])
def test_a_header_without_a_goal_is_refused(goal: object) -> None:
    with pytest.raises(InvalidStateError, match="must hold a goal with a target, got"):
        read_header({"row": "header", "version": 1, "goal": goal})


def test_rows_come_back_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "new" / "journal.jsonl")
    journal.append(header_row(Goal(target=0.9), "node-hours"), ROW)
    journal.append({"row": "ended", "trial_id": "a"})
    rows = read_journal(tmp_path / "new" / "journal.jsonl")
    assert [row["row"] for row in rows] == ["header", "asked", "ended"]


def test_a_missing_journal_is_empty(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "journal.jsonl") == []


@given(st.integers(1, len(json.dumps(ROW))))
def test_a_torn_last_line_is_left_out_and_written_over_unless_it_is_a_whole_row(cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.jsonl")
        Journal(path).append(ROW)
        with path.open("a") as file:
            file.write(json.dumps(ROW)[:cut])
        before = [ROW] if cut < len(json.dumps(ROW)) else [ROW, ROW]
        assert read_journal(path) == before
        Journal(path).append({**ROW, "trial_id": "b"})
        assert read_journal(path) == [*before, {**ROW, "trial_id": "b"}]


BROKEN = ("[1, 2]", "[" * 200_000, '{"row":' * 100_000, "9" * 5000, "\0" * 50, '{"row": 1}')


@pytest.mark.parametrize("line", BROKEN, ids=lambda line: ascii(line[:20]))
def test_a_damaged_line_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, line: str
) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(f"{json.dumps(ROW)}\n{line}\n{line}\n{json.dumps(ROW)}\n")
    assert read_journal(path) == [ROW, ROW]
    assert f"2 damaged lines are left out, the first @ {path}:2" in caplog.text


@pytest.mark.parametrize("line", BROKEN, ids=lambda line: ascii(line[:20]))
def test_a_file_of_damaged_lines_is_no_journal(tmp_path: Path, line: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(f"\n{line}\n{line}\n")
    with pytest.raises(InvalidStateError, match=rf"got none @ {path}:2"):
        read_journal(path)


def test_what_is_no_file_is_no_journal(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/null")):
        with pytest.raises(InvalidStateError, match=f"must be a file.* @ {path}"):
            read_journal(path)


def test_an_unknown_version_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text('{"row": "header", "version": 1}\n{"row": "header", "version": 99}\n')
    with pytest.raises(InvalidStateError, match=rf"99 @ {path}:2"):
        read_journal(path)


def test_an_unwritable_folder_keeps_rows_and_warns_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocker = tmp_path / "folder"
    blocker.write_text("a file where the folder should be")
    journal = Journal(blocker / "journal.jsonl")
    with caplog.at_level(logging.WARNING):
        journal.append(ROW)
        journal.append(ROW)
    assert len(caplog.records) == 1
    assert list(journal.waiting) == [ROW, ROW]
    blocker.unlink()
    journal.append({**ROW, "trial_id": "b"})
    assert journal.waiting == ()
    assert [row["trial_id"] for row in read_journal(blocker / "journal.jsonl")] == ["a", "a", "b"]


def test_rows_follow_a_file_that_another_sweep_has_moved_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "journal.jsonl"
    first, second = Journal(path), Journal(path)
    first.append(ROW)
    aside = kept_aside(path)
    first.append({**ROW, "trial_id": "b"})
    second.append({**ROW, "trial_id": "c"})
    first.append({**ROW, "trial_id": "d"})
    assert [row["trial_id"] for row in read_journal(aside)] == ["a", "b", "d"]
    assert [row["trial_id"] for row in read_journal(path)] == ["c"]
    (said,) = caplog.messages
    assert f"this one's journal goes on as {aside}" in said


@pytest.mark.parametrize("is_replaced", [True, False])
def test_rows_go_on_under_their_name_where_the_file_is_gone(
    tmp_path: Path, is_replaced: bool
) -> None:
    path, other = tmp_path / "journal.jsonl", tmp_path / "other.jsonl"
    journal = Journal(path)
    journal.append(ROW)
    Journal(other).append({**ROW, "trial_id": "x"})
    path.unlink()
    if is_replaced:
        other.rename(path)
    journal.append({**ROW, "trial_id": "b"})
    assert [row["trial_id"] for row in read_journal(path)] == ["x"] * is_replaced + ["b"]


def test_a_full_disk_leaves_no_half_row(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    link = tmp_path / "journal.jsonl"
    link.symlink_to(full)
    journal = Journal(link)
    journal.append(ROW)
    assert list(journal.waiting) == [ROW]


@contextlib.contextmanager
def room_for(size: int) -> Iterator[None]:
    """Lets no file grow beyond a size: what is written is cut there, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@given(room=st.integers(0, 400), is_restored=st.booleans())
def test_a_disk_that_fills_within_a_row_leaves_whole_rows_alone(
    *, room: int, is_restored: bool
) -> None:
    rows = [{"row": "report", "trial_id": "a", "epoch": epoch} for epoch in range(9)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.jsonl")
        journal = Journal(path)
        with room_for(room):
            for row in rows:
                journal.append(row)
        written = path.read_bytes()
        assert written == b"" or written.endswith(b"\n")
        assert read_journal(path) == rows[: len(rows) - len(journal.waiting)]
        Journal(path).append(*journal.waiting) if is_restored else journal.append(ROW)
        assert read_journal(path) == (rows if is_restored else [*rows, ROW])


def test_a_journal_without_a_path_waits() -> None:
    journal = Journal()
    journal.append(ROW)
    assert list(journal.waiting) == [ROW]


def test_trials_are_rebuilt_from_rows_whatever_repeats() -> None:
    record = TrialRecord("a", Allocation(1, 32), {}, 0)
    report = Report(1.0, 0.5, 2.0)
    end = Ended(EndCause.REACHED, "done", 0.5)
    rows = [
        run_header_row("a"),
        asked_row(record),
        observation_row("a", report),
        observation_row("a", report),
        observation_row("a", end),
        observation_row("a", Ended(EndCause.FAILED)),
        observation_row("nobody", report),
        renamed_row("z", "a"),
    ]
    trials = read_trials(rows)
    assert list(trials) == ["a"]
    assert trials["a"].reports == [report]
    assert trials["a"].ended == end
    assert read_names(rows) == {"z": "a"}


def test_files_are_kept_under_free_names(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    for number in (1, 2):
        path.write_text(str(number))
        assert kept_aside(path) == tmp_path / f"state.json.kept-{number}"
    assert kept_aside(path) == path
    assert not path.exists()


def test_a_run_s_own_row_keeps_lists_of_numbers() -> None:
    metrics = {"a": {"b": [1, 2.5]}, "c": [1, "x"], "d": [], "e": list(range(5000)), "f": 1}
    row = run_report_row("t", Report(1.0, None, 1.0), metrics)
    assert row["lists"] == {"a/b": [1, 2.5]}
    assert "lists" not in run_report_row("t", Report(1.0, None, 1.0), {"f": 1})


def test_a_row_says_why() -> None:
    record = TrialRecord("a", Allocation(1, 32), {}, 0)
    row = asked_row(record, "is cheap")
    assert row["why"] == "is cheap"
    assert read_record(row) == record
    assert "why" not in asked_row(record)
    assert over_row("done") == {"row": "over", "why": "done"}
