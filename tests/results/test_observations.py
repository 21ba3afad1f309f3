from pathlib import Path

import pytest

from raycosttune.core.observation import EndCause
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidWorkloadError
from raycosttune.results.observations import read_observations

HEADER = "workers,batch_size,epoch,seconds,value"


def write(folder: Path, *lines: str) -> Path:
    path = folder / "runs.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rows_of_one_configuration_are_one_run(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER, "2,64,1,12.5,0.5", "1,64,1,20,", "2,64,2,2.5,0.9")
    first, second = read_observations(path, "value")
    assert first.allocation == Allocation(2, 64, 1)
    assert [(r.epoch, r.value, r.seconds) for r in first.reports] == [(1, 0.5, 12.5), (2, 0.9, 2.5)]
    assert second.reports[0].value is None
    assert first.ended is not None
    assert first.ended.cause is EndCause.FINISHED


def test_a_trial_and_other_columns_tell_runs_apart(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "trial,workers,batch_size,nodes,epoch,seconds,startup_seconds,loss,lr,kind",
        "a,2,64,2,1,12,10,0.5,0.1,adam",
        "b,2,64,2,1,12,10,0.5,0.2,",
    )
    first, second = read_observations(path, "loss")
    assert (first.trial_id, first.allocation.nodes) == ("a", 2)
    assert first.recipe == {"lr": 0.1, "kind": "adam"}
    assert second.recipe == {"lr": 0.2}
    assert first.reports[0].startup_seconds == 10


def test_all_problems_are_named_each_with_its_line(tmp_path: Path) -> None:
    path = write(
        tmp_path, HEADER, "two,64,1,12,0.5", "2,64,1,soon,0.5", "2,64,1,1,0.5", "2,64,1,1,0.5"
    )
    with pytest.raises(InvalidWorkloadError) as told:
        read_observations(path, "value")
    assert str(told.value).splitlines() == [
        f"workers must be a whole number of at least 1, got 'two' @ {path}:2",
        f"seconds must be a finite number, got 'soon' @ {path}:3",
        f"epoch 1 of 2x64 was there before @ {path}:5",
    ]


def test_many_problems_are_cut(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER, *["0,64,1,1,0.5"] * 25)
    with pytest.raises(InvalidWorkloadError, match="and 5 more"):
        read_observations(path, "value")


@pytest.mark.parametrize("lines", [[], [HEADER], ["workers,epoch"], ["a,b", "1,2"]])
def test_a_file_without_the_columns_is_refused(lines: list[str], tmp_path: Path) -> None:
    with pytest.raises(InvalidWorkloadError, match=r"must have rows with the columns.*--metric"):
        read_observations(write(tmp_path, *lines), "value")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidWorkloadError, match="can't be read"):
        read_observations(path, "value")


@pytest.mark.parametrize("row", ["2,64,-1,5,0.1", "2,64,1,-5,0.1", "2,64,1,1e300,0.1"])
def test_an_amount_that_nobody_can_have_measured_is_refused(row: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidWorkloadError, match=r"must be a number from 0 to .*runs\.csv:2"):
        read_observations(write(tmp_path, HEADER, row), "value")


@pytest.mark.parametrize(
    ("header", "row"), [(HEADER, "2,64,1,0,5,0,9"), (f"{HEADER},lr", "2,64,1,0,5,0,9,0,1")]
)
def test_decimals_with_a_comma_are_not_read_as_other_columns(
    header: str, row: str, tmp_path: Path
) -> None:
    path = write(tmp_path, header, "2,64,1,1,0.9", row)
    with pytest.raises(InvalidWorkloadError, match=r"decimals with a point, got \d @ .*:3$"):
        read_observations(path, "value")


def test_empty_fields_after_the_last_column_are_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, f"{HEADER},", "2,64,1,1,0.9,,", "2,64,2,1,0.9")
    (run,) = read_observations(path, "value")
    assert (len(run.reports), run.recipe) == (2, {})


@pytest.mark.parametrize("column", ["value", "workers", "lr"])
def test_a_column_that_comes_twice_is_refused(column: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"{HEADER},lr,{column}", "2,64,1,1,0.9,0.1,4")
    with pytest.raises(InvalidWorkloadError, match=f"each column once, got {column} twice"):
        read_observations(path, "value")


@pytest.mark.parametrize("second", ["a,4,64,2,1,0.9,0.1", "a,2,64,2,1,0.9,0.2"])
def test_a_trial_has_one_configuration(second: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"trial,{HEADER},lr", "a,2,64,1,1,0.5,0.1", second)
    with pytest.raises(InvalidWorkloadError, match=r"a was 2 workers, batch 64, lr=0.1 before.*:3"):
        read_observations(path, "value")


def test_empty_lines_count_as_lines(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER, "", "", "2,64,1,1,much")
    with pytest.raises(InvalidWorkloadError, match=r"runs\.csv:4$"):
        read_observations(path, "value")


def test_other_separators_are_told_by_the_columns_found(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER.replace(",", ";"), "2;64;1;1;0,9")
    with pytest.raises(InvalidWorkloadError, match=r"got \['workers;batch_size.*by commas"):
        read_observations(path, "value")
