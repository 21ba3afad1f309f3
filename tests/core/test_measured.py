import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.measured import measured_space, space_of, workers_per_node
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidWorkloadError

PAIRS = st.sets(st.tuples(st.integers(1, 6), st.integers(6, 20)), min_size=1)


@given(pairs=PAIRS, per_node=st.none() | st.integers(1, 4))
def test_exactly_the_measured_pairs_can_be_chosen(
    pairs: set[tuple[int, int]], per_node: int | None
) -> None:
    space = measured_space(pairs, per_node)
    assert {(cell.workers, cell.batch_size) for cell in space.cells} == pairs
    for cell in space.cells:
        assert cell.nodes == -(-cell.workers // (per_node or cell.workers))


@given(pairs=PAIRS, per_node=st.integers(1, 4))
def test_the_size_of_the_machines_gives_every_cell_its_nodes(
    pairs: set[tuple[int, int]], per_node: int
) -> None:
    cells = measured_space(pairs, per_node).cells
    size = workers_per_node(cells)
    assert all(cell.nodes == -(-cell.workers // size) for cell in cells)


def test_cells_on_machines_of_two_sizes_are_refused() -> None:
    with pytest.raises(InvalidWorkloadError, match="machines of one size"):
        workers_per_node([Allocation(4, 64, 1), Allocation(2, 64, 2)])


def test_the_space_of_cells_has_their_types_and_no_other_cell() -> None:
    plain = [Allocation(1, 64), Allocation(2, 64)]
    assert space_of(plain).cells == tuple(plain)
    typed = {
        Allocation(1, 64, 1, "a"),
        Allocation(4, 64, 2, "a"),
        Allocation(4, 128, 4, "b"),
    }
    assert set(space_of(typed).cells) == typed
