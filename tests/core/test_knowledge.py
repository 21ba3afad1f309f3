import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.digest import seconds_to_target, summed_up
from raycosttune.core.goal import Goal
from raycosttune.core.incumbent import bounded_cost
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.node_type import NodeType
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.space import Allocation, Space
from raycosttune.core.timed import timed
from tests.core.drive import Job, amdahl, goal, spaces_and_jobs

METRICS = st.sampled_from((NodeHours(), WorkerHours()))
SMALL = settings(max_examples=60)
GOAL = goal()
CELL = Allocation(1, 64)


def know(
    records: list[TrialRecord], space: Space, goal: Goal = GOAL, cost: CostMetric | None = None
) -> Knowledge:
    return Knowledge(records, space, goal, cost or WorkerHours())


def whole_table(space: Space, job: Job, goal: Goal = GOAL) -> list[TrialRecord]:
    return [job.record(goal, cell, f"t{k}") for k, cell in enumerate(space.cells)]


def ended(cell: Allocation, cause: EndCause, *reports: Report) -> TrialRecord:
    return TrialRecord("t", cell, {}, 0, list(reports), Ended(cause))


def trial(*reports: Report) -> TrialRecord:
    return TrialRecord("t", CELL, {}, 0, list(reports))


@SMALL
@given(data=spaces_and_jobs(), cost=METRICS, share=st.floats(0, 1))
def test_on_a_whole_table_the_incumbent_is_the_cheapest_cell_by_the_deadline(
    data: tuple[Space, Job], cost: CostMetric, share: float
) -> None:
    space, job = data
    times = sorted(job.seconds(cell) for cell in space.cells)
    deadline = (times[0] + share * (times[-1] - times[0])) * 1.001
    limits = goal(deadline_seconds=deadline)
    known = know(whole_table(space, job, limits), space, limits, cost)
    within = [cell for cell in space.cells if job.seconds(cell) <= deadline]
    oracle = min(cost(cell, job.seconds(cell)) for cell in within)
    assert known.incumbent is not None
    chosen = known.incumbent.allocation
    assert chosen in within
    # What a single epoch shows may be off by its noise, at most this half width.
    assert cost(chosen, job.seconds(chosen)) <= oracle * math.exp(2 * 0.10)
    assert known.incumbent.cost.mid == pytest.approx(oracle, rel=math.expm1(0.10))


@SMALL
@given(data=spaces_and_jobs(), cost=METRICS)
def test_whatever_is_measured_is_predicted_in_its_bounds(
    data: tuple[Space, Job], cost: CostMetric
) -> None:
    space, job = data
    for known in know(whole_table(space, job), space, GOAL, cost).measured:
        for predicted in (known.epochs, known.seconds, known.cost):
            assert predicted.low <= predicted.mid * (1 + 1e-9)
            assert predicted.mid <= predicted.high * (1 + 1e-9)


def test_epochs_of_a_batch_are_known_for_every_timed_cell() -> None:
    space = Space((1, 2, 4), (64,))
    job = amdahl(space)
    timed = job.record(GOAL, space.cells[2], "timed", epochs=1)
    known = know([job.record(GOAL, space.cells[0], "whole"), timed], space)
    assert {other.allocation for other in known.measured} == {space.cells[0], space.cells[2]}


def test_no_cell_is_measured_beyond_the_deadline_unless_it_met_it() -> None:
    space = Space((1,), (64,))
    job = Job({space.cells[0]: 10.0}, {64: 4.0})
    fast = job.record(GOAL, space.cells[0], "fast")
    slow = Job({space.cells[0]: 15.0}, {64: 4.0}).record(GOAL, space.cells[0], "slow")
    limits = goal(deadline_seconds=41)
    assert know([fast, slow], space, limits).incumbent is not None
    assert know([slow], space, limits).incumbent is None


@given(st.integers(1, 5), st.integers(1, 100))
def test_one_run_less_remains_once_a_model_is_in_hand(workers: int, planned: int) -> None:
    space = Space((workers,), (64,), divisible=False)
    limits = goal(planned_runs=planned)
    assert know([], space, limits).remaining_runs == planned
    records = whole_table(space, amdahl(space), limits)
    assert know(records, space, limits).remaining_runs == planned - 1


@pytest.mark.parametrize(("failures", "is_left"), [(0, True), (1, True), (2, False), (3, False)])
def test_a_cell_that_fails_twice_before_a_report_is_dropped(failures: int, is_left: bool) -> None:
    space = Space((1, 2), (64,))
    known = know([ended(space.cells[0], EndCause.FAILED)] * failures, space)
    assert (space.cells[0] in known.cells) is is_left
    assert space.cells[1] in known.cells


@pytest.mark.parametrize(
    ("hung", "is_left"), [((41.0,), True), ((41.0, 40.9), True), ((41.0, 42.0), False)]
)
def test_a_cell_that_passes_the_deadline_twice_before_a_report_is_dropped(
    hung: tuple[float, ...], is_left: bool
) -> None:
    space, limits = Space((1, 2), (64,)), goal(deadline_seconds=41)
    end = [Ended(EndCause.STOPPED, "", seconds) for seconds in hung]
    records = [TrialRecord("t", space.cells[0], {}, 0, [], each) for each in end]
    assert (space.cells[0] in know(records, space, limits).cells) is is_left
    assert space.cells[0] in know(records, space).cells
    assert space.cells[1] in know(records, space, limits).cells


LATE = Ended(EndCause.STOPPED, "", 41.0, is_starting=True)
STARTED = [Report(1.0, 0.5, 30.0, 20.0)]


@pytest.mark.parametrize(
    ("batches", "end", "reports", "limit", "left"),
    [
        ((64,), LATE, [], 41.0, {1: 3, 2: 3}),
        ((64, 64), LATE, [], 41.0, {1: 3}),
        ((64, 128), LATE, [], 41.0, {1: 3}),
        ((64, 128), LATE, [], 42.0, {1: 3, 2: 3}),
        ((64, 128), LATE, STARTED, 41.0, {1: 3, 2: 3}),
        ((64, 128), replace(LATE, is_starting=False), [], 41.0, {1: 3, 2: 3}),
    ],
)
def test_workers_that_twice_have_not_begun_by_the_deadline_and_never_did_are_tried_at_no_batch(
    batches: tuple[int, ...], end: Ended, reports: list[Report], limit: float, left: dict[int, int]
) -> None:
    space = Space((1, 2), (64, 128, 256))
    cells = {batch: Allocation(2, batch) for batch in space.batches}
    records = [TrialRecord("t", cells[batch], {}, 0, [], end) for batch in batches]
    records += [TrialRecord("r", cells[256], {}, 0, reports)] if reports else []
    known = know(records, space, goal(deadline_seconds=limit))
    assert Counter(cell.workers for cell in known.cells) == left
    other = replace(space, node_types=(NodeType("a"), NodeType("b")))
    typed = [replace(r, allocation=replace(r.allocation, node_type="a")) for r in records]
    known = know(typed, other, goal(deadline_seconds=limit))
    assert Counter(cell.workers for cell in known.cells if cell.node_type == "a") == left
    assert Counter(cell.workers for cell in known.cells if cell.node_type == "b") == {1: 3, 2: 3}


def test_a_failure_after_a_report_does_not_drop_a_cell() -> None:
    space = Space((1,), (64,))
    failed = ended(space.cells[0], EndCause.FAILED, Report(1.0, 0.0, 1.0))
    assert know([failed] * 3, space).cells == space.cells


def test_out_of_memory_drops_its_cell_and_twice_whatever_is_as_large() -> None:
    space = Space((1, 2, 4), (64, 128, 256))
    out = Allocation(1, 128)
    once = know([ended(out, EndCause.OUT_OF_MEMORY)], space)
    assert set(space.cells) - set(once.cells) == {out}
    twice = know([ended(out, EndCause.OUT_OF_MEMORY)] * 2, space)
    assert all(cell.local_batch < 128 for cell in twice.cells)
    assert set(space.cells) - set(twice.cells) == {c for c in space.cells if c.local_batch >= 128}


def test_the_scale_is_guessed_from_the_deadline_while_nothing_is_timed() -> None:
    space = Space((1, 2), (64, 128))
    assert know([], space).guessed_scale == 1.0
    limits = goal(deadline_seconds=100)
    known = know([], space, limits)
    fastest = min(
        known.time.predict(cell).mid * known.accuracy.samples(None, cell.batch_size).mean
        for cell in space.cells
    )
    assert known.guessed_scale * fastest == pytest.approx(50)


def test_the_start_up_of_each_attempt_is_a_sample() -> None:
    space = Space((1,), (64,))
    record = trial(
        Report(1.0, 0.0, 12.0, 10.0),
        Report(2.0, 0.0, 2.0),
        Report(3.0, 0.0, 32.0, 30.0, attempt=2),
    )
    predicted = know([record, trial()], space).startup.predict(space.cells[0])
    assert (predicted.low, predicted.mid, predicted.high) == (10.0, 20.0, 30.0)


def test_an_unbounded_time_costs_an_unbounded_sum() -> None:
    space = Space((1,), (64,))
    known = know([], space)
    predicted = bounded_cost(known.cost, space.cells[0], known.time.predict(space.cells[0]))
    assert predicted.high == math.inf
    assert math.isfinite(predicted.mid)


@given(
    epochs=st.lists(st.floats(0, 10), min_size=1, max_size=6),
    attempts=st.lists(st.integers(1, 3), min_size=6, max_size=6),
    hits=st.sets(st.integers(0, 5)),
)
def test_the_target_lies_between_the_epochs_seen(
    epochs: list[float], attempts: list[int], hits: set[int]
) -> None:
    attempts.sort()
    reports = [
        Report(epoch, 1.0 if k in hits else 0.0, 1.0, attempt=attempts[k])
        for k, epoch in enumerate(epochs)
    ]
    record = trial(*reports)
    digest = summed_up(record, GOAL)
    seen, hit = digest.epochs, digest.reached
    assert seen is not None
    assert 0 <= seen.low < seen.high
    assert seen.is_censored is (hit is None)
    if hit is not None:
        assert seen.high == pytest.approx(hit.epoch, abs=1e-6)


def test_a_target_reached_before_the_first_epoch_is_known() -> None:
    space = Space((1,), (64,))
    record = trial(Report(0.0, 1.0, 5.0, 5.0), Report(1.0, 1.0, 2.0))
    incumbent = know([record], space).incumbent
    assert incumbent is not None
    assert incumbent.epochs.mid < 1e-5
    assert incumbent.seconds.mid == pytest.approx(5, abs=1e-3)


def test_epochs_above_a_resumed_start_do_not_lie_above_the_target() -> None:
    record = trial(
        *(Report(float(k), 0.0, 1.0) for k in range(1, 6)), Report(4.0, 1.0, 1.0, attempt=2)
    )
    seen = summed_up(record, GOAL).epochs
    assert seen is not None
    assert (seen.low, seen.high) == (3.0, 4.0)


def test_only_the_time_up_to_the_target_counts() -> None:
    reports = [Report(1.0, 0.0, 3.0), Report(2.0, 1.0, 4.0), Report(3.0, 1.0, 5.0)]
    assert seconds_to_target(trial(*reports), GOAL) == 7.0
    assert seconds_to_target(trial(*reports[:1]), GOAL) == 3.0


def test_first_epochs_are_left_out_where_later_ones_are_timed() -> None:
    first = Report(1.0, 0.0, 30.0, 10.0)
    assert timed(trial(first))[0] == {1: (20.0,)}
    assert timed(trial(first, Report(3.0, 0.0, 10.0)))[0] == {1: (5.0,)}
    restart = Report(4.0, 0.0, 99.0, attempt=2)
    assert timed(trial(first, Report(3.0, 0.0, 10.0), restart))[0] == {1: (5.0,)}


def test_what_is_no_step_ahead_is_not_timed() -> None:
    back = Report(1.0, 0.0, 3.0, attempt=2)
    assert timed(trial(Report(2.0, 0.0, 8.0), back))[0] == {1: (4.0,)}
    assert timed(trial(Report(1.0, 0.0, 5.0, 5.0)))[0] == {}
