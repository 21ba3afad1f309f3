from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.measured import measured_space
from raycosttune.simulate.table import TableWorkload
from tests.simulate.worlds import FEW, curve, one_batch, tables

PAIRS = st.sets(st.tuples(st.integers(1, 6), st.integers(6, 20)), min_size=1)


@given(pairs=PAIRS, per_node=st.none() | st.integers(1, 4))
def test_exactly_the_measured_pairs_can_be_chosen(
    pairs: set[tuple[int, int]], per_node: int | None
) -> None:
    space = measured_space(pairs, per_node)
    assert {(cell.workers, cell.batch_size) for cell in space.cells} == pairs
    for cell in space.cells:
        assert cell.nodes == -(-cell.workers // (per_node or cell.workers))


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
