import logging
import math
from pathlib import Path

import pytest
from hypothesis import given, settings

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidSpaceError, InvalidWorkloadError
from raycosttune.simulate.oracle import Truth
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.trace import TraceWorkload, list_workloads
from raycosttune.simulate.workload import Curve
from tests.simulate.tiny import CURVES, TIMES, folder, problems
from tests.simulate.worlds import tables

GOAL = Goal(target=0.9, metric="accuracy", mode="max")


@settings(max_examples=30)
@given(tables(startup=False))
def test_a_job_survives_its_files(
    tmp_path_factory: pytest.TempPathFactory, workload: TableWorkload
) -> None:
    times = ["workload,workers,batch_size,step_seconds,epoch_seconds"]
    times += [
        f"tiny,{cell.workers},{cell.batch_size},{workload.steps[cell]!r},{seconds!r}"
        for cell, seconds in workload.epochs.items()
    ]
    curves = ["workload,batch_size,epoch,metric"]
    for batch, curve in workload.curves.items():
        points = zip(curve.epochs, curve.values, strict=True)
        curves += [f"tiny,{batch},{epoch!r},{value!r}" for epoch, value in points]
    path = folder(tmp_path_factory.mktemp("job"), "\n".join(times), "\n".join(curves))
    read = TraceWorkload.read(path, "tiny", workers_per_node=2)
    assert read.space.cells == workload.space.cells
    assert read.epochs == workload.epochs
    assert read.steps == workload.steps
    assert read.curves == workload.curves


def test_a_job_by_hand(tmp_path: Path) -> None:
    workload = TraceWorkload.read(folder(tmp_path), "tiny", workers_per_node=1, startup_seconds=7.0)
    assert workload.name == "tiny"
    assert workload.space.cells == (
        Allocation(1, 32, 1),
        Allocation(1, 64, 1),
        Allocation(2, 32, 2),
    )
    assert workload.epoch_seconds(Allocation(2, 32, 2)) == 60
    assert workload.step_seconds(Allocation(2, 32, 2)) == 0.3
    assert workload.startup_seconds(5) == 7
    assert workload.curve(32) == Curve((1.0, 2.0), (0.5, 0.9))


def test_a_hole_in_the_grid_cannot_be_chosen(tmp_path: Path) -> None:
    workload = TraceWorkload.read(folder(tmp_path), "tiny")
    assert (2, 64) in workload.space.excluded
    assert Allocation(2, 64) not in Truth(workload, GOAL, WorkerHours()).seconds


def test_only_cells_with_times_and_a_curve_can_be_chosen(tmp_path: Path) -> None:
    times = TIMES + "tiny,t4,1,128,0.9,90\n"
    curves = CURVES + "tiny,256,0,1,accuracy,0.6\n"
    workload = TraceWorkload.read(folder(tmp_path, times, curves), "tiny")
    assert workload.space.batches == (32, 64)
    assert set(workload.curves) == {32, 64}


def test_the_grid_is_taken_before_the_times(tmp_path: Path) -> None:
    folder(tmp_path, times="broken")
    (tmp_path / "tiny.grid.csv").write_text(TIMES)
    assert TraceWorkload.read(tmp_path, "tiny").epoch_seconds(Allocation(1, 32)) == 100


def test_the_first_seed_is_replayed(tmp_path: Path) -> None:
    curves = CURVES + "tiny,32,1,3,accuracy,0.99\n"
    workload = TraceWorkload.read(folder(tmp_path, curves=curves), "tiny")
    assert workload.curve(32).epochs == (1.0, 2.0)


def test_evaluations_are_put_in_order(tmp_path: Path) -> None:
    curves = CURVES + "tiny,32,0,0.5,accuracy,0.1\n"
    workload = TraceWorkload.read(folder(tmp_path, curves=curves), "tiny")
    assert workload.curve(32) == Curve((0.5, 1.0, 2.0), (0.1, 0.5, 0.9))


def test_repeated_rows_are_their_median_and_said_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    times = TIMES + "tiny,t4,1,32,0.7,300\ntiny,t4,1,32,0.6,110\n"
    curves = CURVES + "tiny,32,0,2,accuracy,0.8\ntiny,64,0,1,accuracy,0.4\n"
    with caplog.at_level(logging.WARNING):
        workload = TraceWorkload.read(folder(tmp_path, times, curves), "tiny")
    assert workload.epoch_seconds(Allocation(1, 32)) == 110
    assert workload.step_seconds(Allocation(1, 32)) == 0.6
    assert workload.curve(32).values == pytest.approx((0.5, 0.85))
    first, second = caplog.messages
    assert "tiny.times.csv has several rows for 1 keys, the first at (1, 32)" in first
    assert "tiny.curves.csv has several rows for 2 keys, the first at (32, 2.0)" in second
    assert "each is read as its median" in second


@pytest.mark.parametrize(
    ("last", "scales"), [("2,2", (96.0, 32.0)), ("0,2", ()), (",", ()), ("2,nan", ()), ("-2,2", ())]
)
def test_a_curve_carries_the_noise_scale_where_all_its_rows_have_it(
    tmp_path: Path, last: str, scales: tuple[float, ...]
) -> None:
    curves = f"""workload,batch_size,epoch,metric,grad_sqr,grad_var
tiny,32,1,0.5,2,4
tiny,32,2,0.9,2,8
tiny,64,1,0.6,2,6
tiny,64,2,0.6,{last}
"""
    workload = TraceWorkload.read(folder(tmp_path, curves=curves), "tiny")
    assert workload.curve(32).noise_scales == (64.0, 128.0)
    assert workload.curve(64).noise_scales == scales


@pytest.mark.parametrize(
    ("device", "epoch_seconds"), [("t4", 100.0), ("t4-", 7.0), ("v", 5.0), ("v100", 5.0)]
)
def test_a_device_is_its_whole_name_or_the_start_of_one(
    tmp_path: Path, device: str, epoch_seconds: float
) -> None:
    times = TIMES + "tiny,t4-large,1,32,0.5,7\ntiny,v100,1,32,0.5,5\n"
    workload = TraceWorkload.read(folder(tmp_path, times), "tiny", device=device)
    assert workload.epoch_seconds(Allocation(1, 32)) == epoch_seconds


def test_several_devices_must_be_told_apart(tmp_path: Path) -> None:
    times = TIMES + "tiny,v100,1,32,0.5,5\n"
    _, problem = problems(folder(tmp_path, times))
    assert problem == "  it has several devices, name one of them: ['t4', 'v100']"


def test_an_unknown_device_is_named_with_the_known(tmp_path: Path) -> None:
    _, problem = problems(folder(tmp_path), device="k80")
    assert problem == "  the device must start one of ['t4'], got 'k80'"


def test_an_unknown_job_is_named_with_the_known(tmp_path: Path) -> None:
    folder(tmp_path)
    folder(tmp_path, name="alone")
    (tmp_path / "alone.times.csv").unlink()
    assert list_workloads(tmp_path) == ["tiny"]
    with pytest.raises(InvalidWorkloadError, match=r"must be one of \['tiny'\], got 'alone'"):
        TraceWorkload.read(tmp_path, "alone")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert problems(gone) == [f"the folder of traces must exist, got {gone}"]
    assert problems(folder(tmp_path) / "tiny.times.csv")
    assert list_workloads(gone) == []


def test_times_and_curves_without_a_common_batch_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, curves=CURVES.replace(",32,", ",33,").replace(",64,", ",65,"))
    (message,) = problems(path)
    assert message.endswith("must share a batch size, got [32, 64] and [33, 65]")


@pytest.mark.parametrize("startup", [-1.0, math.nan, math.inf])
def test_a_start_up_that_is_no_time_is_refused(tmp_path: Path, startup: float) -> None:
    (message,) = problems(folder(tmp_path), startup_seconds=startup)
    assert message == f"startup_seconds must be a finite number of at least 0, got {startup}"


def test_a_node_without_workers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpaceError, match=r"Space\.workers_per_node must"):
        TraceWorkload.read(folder(tmp_path), "tiny", workers_per_node=0)


def test_a_target_that_no_curve_reaches_is_named_with_the_best_value(tmp_path: Path) -> None:
    workload = TraceWorkload.read(folder(tmp_path), "tiny")
    with pytest.raises(InvalidWorkloadError, match=r"tiny: no curve .* the best value is 0\.9\."):
        Truth(workload, Goal(target=0.95, metric="accuracy", mode="max"), WorkerHours())
