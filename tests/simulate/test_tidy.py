from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.simulate.trace import TraceWorkload
from tests.simulate.tiny import CURVES, TIMES, folder, problems


def test_a_spreadsheets_byte_order_mark_is_no_part_of_a_column(tmp_path: Path) -> None:
    path = folder(tmp_path, b"\xef\xbb\xbf" + TIMES.encode(), CURVES.replace("\n", "\r\n"))
    assert TraceWorkload.read(path, "tiny").space.batches == (32, 64)


def test_a_column_that_comes_twice_is_refused(tmp_path: Path) -> None:
    header, row, *_ = TIMES.splitlines()
    _, found = problems(folder(tmp_path, f"{header},workers\n{row},8\n"))
    assert found == "  it has more than one column workers"


@given(st.data())
@settings(max_examples=30)
def test_every_problem_of_a_file_is_named_at_once(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    header, *good = TIMES.splitlines()
    bad = data.draw(st.lists(st.sampled_from(("-1", "0", "nan", "inf", "fast", "")), min_size=1))
    rows = [*good, *(f"tiny,t4,1,32,0.5,{text}" for text in bad)]
    path = folder(tmp_path_factory.mktemp("job"), "\n".join([header, *rows]))
    first, *found = problems(path)
    assert first == f"{path / 'tiny.times.csv'} can't be replayed:"
    expected = [
        f"  line {line}: epoch_seconds must be a number above 0, got {text!r}"
        for line, text in enumerate(bad, start=len(good) + 2)
    ]
    rest = [f"  and {len(bad) - 20} more"] if len(bad) > 20 else []
    assert found == expected[:20] + rest


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("tiny,t4,1,32,-3,5", "step_seconds must be a number above 0, got '-3'"),
        ("tiny,t4,1,32,nan,5", "step_seconds must be a number above 0, got 'nan'"),
        ("tiny,t4,0,32,1,5", "workers must be a number above 0, got '0'"),
        ("tiny,t4,1.5,32,1,5", "workers must be whole, got 1.5"),
        ("tiny,t4,1,many,1,5", "batch_size must be a number above 0, got 'many'"),
        ("tiny,t4,8,4,1,5", "batch_size must be at least workers, got 4 and 8"),
        ("tiny,t4,1,32,1", "epoch_seconds must be a number above 0, got ''"),
        ("tiny,t4,1,2e12,1,5", "batch_size must be at most 1e12, got '2e12'"),
        ("tiny,t4,1,32,1,1e308", "epoch_seconds must be at most 1e12, got '1e308'"),
        ("tiny,t4,1,32,1,5,7", "it has more fields than the header"),
    ],
)
def test_a_bad_time_is_named_with_its_line(tmp_path: Path, row: str, problem: str) -> None:
    _, found = problems(folder(tmp_path, f"{TIMES}{row}\n"))
    assert found == f"  line 5: {problem}"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("tiny,32,0,3,accuracy,nan", "metric must be a finite number, got 'nan'"),
        ("tiny,32,0,3,accuracy,", "metric must be a finite number, got ''"),
        ("tiny,32,0,0,accuracy,0.5", "epoch must be a number above 0, got '0'"),
        ("tiny,32,0,1e308,accuracy,0.5", "epoch must be at most 1e12, got '1e308'"),
        ("tiny,-2,0,3,accuracy,0.5", "batch_size must be a number above 0, got '-2'"),
    ],
)
def test_a_bad_evaluation_is_named_with_its_line(tmp_path: Path, row: str, problem: str) -> None:
    _, found = problems(folder(tmp_path, curves=f"{CURVES}{row}\n"))
    assert found == f"  line 5: {problem}"


def test_missing_columns_are_named_with_those_that_are_there(tmp_path: Path) -> None:
    _, problem = problems(folder(tmp_path, "workload;workers\ntiny;1\n"))
    assert problem == (
        "  columns are missing: workload, workers, batch_size, epoch_seconds, step_seconds; "
        "it has ['workload;workers']"
    )
    _, problem = problems(folder(tmp_path, curves="workload,epoch,metric\ntiny,1,2\n"))
    assert problem.startswith("  columns are missing: batch_size; it has ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "it is empty"),
        (TIMES.splitlines()[0].encode(), "it has no rows"),
        (TIMES.encode("utf-16"), "it must be a CSV file in UTF-8: 'utf-8' codec can't decode"),
        (TIMES.replace("t4", "t\xe9").encode("latin-1"), "it must be a CSV file in UTF-8: 'utf-8'"),
        (b"a" * 200_000, "it must be a CSV file in UTF-8: field larger than field limit"),
    ],
)
def test_a_file_that_is_no_table_is_named(tmp_path: Path, text: bytes, problem: str) -> None:
    first, found = problems(folder(tmp_path, text))
    assert first == f"{tmp_path / 'tiny.times.csv'} can't be replayed:"
    assert found.startswith(f"  {problem}")


def test_a_directory_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "tiny.grid.csv").mkdir()
    _, problem = problems(tmp_path)
    assert "Is a directory" in problem


def test_rows_of_another_job_are_refused(tmp_path: Path) -> None:
    _, problem = problems(folder(tmp_path, TIMES + "huge,t4,4,32,1,5\n"))
    assert problem == "  its workload must be 'tiny' in every row, got ['huge']"
