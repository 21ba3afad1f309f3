import pytest

from raycosttune.core.knowledge import Knowledge
from raycosttune.core.likely import likely_gap
from raycosttune.core.outlook import Outlook
from raycosttune.core.space import Allocation, Space
from tests.core.drive import amdahl, goal
from tests.core.told import know, vain

SPACE = Space((1, 2, 4), (64, 128, 256))
JOB = amdahl(SPACE)


def gap(known: Knowledge) -> float:
    incumbent = known.incumbent
    assert incumbent is not None
    return likely_gap(Outlook(known, incumbent.recipe, can_resize=True), incumbent)


def ran(cell: Allocation) -> Knowledge:
    return know(SPACE, JOB, SPACE.cells, [JOB.record(goal(), cell, "t")])


def test_more_is_likely_to_be_saved_over_a_dearer_plan() -> None:
    by_cost = sorted(SPACE.cells, key=lambda cell: cell.workers * JOB.seconds(cell))
    assert 0 <= gap(ran(by_cost[0])) < gap(ran(by_cost[-1])) < 1


def test_what_was_run_in_vain_is_likely_to_save_less() -> None:
    first, other = SPACE.cells[0], SPACE.cells[1]
    reached = JOB.record(goal(), other, "t")
    before = know(SPACE, JOB, SPACE.cells, [reached])
    after = know(SPACE, JOB, SPACE.cells, [reached, vain(JOB, first, 3, "v")])
    assert gap(after) <= gap(before)


def test_nothing_untried_saves_nothing() -> None:
    space = Space((1,), (64,))
    job = amdahl(space)
    record = job.record(goal(), space.cells[0], "t")
    assert gap(know(space, job, space.cells, [record])) == pytest.approx(0)
