import numpy as np

from raycosttune.core.digest import summed_up
from raycosttune.core.observation import EndCause, Ended, Report, Resized, TrialRecord
from raycosttune.core.space import Allocation, Space
from raycosttune.core.tally import Tally
from tests.core.drive import goal

SPACE = Space((1, 2), (64, 128))
FOREIGN = Allocation(3, 96)


def trial(cell: Allocation, epochs: int, *, reached: bool = True, lr: float = 0.1) -> TrialRecord:
    reports = [Report(float(k), 0.0, 10.0) for k in range(1, epochs + 1)]
    if reached:
        reports[-1] = Report(float(epochs), 1.0, 10.0)
    return TrialRecord("t", cell, {"lr": lr}, 0, reports, Ended(EndCause.STOPPED))


def tally_of(*records: TrialRecord) -> Tally:
    tally = Tally(SPACE, goal(deadline_seconds=50.0))
    for turn, record in enumerate(records):
        tally.add(summed_up(record, goal()), turn)
    return tally


def test_a_copy_grows_by_itself() -> None:
    first = tally_of(trial(SPACE.cells[0], 3))
    second = first.copy()
    second.add(summed_up(trial(SPACE.cells[1], 2), goal()), 1)
    assert len(first.epoch_seconds) == 1
    assert len(second.epoch_seconds) == 2
    assert first.best.keys() == {64}
    assert second.best.keys() == {64, 128}


def test_a_cell_outside_the_space_has_epochs_but_no_place() -> None:
    tally = tally_of(trial(FOREIGN, 3))
    key = next(iter(tally.recipes))
    assert not tally.epoch_seconds
    assert not tally.tried(key).any()
    assert tally.hits(96, key) is not None
    assert tally.hits(64, key) is None
    assert tally.hits(64, "none") is None


def test_the_cells_tried_are_those_of_a_recipe() -> None:
    tally = tally_of(trial(SPACE.cells[1], 3), trial(SPACE.cells[2], 3, lr=0.2))
    one, other = tally.recipes
    np.testing.assert_array_equal(np.flatnonzero(tally.tried(one)), [1])
    np.testing.assert_array_equal(np.flatnonzero(tally.tried(other)), [2])
    assert not tally.tried(None).any()


def test_the_fewest_epochs_of_a_batch_and_of_a_cell_are_found_anew_where_runs_change_them() -> None:
    cell, other = SPACE.cells[0], SPACE.cells[2]
    assert (cell.batch_size, other.batch_size) == (64, 64)
    records = [trial(cell, 3), trial(cell, 4, lr=0.2), trial(other, 2, lr=0.3)]
    tally = tally_of(*records)
    key = {lr: list(tally.recipes)[k] for k, lr in enumerate((0.1, 0.2, 0.3))}
    assert tally.best[64].recipe == key[0.3]
    assert (tally.own[cell].recipe, tally.own[other].recipe) == (key[0.1], key[0.3])
    tally = tally_of(*records, trial(other, 40, lr=0.3), trial(cell, 30))
    assert tally.best[64].recipe == key[0.2]
    assert tally.own[cell].recipe == key[0.2]
    assert tally.own[other].recipe == key[0.3]


def test_what_recipes_contradict_in_themselves_is_the_largest_of_theirs() -> None:
    cells = {cell.batch_size: cell for cell in SPACE.cells}
    tally = tally_of(trial(cells[64], 80), trial(cells[128], 10), trial(cells[64], 2, lr=0.2))
    assert tally.violation == max(epochs.violation for epochs in tally.epochs.values())
    assert tally.violation > 1


def test_memory_ran_out_where_the_run_was_and_not_where_it_began() -> None:
    lost = trial(Allocation(2, 64), 2, reached=False)
    lost.resized, lost.ended = Resized(1, 1), Ended(EndCause.OUT_OF_MEMORY)
    assert tally_of(lost).out_of_memory == (Allocation(1, 64),)
