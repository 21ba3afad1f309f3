from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.array import Floats
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.outlook import Outlook
from raycosttune.core.retiming import worth_timing
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, amdahl, goal, spaces_and_jobs
from tests.core.told import know

SPACE = Space((1, 2, 4), (64, 128))
JOB = amdahl(SPACE)
SLOW, MIDDLE, FAST = SPACE.cells[0], Allocation(2, 64, 1), Allocation(4, 64, 1)


def worth(known: Knowledge) -> dict[Allocation, float]:
    """Returns what one more sample of each cell is worth."""
    return dict(zip(known.cells, valued(known).tolist(), strict=True))


def valued(known: Knowledge) -> Floats:
    assert known.incumbent is not None
    return worth_timing(Outlook(known, "{}", can_resize=True), known.incumbent)


@settings(max_examples=25)
@given(spaces_and_jobs(), st.booleans(), st.data())
def test_a_sample_is_worth_something_between_nothing_and_the_plan_where_epochs_are_known(
    table: tuple[Space, Job], has_deadline: bool, data: st.DataObject
) -> None:
    space, job = table
    cell = data.draw(st.sampled_from(space.cells))
    limits = goal(deadline_seconds=1.5 * job.seconds(cell) if has_deadline else None)
    known = know(space, job, space.cells[:3], [job.record(limits, cell, "t")], limits=limits)
    assert known.incumbent is not None
    found = valued(known)
    is_reached = np.array([each.batch_size == cell.batch_size for each in known.cells])
    assert (np.isnan(found) == ~is_reached).all()
    assert (found[is_reached] >= 0).all()
    assert (found[is_reached] <= known.incumbent.cost.mid).all()


def test_a_rival_is_worth_timing_and_what_costs_far_more_is_not() -> None:
    """Epoch times that follow no law are known less well."""
    uneven = {c: 60.0 / c.workers for c in SPACE.cells}
    job = Job(uneven | {MIDDLE: 31.0, FAST: 60.0, SPACE.cells[1]: 75.0}, JOB.epochs)
    found = worth(know(SPACE, job, SPACE.cells, [job.record(goal(), SLOW, "t")]))
    assert found[SLOW] > 0
    assert found[MIDDLE] > 0
    assert found[FAST] == pytest.approx(0, abs=1e-9)


def test_a_cell_without_a_rival_is_worth_no_sample() -> None:
    lone = Space((1,), (64,))
    known = know(lone, JOB, lone.cells, [JOB.record(goal(), lone.cells[0], "t")])
    assert valued(known)[0] == pytest.approx(0, abs=1e-12)


def test_a_plan_that_may_be_late_is_worth_timing_the_more() -> None:
    """No law fits the times, so that the plan is known less well than the faster rival."""
    times = {c: 60.0 / c.workers for c in SPACE.cells} | {SLOW: 75.0, FAST: 17.0}
    job = Job(times, JOB.epochs)
    found = []
    for factor in (2.0, 1.15):
        limits = goal(deadline_seconds=factor * job.seconds(MIDDLE))
        known = know(SPACE, job, SPACE.cells, [job.record(limits, FAST, "t")], limits=limits)
        assert known.incumbent is not None
        assert known.incumbent.allocation == MIDDLE
        found.append(worth(known)[MIDDLE])
    assert found[1] > 2 * found[0] > 0


def test_several_samples_may_be_worth_more_each_than_one() -> None:
    limits = goal(deadline_seconds=1.01 * JOB.seconds(SLOW))
    known = know(SPACE, JOB, SPACE.cells, [JOB.record(limits, FAST, "t")], limits=limits)
    assert known.incumbent is not None
    outlook = Outlook(known, "{}", can_resize=True)
    several = worth_timing(outlook, known.incumbent)
    one = worth_timing(outlook, known.incumbent, np.ones(1))
    assert several[known.cells.index(SLOW)] > 1.2 * one[known.cells.index(SLOW)]
    assert (several >= one)[~np.isnan(one)].all()


def test_a_cheaper_cell_is_worth_timing_that_caution_alone_keeps_from_being_in_time() -> None:
    limits = goal(deadline_seconds=1.02 * JOB.seconds(SLOW))
    known = know(SPACE, JOB, SPACE.cells, [JOB.record(limits, FAST, "t")], limits=limits)
    assert known.incumbent is not None
    assert known.incumbent.allocation == MIDDLE
    found = worth(known)
    assert found[SLOW] > 0.01 * known.incumbent.cost.mid
    assert found[MIDDLE] == pytest.approx(0, abs=1e-9)


def test_a_cell_that_a_run_showed_in_time_needs_no_caution() -> None:
    limits = goal(deadline_seconds=JOB.seconds(SLOW))
    known = know(SPACE, JOB, SPACE.cells, [JOB.record(limits, SLOW, "t")], limits=limits)
    assert known.incumbent is not None
    assert known.incumbent.allocation == SLOW
    assert worth(known)[SLOW] == pytest.approx(0, abs=1e-9)


def test_beside_a_plan_that_changing_workers_showed_a_cell_is_worth_what_it_costs_less() -> None:
    """No cell counts as in time by itself: a run takes all of the deadline."""
    job = Job(dict.fromkeys(SPACE.cells, 100.0), {64: 10.0, 128: 10.0})
    limits = goal(deadline_seconds=1000.5)
    run = job.record(limits, FAST, "t")
    run.reports[5:] = [replace(r, workers=1, attempt=2) for r in run.reports[5:]]
    known = know(SPACE, job, [SLOW], [run], limits=limits)
    assert known.incumbent is not None
    assert known.incumbent.allocation in {SLOW, FAST}
    assert worth(known)[MIDDLE] >= 0
