import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.certificate import Certificate, certify
from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, amdahl, goal, spaces_and_jobs

METRICS = st.sampled_from((NodeHours(), WorkerHours()))


@settings(max_examples=150)
@given(data=st.data(), table=spaces_and_jobs(), cost=METRICS, share=st.floats(0, 1))
def test_nothing_untried_saves_more_than_the_gap_where_the_shape_holds(
    data: st.DataObject, table: tuple[Space, Job], cost: CostMetric, share: float
) -> None:
    space, job = table
    times = sorted(job.seconds(cell) for cell in space.cells)
    limits = goal(deadline_seconds=(times[0] + share * (times[-1] - times[0])) * 1.001)
    limit = limits.deadline_seconds or math.inf
    whole = data.draw(st.sets(st.sampled_from(space.cells), min_size=1))
    begun = data.draw(st.sets(st.sampled_from(space.cells)))
    records = [job.record(limits, cell, f"whole {cell}") for cell in sorted(whole)]
    records += [job.record(limits, cell, f"begun {cell}", epochs=1) for cell in sorted(begun)]
    known = Knowledge(records, space, limits, cost)
    incumbent = known.incumbent
    if incumbent is None:
        assert all(job.seconds(cell) > limit * 0.85 for cell in whole)
        return
    certificate = certify(known, incumbent)
    measured = {other.allocation for other in known.measured}
    best = (1 - certificate.gap) * incumbent.cost.mid
    assert 0 <= certificate.gap <= 1
    for cell in set(space.cells) - measured:
        if job.seconds(cell) <= limit:
            assert cost(cell, job.seconds(cell)) >= best * (1 - 1e-9)


@settings(max_examples=40)
@given(table=spaces_and_jobs(), cost=METRICS)
def test_a_whole_table_leaves_no_gap(table: tuple[Space, Job], cost: CostMetric) -> None:
    space, job = table
    records = [job.record(goal(), cell, str(cell)) for cell in space.cells]
    known = Knowledge(records, space, goal(), cost)
    assert known.incumbent is not None
    certificate = certify(known, known.incumbent)
    assert (certificate.gap, certificate.untried) == (0.0, 0)
    assert "nothing untried can be cheaper" in str(certificate)


def test_the_gap_is_what_the_bounds_leave_to_the_best_untried_cell() -> None:
    space = Space((1,), (32, 64))
    job = Job(dict.fromkeys(space.cells, 10.0), {32: 10.0, 64: 10.0})
    known = Knowledge([job.record(goal(), space.cells[1], "t")], space, goal(), WorkerHours())
    assert known.incumbent is not None
    noise, slack = 0.10 / 3, 0.10  # nine epochs were timed; the slack is the least there is
    seconds, epochs = 10 * math.exp(-noise - slack), 9 / 2 * math.exp(-slack)
    certificate = certify(known, known.incumbent)
    assert certificate.gap == pytest.approx(1 - seconds * epochs / 100, abs=0.01)
    assert certificate.untried == 1


def test_a_later_violation_withdraws_what_a_certificate_promised() -> None:
    space = Space((1,), (32, 64, 128, 256))
    job = Job(dict(zip(space.cells, (2.0, 10.0, 10.0, 10.0), strict=True)), amdahl(space).epochs)
    small, whole, untried, large = space.cells
    records = [job.record(goal(), whole, "whole"), job.record(goal(), large, "begun", epochs=1)]
    before = Knowledge(records, space, goal(), WorkerHours())
    odd = job.record(goal(), small, "odd", epochs=1)
    after = Knowledge([*records, odd], space, goal(), WorkerHours())
    assert before.incumbent is not None
    assert after.incumbent is not None
    slacks = [certify(known, before.incumbent).time_slack for known in (before, after)]
    assert slacks[0] < slacks[1]
    assert after.least_seconds(untried, 5) < before.least_seconds(untried, 5)


def test_a_cell_that_cannot_meet_the_deadline_does_not_count() -> None:
    space = Space((1, 2), (32, 64))
    slow, _, _, whole = space.cells
    job = Job({slow: 330.0, whole: 100.0}, {32: 10.0, 64: 10.0})

    def untried(deadline: float | None) -> int:
        limits = goal(deadline_seconds=deadline)
        records = [job.record(limits, whole, "t"), job.record(limits, slow, "begun", epochs=1)]
        known = Knowledge(records, space, limits, WorkerHours())
        assert known.incumbent is not None
        return certify(known, known.incumbent).untried

    assert (untried(None), untried(1001)) == (3, 1)  # both cells of one worker are too slow


def test_a_certificate_names_its_gap_and_its_slack() -> None:
    text = str(Certificate(0.181, 3, 0.105, 0.2))
    assert "nothing untried can save more than 19%" in text
    assert "slack 10% on epoch time, 20% on epochs" in text
    assert text.startswith("among these workers and batches, with the recipes tried")


class Rebate:
    """Falls where a run takes longer."""

    unit = "EUR"
    monotone = False

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        return allocation.workers * 1000 / (1 + seconds)


def test_nothing_is_certified_of_a_cost_that_may_fall_until_all_is_measured() -> None:
    space = Space((1,), (32, 64))
    job = amdahl(space)
    some = [job.record(goal(), space.cells[0], "a")]
    known = Knowledge(some, space, goal(), Rebate())
    assert known.incumbent is not None
    assert known.incumbent.cost.low <= known.incumbent.cost.mid <= known.incumbent.cost.high
    certificate = certify(known, known.incumbent)
    assert (certificate.gap, certificate.untried, certificate.is_bounded) == (1.0, 1, False)
    assert "nothing is certified, as the cost may fall" in str(certificate)
    known = Knowledge([*some, job.record(goal(), space.cells[1], "b")], space, goal(), Rebate())
    assert known.incumbent is not None
    assert "nothing untried can be cheaper" in str(certify(known, known.incumbent))
