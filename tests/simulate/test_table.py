from hypothesis import given

from raycosttune.simulate.table import TableWorkload
from tests.simulate.worlds import FEW, curve, one_batch, tables


@FEW
@given(tables())
def test_a_table_answers_what_was_measured(workload: TableWorkload) -> None:
    for cell in workload.space.cells:
        assert workload.epoch_seconds(cell) == workload.epochs[cell]
        assert workload.step_seconds(cell) == workload.steps[cell]
        assert workload.startup_seconds(cell.workers) == workload.startups[cell.workers]
        assert workload.curve(cell.batch_size) is workload.curves[cell.batch_size]


def test_a_worker_count_without_a_start_up_has_the_common_one() -> None:
    workload = one_batch({1: 1.0, 2: 1.0}, startup=7.0)
    assert workload.startup_seconds(2) == 7
    assert workload.curve(64) == curve(4)
