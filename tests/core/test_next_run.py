import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.array import Floats
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.next_run import worth_before
from raycosttune.core.observation import TrialRecord
from raycosttune.core.planner import Planner
from raycosttune.core.profiling import choose_profile, next_profile
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, amdahl, goal, spaces_and_jobs
from tests.core.told import know, vain

SPACE = Space((1, 2, 4, 8), (64, 128))
JOB = amdahl(SPACE)
FEW = [cell for cell in SPACE.cells if cell.workers <= 2]
SLOW = JOB.seconds(Allocation(1, 64))


def planned(known: Knowledge) -> Planner:
    return Planner(known, recipes=False, can_resize=True)


def told(limits: Goal, *records: TrialRecord) -> Knowledge:
    return know(SPACE, JOB, FEW, [*records], limits=limits)


def worth(known: Knowledge) -> Floats:
    made = planned(known)
    every = np.ones(len(known.cells), dtype=bool)
    return worth_before(made.outlook("{}"), made.fresh("{}"), every)


def of(known: Knowledge, workers: int) -> float:
    """Returns what a sample of so many workers is worth at most."""
    at = [k for k, cell in enumerate(known.cells) if cell.workers == workers]
    return float(worth(known)[at].max())


@settings(max_examples=25)
@given(spaces_and_jobs(), st.floats(0.5, 4.0), st.data())
def test_a_sample_is_worth_something_between_nothing_and_the_next_run_at_its_batch(
    table: tuple[Space, Job], factor: float, data: st.DataObject
) -> None:
    space, job = table
    cell = data.draw(st.sampled_from(space.cells))
    limits = goal(deadline_seconds=factor * job.seconds(cell))
    known = know(space, job, space.cells[:3], [vain(job, cell, 3, "t")], limits=limits)
    is_open = np.array(data.draw(st.lists(st.booleans(), min_size=len(known.cells))))
    is_open = is_open[: len(known.cells)]
    made = planned(known)
    fresh = made.fresh("{}")
    found = worth_before(made.outlook("{}"), fresh, is_open)
    assert (found >= 0).all()
    assert (found <= fresh.costs.min()).all()
    assert (found[~is_open] == 0).all()
    assert len({known.cells[k].batch_size for k in np.flatnonzero(found)}) <= 1


def test_unknown_workers_that_may_save_a_deadline_are_worth_timing() -> None:
    """Those known may be late: more of them are the dearer way, and the surer one."""
    begun = vain(JOB, Allocation(2, 64), 3, "t")
    limits = goal(deadline_seconds=0.6 * SLOW)
    known = told(limits, begun)
    least = planned(known).fresh("{}").costs.min()
    assert of(known, 4) > 0.01 * least
    all_known = know(SPACE, JOB, SPACE.cells, [begun], limits=limits)
    assert of(all_known, 4) < 0.001 * least


def test_no_sample_is_worth_anything_where_no_run_has_hope() -> None:
    known = told(goal(deadline_seconds=0.05 * SLOW), vain(JOB, FEW[0], 1, "t"))
    assert not planned(known).fresh("{}").has_hope
    assert not worth(known).any()


def test_a_deadline_at_risk_has_more_workers_timed_before_the_next_run() -> None:
    known = told(goal(deadline_seconds=0.6 * SLOW), vain(JOB, Allocation(2, 64), 3, "t"))
    made = planned(known)
    chosen = choose_profile(known, made, free=None)
    assert chosen is not None
    assert chosen.held.workers > 2
    alone = next_profile(known, made.outlook("{}"))
    assert alone is None or alone.why != chosen.why
