import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from raycosttune.core.space import Allocation, BatchReading, Space
from raycosttune.errors import InvalidSpaceError

GRIDS = st.lists(st.integers(1, 24), min_size=1, max_size=5)
BATCHES = st.lists(st.integers(1, 400), min_size=1, max_size=5)


@st.composite
def any_spaces(draw: st.DrawFn) -> Space:
    readings: tuple[BatchReading, ...] = ("global", "local")
    try:
        return Space(
            tuple(draw(GRIDS)),
            tuple(draw(BATCHES)),
            batch=draw(st.sampled_from(readings)),
            workers_per_node=draw(st.none() | st.integers(1, 8)),
            divisible=draw(st.booleans()),
            min_local_batch=draw(st.integers(1, 4)),
            max_local_batch=draw(st.none() | st.integers(4, 400)),
            max_workers=draw(st.none() | st.integers(1, 24)),
        )
    except InvalidSpaceError:
        assume(condition=False)
        raise


@given(any_spaces())
def test_every_cell_is_offered_and_within_the_bounds(space: Space) -> None:
    assert space.cells
    assert list(space.cells) == sorted(set(space.cells))
    for cell in space.cells:
        assert cell.workers in space.workers
        assert space.user_batch(cell) in space.batches
        assert cell.workers <= (space.max_workers or math.inf)
        assert cell.batch_size // cell.workers >= space.min_local_batch
        assert cell.local_batch <= (space.max_local_batch or math.inf)
        assert not space.divisible or cell.batch_size % cell.workers == 0


@pytest.mark.parametrize(("reading", "expected"), [("global", 64), ("local", 16)])
def test_a_batch_is_told_as_the_user_reads_it(reading: BatchReading, expected: int) -> None:
    space = Space((4,), (expected,), batch=reading)
    assert space.cells[0].batch_size == 64
    assert space.user_batch(space.cells[0]) == expected


@given(any_spaces())
def test_no_legal_pair_is_left_out(space: Space) -> None:
    pairs = {(cell.workers, space.user_batch(cell)) for cell in space.cells}
    for workers in space.workers:
        for batch in space.batches:
            shares = [batch] * workers
            if space.batch == "global":
                shares = [batch // workers + (k < batch % workers) for k in range(workers)]
            is_legal = (
                min(shares) >= space.min_local_batch
                and max(shares) <= (space.max_local_batch or math.inf)
                and (len(set(shares)) == 1 or not space.divisible)
                and workers <= (space.max_workers or math.inf)
            )
            assert is_legal is ((workers, batch) in pairs)


@given(space=any_spaces(), data=st.data())
def test_excluding_pairs_leaves_exactly_the_other_cells(space: Space, data: st.DataObject) -> None:
    pairs = [(cell.workers, space.user_batch(cell)) for cell in space.cells]
    excluded = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    try:
        narrowed = replace(space, excluded=tuple(excluded))
    except InvalidSpaceError:
        batches = {batch for _, batch in set(pairs) - set(excluded)}
        assert batches < set(space.batches)
        return
    left = tuple(space.allocation(*pair) for pair in pairs if pair not in excluded)
    assert narrowed.cells == tuple(sorted(left))


def test_a_local_batch_is_bounded_over_all_workers() -> None:
    space = Space((1, 2000), (10**9,), batch="local", max_workers=1)
    assert space.cells == (Allocation(1, 10**9),)
    with pytest.raises(InvalidSpaceError, match=r"at most 10\*\*12 over all workers, got 2000"):
        replace(space, max_workers=None)


def test_a_pair_is_excluded_by_the_batch_as_the_user_reads_it() -> None:
    space = Space((1, 2), (32, 64), batch="local", excluded=((2, 32), (7, 7)))
    assert space.cells == (Allocation(1, 32), Allocation(1, 64), Allocation(2, 128))


@pytest.mark.parametrize("excluded", [(4,), ((1, 2, 3),), (("1", 64),), ((0, 64),)])
def test_what_is_excluded_must_be_pairs_of_counts(excluded: Any) -> None:
    with pytest.raises(InvalidSpaceError, match=r"Space\.excluded must"):
        Space((1, 2), (64,), excluded=excluded)


def test_a_list_of_excluded_pairs_leaves_the_space_hashable() -> None:
    pairs: Any = [[2, 64]]
    space = Space((1, 2), (64,), excluded=pairs)
    assert hash(space) == hash(Space((1, 2), (64,), excluded=((2, 64),)))


@given(any_spaces())
def test_nodes_hold_the_workers_and_none_is_idle(space: Space) -> None:
    for cell in space.cells:
        each = space.workers_per_node or cell.workers
        assert (cell.nodes - 1) * each < cell.workers <= cell.nodes * each


@given(any_spaces())
def test_a_cell_is_found_by_its_workers_and_the_users_batch(space: Space) -> None:
    for cell in space.cells:
        assert space.allocation(cell.workers, space.user_batch(cell)) == cell


@given(workers=st.integers(1, 64), batch=st.integers(1, 512))
def test_a_local_batch_is_the_share_of_each_worker(workers: int, batch: int) -> None:
    (cell,) = Space((workers,), (batch,), batch="local").cells
    assert cell == Allocation(workers, workers * batch)
    assert cell.local_batch == batch


@given(GRIDS, BATCHES)
def test_order_and_repetition_of_the_grids_do_not_matter(
    workers: list[int], batches: list[int]
) -> None:
    space = Space(tuple(workers), tuple(batches), batch="local")
    again = Space(tuple(workers[::-1] * 2), tuple(batches * 2), batch="local")
    assert space == again
    assert space.cells == again.cells


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("workers", ()),
        ("batches", ()),
        ("workers", (0,)),
        ("workers", (1, -2)),
        ("workers", (True,)),
        ("batches", (1.5,)),
        ("batches", ("64",)),
        ("batch", "each"),
        ("batches", (10**400,)),
        ("workers", (10**13,)),
        ("workers", ([1],)),
        ("workers_per_node", 0),
        ("min_local_batch", 0),
        ("max_local_batch", 0.5),
        ("max_workers", -1),
    ],
)
def test_a_bad_value_is_named_with_its_rule(name: str, value: object) -> None:
    arguments: dict[str, Any] = {"workers": (1, 2), "batches": (64,), name: value}
    with pytest.raises(InvalidSpaceError) as caught:
        Space(**arguments)
    shown = value[-1] if isinstance(value, tuple) and value else value
    shown = [] if shown == () else shown
    assert f"Space.{name} must " in str(caught.value)
    assert f"got {shown!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("space", "bounds"),
    [
        ({"workers": (3, 5), "batches": (15, 64)}, "divisible=True"),
        ({"workers": (8,), "batches": (4,), "divisible": False}, "[1, any]"),
        ({"workers": (1,), "batches": (64,), "max_local_batch": 32}, "[1, 32]"),
        ({"workers": (4,), "batches": (64,), "min_local_batch": 32}, "[32, any]"),
        ({"workers": (4,), "batches": (64,), "excluded": ((4, 64),)}, "1 pair excluded"),
    ],
)
def test_a_batch_that_no_worker_count_can_split_is_named(
    space: dict[str, Any], bounds: str
) -> None:
    batch, workers = space["batches"][-1], list(space["workers"])
    with pytest.raises(InvalidSpaceError, match=f"the batch {batch} can't be split") as caught:
        Space(**space)
    assert ("excluded" in str(caught.value)) is ("excluded" in space)
    assert str(workers) in str(caught.value)
    assert bounds in str(caught.value)
    assert "Drop it, or widen the bounds." in str(caught.value)


def test_a_cluster_too_small_for_every_worker_count_is_named() -> None:
    with pytest.raises(InvalidSpaceError, match="at most 2 workers") as caught:
        Space((4, 8), (64,), max_workers=2)
    assert "[4, 8]" in str(caught.value)
    assert "Offer fewer workers or a larger cluster." in str(caught.value)


def test_cells_beyond_the_cluster_are_dropped_while_others_are_left() -> None:
    space = Space((1, 4), (64,), max_workers=2)
    assert space.cells == (Allocation(1, 64),)


def test_an_uneven_batch_is_counted_on_the_most_loaded_worker() -> None:
    assert Allocation(3, 64).local_batch == 22


def test_numpy_s_counts_become_python_s_own() -> None:
    workers: Any = np.array([1, 2])
    space = Space(workers, (64,), workers_per_node=workers[1])
    assert space == Space((1, 2), (64,), workers_per_node=2)
    assert {type(cell.workers) for cell in space.cells} == {int}
    assert type(space.workers_per_node) is int
