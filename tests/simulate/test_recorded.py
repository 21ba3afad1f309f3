import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidWorkloadError
from raycosttune.results.header import header_row
from raycosttune.results.journal import Journal
from raycosttune.results.rows import asked_row, observation_row
from raycosttune.simulate.noise import Noise
from raycosttune.simulate.oracle import Truth
from raycosttune.simulate.recorded import RecordedWorkload, read_recorded_header
from raycosttune.simulate.run import simulate
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.workload import Curve
from tests.simulate.worlds import tables

GOAL = Goal(target=1.0, metric="m", mode="max", planned_runs=100)
COSTS: st.SearchStrategy[CostMetric] = st.sampled_from((NodeHours(), WorkerHours()))
SWEEPS = settings(max_examples=15)


def swept(workload: TableWorkload, cost: CostMetric, noise: Noise | None = None) -> Session:
    made: list[Session] = []

    def start(clock: Callable[[], float]) -> Session:
        made.append(Session(workload.space, GOAL, cost=cost, clock=clock))
        return made[0]

    simulate(start, workload, cost=cost, noise=noise)
    return made[0]


def written(folder: Path, records: Iterable[TrialRecord]) -> Path:
    """Writes the journal of a finished sweep and returns it."""
    path = folder / "raycosttune" / "journal.jsonl"
    journal = Journal(path)
    journal.append(header_row(GOAL, "worker-hours"))
    for record in records:
        journal.append(asked_row(record))
        journal.append(*(observation_row(record.trial_id, told) for told in record.reports))
        if record.ended is not None:
            journal.append(observation_row(record.trial_id, record.ended))
    return path


def record(
    name: str,
    values: Iterable[float | None],
    *,
    cell: Allocation | None = None,
    lr: float = 0.1,
    epoch_seconds: float = 10.0,
) -> TrialRecord:
    reports = [
        Report(float(k), value, epoch_seconds + (5 if k == 1 else 0), 5.0 if k == 1 else 0.0)
        for k, value in enumerate(values, start=1)
    ]
    ended = Ended(EndCause.STOPPED)
    return TrialRecord(name, cell or Allocation(1, 32), {"lr": lr}, 0, reports, ended)


@SWEEPS
@given(workload=tables(), cost=COSTS)
def test_replaying_a_sweep_finds_the_oracle_among_the_cells_that_it_finished(
    tmp_path_factory: pytest.TempPathFactory, workload: TableWorkload, cost: CostMetric
) -> None:
    session = swept(workload, cost)
    folder = tmp_path_factory.mktemp("sweep")
    written(folder, session.records.values())
    recorded = RecordedWorkload.read(folder, GOAL)
    tried = {told.allocation for told in session.records.values()}
    assert set(recorded.space.cells) == tried
    assert recorded.name == folder.name
    for cell in tried:
        assert recorded.epoch_seconds(cell) == pytest.approx(workload.epochs[cell])
        assert recorded.step_seconds(cell) == pytest.approx(workload.epochs[cell] / 100)
        start = workload.startups[cell.workers]
        slack = 1e-9 * workload.epochs[cell]  # of what rounding leaves of an even first epoch
        assert recorded.startup_seconds(cell.workers) == pytest.approx(start, abs=slack)
        curve, whole = recorded.curve(cell.batch_size), workload.curve(cell.batch_size)
        assert curve.epochs == whole.epochs[: len(curve.epochs)]
        assert curve.values == whole.values[: len(curve.values)]
    known, true = Truth(recorded, GOAL, cost), Truth(workload, GOAL, cost)
    finished = {b for b in recorded.curves if recorded.curve(b).epochs_to(GOAL) < math.inf}
    cheapest = min(true.costs[cell] for cell in tried if cell.batch_size in finished)
    assert known.oracle_cost == pytest.approx(cheapest)
    assert true.costs[known.oracle] == pytest.approx(cheapest)


@SWEEPS
@given(workload=tables(), cost=COSTS, sd=st.floats(0, 0.3))
def test_a_sweep_with_a_plan_can_be_replayed_whatever_its_noise(
    workload: TableWorkload, cost: CostMetric, sd: float
) -> None:
    session = swept(workload, cost, Noise(sd, value_sd=sd))
    reached = [r for r in session.records.values() if any((t.value or 0) >= 1 for t in r.reports)]
    recorded = RecordedWorkload.of(session.records.values(), GOAL)
    batches = {told.allocation.batch_size for told in reached}
    finished = {b for b in recorded.curves if recorded.curve(b).epochs_to(GOAL) < math.inf}
    assert batches == finished


def test_a_journal_is_read_by_its_own_path_too(tmp_path: Path) -> None:
    journal = written(tmp_path / "digits", [record("a", (0.5, 1.0))])
    by_file = RecordedWorkload.read(journal, GOAL)
    assert by_file == RecordedWorkload.read(str(tmp_path / "digits"), GOAL)
    assert by_file.name == "digits"
    moved = journal.rename(tmp_path / "mine.jsonl")
    assert RecordedWorkload.read(moved, GOAL).name == tmp_path.name


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    journal = written(tmp_path, [record("a", (0.5, 1.0))])
    whole = RecordedWorkload.read(tmp_path, GOAL)
    with journal.open("a") as file:
        file.write('{"row": "report", "trial_id": "a", "ep')
    assert RecordedWorkload.read(tmp_path, GOAL) == whole


@pytest.mark.parametrize("records", [[], [record("a", ())], [record("a", (None, None))]])
def test_a_journal_without_values_is_refused(tmp_path: Path, records: list[TrialRecord]) -> None:
    journal = written(tmp_path, records)
    with pytest.raises(InvalidWorkloadError) as caught:
        RecordedWorkload.read(tmp_path, GOAL)
    assert str(caught.value) == (
        f"a trial must have reported the metric and its time, none did @ {journal}"
    )


def test_an_empty_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").touch()
    with pytest.raises(InvalidWorkloadError, match="none did"):
        RecordedWorkload.read(tmp_path / "journal.jsonl", GOAL)


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidWorkloadError, match="must have a journal, found none @"):
        RecordedWorkload.read(tmp_path, GOAL)


@pytest.mark.parametrize("name", ["loop", "n" * 300])
def test_a_path_that_nothing_can_have_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InvalidWorkloadError, match=r"found none @|can't be replayed"):
        RecordedWorkload.read(tmp_path / name, GOAL)
    with pytest.raises(InvalidWorkloadError, match=r"holds no journal|can't be replayed"):
        read_recorded_header(tmp_path / name)


ASKED = asked_row(record("a", ()))


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([{"row": "header", "version": 99}], "version must be 1, got 99"),
        ([{**ASKED, "workers": "many"}], "workers must be a whole number"),
        ([{**ASKED, "recipe": None}], "recipe must be an object, got None"),
        ([ASKED, {"row": "report", "trial_id": "a"}], "'epoch'"),
    ],
)
def test_a_journal_that_cannot_be_read_is_named(
    tmp_path: Path, rows: list[dict[str, Any]], problem: str
) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InvalidWorkloadError, match="can't be replayed") as caught:
        RecordedWorkload.read(path, GOAL)
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"\xff\xfe\x00\n\xff\n")
    with pytest.raises(InvalidWorkloadError, match="can't be replayed"):
        RecordedWorkload.read(path, GOAL)


def test_the_recipe_that_reached_the_target_first_is_replayed() -> None:
    records = [
        record("slow", (0.1, 0.2, 1.0), lr=0.1),
        record("fast", (0.3, 1.0), lr=0.2),
        record("short", (0.9,), lr=0.3),
    ]
    assert RecordedWorkload.of(records, GOAL).curve(32) == Curve((1.0, 2.0), (0.3, 1.0))


def test_without_a_success_the_recipe_that_came_furthest_is_replayed() -> None:
    records = [record("a", (0.1, 0.2, 0.3), lr=0.1), record("b", (0.3, 0.4), lr=0.2)]
    assert RecordedWorkload.of(records, GOAL).curve(32) == Curve((1.0, 2.0), (0.3, 0.4))


def test_a_recipe_that_ran_twice_is_the_median_of_its_successes() -> None:
    records = [
        record("a", (0.25, 0.5, 1.0)),
        record("b", (0.75, 0.5, 0.5, 1.0), cell=Allocation(2, 32)),
        record("cut", (0.0, 0.0, 0.0)),
    ]
    curve = RecordedWorkload.of(records, GOAL).curve(32)
    assert curve == Curve((1.0, 2.0, 3.0, 4.0), (0.5, 0.5, 0.75, 1.0))


def test_a_start_costs_the_one_off_work_of_its_first_epoch_too() -> None:
    cell = Allocation(1, 32)
    told = record("a", (0.5, 0.7, 1.0), cell=cell, epoch_seconds=0.035)
    told.reports[0] = Report(1.0, 0.5, 0.2 + 4.886, 0.2)
    again = Report(4.0, 1.0, 0.3 + 0.5 + 0.035, 0.3, attempt=2)
    told.reports.append(again)
    workload = RecordedWorkload.of([told], GOAL)
    assert workload.startup_seconds(1) == pytest.approx((0.2 + 4.851 + 0.8) / 2)
    assert workload.epoch_seconds(cell) == pytest.approx(0.035)
    told.reports.pop()
    seconds = sum(report.seconds for report in told.reports)
    outcome = Truth(RecordedWorkload.of([told], GOAL), GOAL, WorkerHours())
    assert outcome.oracle_cost == pytest.approx(seconds / 3600)


def test_a_value_or_a_time_that_is_no_number_is_left_out() -> None:
    odd = record("a", (math.nan, 0.5, 1.0))
    odd.reports[1] = Report(2.0, 0.5, math.nan)
    workload = RecordedWorkload.of([odd], GOAL)
    assert workload.curve(32) == Curve((2.0, 3.0), (0.5, 1.0))
    assert workload.epoch_seconds(Allocation(1, 32)) == 10


def test_each_cell_keeps_its_machines() -> None:
    cells = [Allocation(1, 32, 1), Allocation(4, 32, 2), Allocation(8, 32, 4)]
    workload = RecordedWorkload.of([record(str(c), (1.0,), cell=c) for c in cells], GOAL)
    assert list(workload.space.cells) == cells


def test_machines_of_several_sizes_are_refused() -> None:
    cells = [Allocation(4, 32, 1), Allocation(8, 32, 3)]
    with pytest.raises(InvalidWorkloadError, match="machines of one size"):
        RecordedWorkload.of([record(str(c), (1.0,), cell=c) for c in cells], GOAL)


def test_a_sweep_among_types_is_replayed_among_them(tmp_path: Path) -> None:
    cells = [Allocation(2, 32, 2, "small"), Allocation(2, 32, 1, "large")]
    records = [record(cell.node_type, [0.5, 1.0], cell=cell) for cell in cells]
    written(tmp_path, records)
    workload = RecordedWorkload.read(tmp_path, GOAL)
    assert set(workload.space.cells) == set(cells)
    outcome = simulate(
        lambda clock: Session(workload.space, GOAL, cost=NodeHours(), clock=clock),
        workload,
        cost=NodeHours(),
    )
    assert outcome.moments[-1].chosen == cells[1]
