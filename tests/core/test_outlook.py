import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.cost import WorkerHours
from raycosttune.core.going import Going
from raycosttune.core.observation import TrialRecord
from raycosttune.core.outlook import Outlook
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, amdahl, goal, spaces_and_jobs
from tests.core.told import begun, know, vain

SPACE = Space((1, 2, 4), (64, 128, 256))
JOB = amdahl(SPACE)
SMALL = settings(max_examples=25)


class FreeAtFirst:
    """Costs nothing for two hours."""

    unit = "EUR"

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        return allocation.workers * max(seconds - 7200, 0.0)


def outlook(
    space: Space = SPACE,
    job: Job = JOB,
    *records: TrialRecord,
    deadline: float | None = None,
    can_resize: bool = True,
) -> Outlook:
    known = know(space, job, space.cells, records, limits=goal(deadline_seconds=deadline))
    return Outlook(known, "{}", can_resize=can_resize)


@SMALL
@given(spaces_and_jobs(), st.none() | st.floats(0.2, 5), st.integers(0, 5))
def test_chances_and_costs_are_such(
    table: tuple[Space, Job], share: float | None, done: int
) -> None:
    space, job = table
    cell = space.cells[0]
    deadline = None if share is None else share * job.seconds(cell)
    found = outlook(space, job, vain(job, cell, done), deadline=deadline)
    assert 0 <= found.chance_in_time <= 1 + 1e-9
    assert found.near.chance.sum() == pytest.approx(1)
    assert (found.near.chance >= 0).all()
    assert ((found.near.doubt >= 0) & (found.near.doubt <= 1 + 1e-9)).all()
    assert 0 < found.near.cost < math.inf
    assert 0 < found.whole < math.inf
    assert 0 < found.least < math.inf
    place, chance = found.likeliest_in_time()
    assert 0 <= place < len(found.cells)
    assert 0 <= chance <= 1 + 1e-9
    if deadline is None:
        assert found.chance_in_time == pytest.approx(1)
        assert not found.near.doubt.any()


@SMALL
@given(spaces_and_jobs(), st.floats(1, 100), st.floats(0.2, 5))
def test_the_cheapest_cell_is_that_of_the_whole_table(
    table: tuple[Space, Job], epochs: float, share: float
) -> None:
    space, job = table
    batch = space.cells[0].batch_size
    deadline = share * (job.startup_seconds + epochs * job.epoch_seconds[space.cells[0]])
    found = outlook(space, job, deadline=deadline)
    cost, place = found.cheapest(batch, np.array(epochs), caution=0.5)
    expected = math.inf
    for k in found.places(batch):
        seconds = found.startups[k] + epochs * math.exp(found.log_seconds[k])
        margin = 0.5 * found.sd[k] if found.sd[k] > 0.08 else 0.02
        if seconds * math.exp(margin) <= deadline:
            expected = min(expected, seconds * WorkerHours()(found.cells[k], 3600.0) / 3600)
    assert float(cost) == pytest.approx(expected)
    assert found.cells[int(place)].batch_size == batch


def test_a_tighter_deadline_is_met_less_likely_and_costs_no_less() -> None:
    fast = min(JOB.seconds(cell) for cell in SPACE.cells)
    ran = vain(JOB, SPACE.cells[0], 2)
    loose, tight = (outlook(SPACE, JOB, ran, deadline=share * fast) for share in (50, 0.5))
    assert loose.chance_in_time > tight.chance_in_time
    # Laws that would miss the deadline count with what a miss costs.
    assert (np.minimum(loose.costs, 1e9) <= np.minimum(tight.costs, 1e9) + 1e-9).all()


def test_where_no_law_is_in_time_a_run_still_has_a_cost() -> None:
    found = outlook(SPACE, JOB, vain(JOB, SPACE.cells[0], 200), deadline=1e-3)
    assert found.chance_in_time < 1e-3
    assert 0 < found.whole < math.inf
    assert (found.restart(64, np.array([1.0, 1e30])) > 0).all()


def test_a_restart_costs_more_the_longer_a_run_was_in_vain() -> None:
    found = outlook()
    costs = found.restart(64, np.array([0.0, 5.0, 50.0, 500.0]))
    assert (np.diff(costs) > 0).all()


def test_a_step_stays_on_the_workers_of_a_run_unless_it_may_move() -> None:
    run = begun(JOB, SPACE.cells[0], 2)
    for workers in (1, 2, 4):
        fixed = outlook(SPACE, JOB, run, can_resize=False)
        _, place = fixed.step(64, penalty=fixed.whole, epoch=2.0, going=Going(workers))
        assert fixed.cells[place].workers == workers
    _, place = outlook().step(64, penalty=1.0)
    assert outlook().cells[place].batch_size == 64


def test_a_run_that_fails_costs_what_it_took_and_what_a_fresh_one_costs_now() -> None:
    run = begun(JOB, SPACE.cells[0], 2)
    found, going = outlook(SPACE, JOB, run, deadline=1e5, can_resize=False), Going(1)
    soon = found.belief.stages(64, 2.0)[0] - 2.0
    took = soon * JOB.epoch_seconds[SPACE.cells[0]] * found.rates[0]
    for anew in (1.0, 7.0):
        cost, _ = found.step(64, penalty=anew, epoch=2.0, seconds_left=1e-3, going=going)
        assert cost == pytest.approx(took + anew, rel=0.05)


def test_what_costs_nothing_at_first_is_ranked_by_time() -> None:
    known = know(SPACE, JOB, SPACE.cells, cost=FreeAtFirst())
    found = Outlook(known, "{}", can_resize=True)
    assert np.isfinite(found.near.chance).all()
    assert found.near.chance.sum() == pytest.approx(1)
    cost, _ = found.step(64, penalty=2 * found.whole)
    assert math.isfinite(cost)
