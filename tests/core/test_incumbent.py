import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.space import Allocation, Space
from tests.core.drive import amdahl, goal
from tests.core.growing import SPACE, STEPS, StartedHours, Step
from tests.core.plain import demonstrated

SMALL = settings(max_examples=60)
METRICS = st.sampled_from((WorkerHours(), NodeHours(), StartedHours()))


@SMALL
@given(STEPS, st.sampled_from((None, 15.0, 40.0)), METRICS)
def test_the_cheapest_of_all_that_meet_the_deadline_is_the_one(
    steps: list[Step], limit: float | None, cost: CostMetric
) -> None:
    records: dict[str, TrialRecord] = {}
    for step in steps:
        step.apply(records)
    known = Knowledge(tuple(records.values()), SPACE, goal(deadline_seconds=limit), cost)
    every = list(demonstrated(known))
    assert known.demonstrated == tuple((found, deadline) for found, deadline, _ in every)
    in_time = [found for found, deadline, _ in every if deadline <= known.limit]
    late = [f for f, _, runs in every if any(r.seconds_to_target <= known.limit for r in runs)]
    fallback = min(late, key=lambda found: found.seconds.mid, default=None)
    expected = min(in_time, key=lambda found: found.cost.mid, default=fallback)
    assert known.incumbent == expected
    assert known.measured == tuple(in_time)
    if expected is None:
        assert known.plans.least_cost == math.inf or every
        return
    assert known.plans.least_cost <= expected.cost.mid * (1 + 1e-12)
    own = {found.allocation for found in in_time if found.recipe == expected.recipe}
    measured = known.plans.is_measured(expected.recipe)
    assert {SPACE.cells[k] for k in np.flatnonzero(measured)} == own


def reached(name: str, recipe: int, epochs: int, cell: Allocation) -> TrialRecord:
    reports = [Report(float(k), 0.0, 10.0) for k in range(1, epochs)]
    reports.append(Report(float(epochs), 1.0, 10.0))
    return TrialRecord(name, cell, {"lr": recipe}, 0, reports, Ended(EndCause.REACHED))


def test_a_recipe_that_turns_out_to_need_more_gives_way_to_another() -> None:
    cell = SPACE.cells[0]
    records = [reached("a", 1, 4, cell), reached("b", 2, 5, cell)]
    known = Knowledge(records, SPACE, goal(deadline_seconds=300.0), WorkerHours())
    assert known.incumbent is not None
    assert known.incumbent.recipe == known.digests[0].recipe
    records.append(reached("c", 1, 20, cell))
    known = Knowledge(records, SPACE, goal(deadline_seconds=300.0), WorkerHours())
    assert known.incumbent is not None
    assert known.incumbent.recipe == known.digests[1].recipe


def test_before_a_success_and_without_a_timed_cell_there_is_none() -> None:
    space = Space((1,), (64,))
    job = amdahl(space)
    vain = job.record(goal(), space.cells[0], "t", epochs=2)
    for records in ([], [vain]):
        known = Knowledge(records, space, goal(), WorkerHours())
        assert known.incumbent is None
        assert known.plans.least_cost == math.inf
        assert known.demonstrated == ()


@pytest.mark.parametrize("seconds", [10.0, 25.0])
def test_of_equal_costs_the_one_reached_first_is_taken(seconds: float) -> None:
    """A minute that was begun costs as a whole one."""
    cell = SPACE.cells[0]
    records = [reached("a", 1, 2, cell), reached("b", 2, 1, cell)]
    for record in records:
        record.reports = [Report(r.epoch, r.value, seconds) for r in record.reports]
    known = Knowledge(records, SPACE, goal(), StartedHours())
    assert known.incumbent is not None
    assert known.incumbent.record.trial_id == "a"
