import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core import stopping
from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.decision import Continue, Decision, Stop, StopCause
from raycosttune.core.goal import Goal
from raycosttune.core.going import Going, going
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.planner import Planner
from raycosttune.core.space import Space
from raycosttune.core.stopping import _why, decide
from tests.core import growing
from tests.core.drive import Job, amdahl, goal, spaces_and_jobs

METRICS = st.sampled_from((NodeHours(), WorkerHours()))
SPACE = Space((1, 2), (64, 128))
CELL, OTHER = SPACE.cells[:2]
JOB = amdahl(SPACE)
GOAL = goal()


def running(*reports: Report) -> TrialRecord:
    return TrialRecord("live", CELL, {}, 1, list(reports))


def still(record: TrialRecord) -> Going:
    return Going(record.allocation.workers, can_resize=False)


def judge(record: TrialRecord, *others: TrialRecord, goal: Goal = GOAL) -> Decision:
    return decide(Knowledge([*others, record], SPACE, goal, WorkerHours()), record, still(record))


def cause(decision: Decision) -> StopCause | None:
    return decision.cause if isinstance(decision, Stop) else None


def test_a_trial_that_has_shown_nothing_goes_on() -> None:
    assert judge(running()) == Continue()
    assert judge(running(Report(1.0, 0.0, 10.0))) == Continue()


@given(st.lists(st.none() | st.floats(-2, 2), min_size=1, max_size=5))
def test_a_trial_stops_once_any_report_of_its_run_reached_the_target(
    values: list[float | None],
) -> None:
    record = running(*(Report(k + 1.0, value, 1.0) for k, value in enumerate(values)))
    is_reached = any(value is not None and value >= 1 for value in values)
    assert (cause(judge(record)) is StopCause.REACHED) is is_reached


def test_with_a_planner_it_decides() -> None:
    record = running(Report(1.0, 0.0, 500.0))
    known = Knowledge([record], SPACE, goal(deadline_seconds=400.0), WorkerHours())
    planner = Planner(known, recipes=False, can_resize=True)
    decision = decide(known, record, still(record), planner=planner)
    assert decision == planner.next_step(record, still(record))
    assert cause(decision) is StopCause.DEADLINE


@pytest.mark.parametrize(("epochs", "expected"), [(2, None), (3, StopCause.EPOCHS)])
def test_a_trial_stops_after_the_most_epochs(epochs: int, expected: StopCause | None) -> None:
    record = running(*(Report(float(k), 0.0, 1.0) for k in range(1, epochs + 1)))
    decision = judge(record, goal=goal(max_epochs=3))
    assert cause(decision) is expected
    if isinstance(decision, Stop):
        assert decision.why == "not at the target after 3 epochs"


def test_the_target_in_the_last_epoch_counts() -> None:
    record = running(Report(1.0, 0.0, 1.0), Report(2.0, 1.0, 1.0))
    assert cause(judge(record, goal=goal(max_epochs=2))) is StopCause.REACHED


@settings(max_examples=60)
@given(table=spaces_and_jobs(), data=st.data(), cost=METRICS)
def test_no_run_that_would_meet_the_deadline_is_stopped_for_it(
    table: tuple[Space, Job], data: st.DataObject, cost: CostMetric
) -> None:
    space, job = table
    cell = data.draw(st.sampled_from(space.cells))
    limits = goal(deadline_seconds=job.seconds(cell) * 1.001)
    others = data.draw(st.sets(st.sampled_from(space.cells)))
    records = [job.record(limits, other, str(other)) for other in sorted(others)]
    live = TrialRecord("live", cell, {}, 1)
    for epoch in range(1, job.needed(cell, {})):
        live.reports.append(job.report(limits, cell, {}, epoch))
        decision = decide(Knowledge([*records, live], space, limits, cost), live, still(live))
        assert cause(decision) in (None, StopCause.COST)


def test_a_run_beyond_its_deadline_is_stopped() -> None:
    reports = [Report(float(k), 0.0, 10.0) for k in range(1, 6)]
    tight, loose = goal(deadline_seconds=55), goal(deadline_seconds=65)
    decision = judge(running(*reports), goal=tight)
    assert cause(decision) is StopCause.DEADLINE
    assert isinstance(decision, Stop)
    assert decision.why == "can't reach the target within 55 s: 50 s have passed"
    assert judge(running(*reports), goal=loose) == Continue()


@settings(max_examples=60)
@given(table=spaces_and_jobs(), data=st.data(), cost=METRICS, planned=st.integers(1, 50))
def test_a_run_is_cut_for_its_cost_only_where_finishing_it_cannot_pay(
    table: tuple[Space, Job], data: st.DataObject, cost: CostMetric, planned: int
) -> None:
    space, job = table
    limits = goal(planned_runs=planned)
    best, cell = (data.draw(st.sampled_from(space.cells)) for _ in range(2))
    done = job.record(limits, best, "done")
    live = TrialRecord("live", cell, {}, 1)
    needed = job.needed(cell, {})
    live.reports.extend(job.report(limits, cell, {}, k) for k in range(1, max(needed // 2, 2)))
    known = Knowledge([done, live], space, limits, cost)
    assert known.incumbent is not None
    if cause(decide(known, live, still(live))) is not StopCause.COST or best == cell:
        return  # running the same cell again saves nothing
    batch = [other for other in space.cells if other.batch_size == cell.batch_size]
    oracle = min(cost(other, job.seconds(other)) for other in batch)
    saving = (planned - 1) * (known.incumbent.cost.mid - oracle)
    left = cost(cell, job.epoch_seconds[cell] * max(needed - live.epoch, 1))
    assert saving <= left * 1.25


def test_a_run_that_cannot_save_what_it_costs_says_so() -> None:
    dear = Job({CELL: 10.0, OTHER: 10.0}, {64: 5.0, 128: 10.0})
    reports = [dear.report(GOAL, OTHER, {}, epoch) for epoch in range(1, 10)]
    live = TrialRecord("live", OTHER, {}, 1, reports)
    decision = judge(live, dear.record(GOAL, CELL, "done"))
    assert cause(decision) is StopCause.COST
    assert isinstance(decision, Stop)
    assert "worker-hours where 0.0139 are known to do" in decision.why
    assert decision.why.endswith("finishing it costs more than it can save")


@pytest.mark.parametrize(("planned", "expected"), [(2, StopCause.COST), (100, None)])
def test_a_small_saving_pays_only_over_many_runs(planned: int, expected: StopCause | None) -> None:
    job = Job({CELL: 10.0, OTHER: 9.0}, {64: 5.0, 128: 6.0})
    limits = goal(planned_runs=planned)
    live = TrialRecord("live", OTHER, {}, 1, [job.report(limits, OTHER, {}, 1)])
    assert cause(judge(live, job.record(limits, CELL, "done"), goal=limits)) is expected


@pytest.mark.parametrize(("deadline", "expected"), [(88, None), (81, StopCause.DEADLINE)])
def test_only_a_run_that_is_late_at_its_best_is_stopped(
    deadline: float, expected: StopCause | None
) -> None:
    limits = goal(deadline_seconds=deadline, planned_runs=100)
    job = Job({CELL: 10.0, SPACE.cells[2]: 5.0}, {64: 10.0})
    done = job.record(limits, SPACE.cells[2], "done")
    live = TrialRecord("live", CELL, {}, 1, [job.report(limits, CELL, {}, 1)])
    decision = decide(Knowledge([done, live], SPACE, limits, NodeHours()), live, still(live))
    assert (cause(decision) is StopCause.DEADLINE) is (expected is StopCause.DEADLINE)


def test_a_cheaper_run_goes_on() -> None:
    cheap = Job({CELL: 500.0, OTHER: 5.0}, {64: 5.0, 128: 6.0})
    live = TrialRecord("live", OTHER, {}, 1, [cheap.report(GOAL, OTHER, {}, 1)])
    assert judge(live, cheap.record(GOAL, CELL, "done")) == Continue()


def test_a_run_that_resumed_behind_its_last_report_goes_on() -> None:
    reports = [Report(float(k), 0.0, 10.0) for k in range(1, 6)]
    record = running(*reports, Report(4.0, 0.0, 10.0, attempt=2))
    assert judge(record, goal=goal(deadline_seconds=90)) == Continue()


def test_the_incumbents_own_run_is_not_stopped_for_its_cost() -> None:
    done = JOB.record(GOAL, CELL, "done")
    beyond = [*done.reports, Report(done.epoch + 1, 0.0, 1.0)]
    live = TrialRecord("live", CELL, {}, 1, beyond)
    assert cause(judge(live)) is StopCause.REACHED


@pytest.mark.parametrize("deadline", [None, 1000.0])
def test_a_run_of_a_cell_and_recipe_that_reached_the_target_before_is_stopped(
    deadline: float | None,
) -> None:
    limits = goal(deadline_seconds=deadline, planned_runs=100)
    job = Job({CELL: 10.0}, {64: 6.0})
    live = TrialRecord("live", CELL, {}, 1, [Report(1.0, 0.0, 10.0)])
    decision = judge(live, job.record(limits, CELL, "done"), goal=limits)
    assert cause(decision) is StopCause.COST
    assert isinstance(decision, Stop)
    assert "done reached the target in the same cell with the same recipe at epoch 6" in (
        decision.why
    )


def test_a_cell_whose_only_success_was_late_is_tried_again() -> None:
    limits = goal(deadline_seconds=100, planned_runs=100)
    slow, other = Job({CELL: 20.0}, {64: 6.0}), Job({OTHER: 10.0}, {128: 9.0})
    late, done = slow.record(limits, CELL, "late"), other.record(limits, OTHER, "done")
    live = TrialRecord("live", CELL, {}, 1, [Report(1.0, 0.0, 1.0)])
    assert cause(judge(live, done, late, goal=limits)) is not StopCause.COST


class Free(WorkerHours):
    monotone = False


def test_where_only_late_runs_reached_the_target_none_is_stopped_for_its_cost() -> None:
    limits = goal(deadline_seconds=100)
    late = Job({OTHER: 11.7}, {128: 9.0}).record(limits, OTHER, "late")
    record = running(Report(1.0, 0.0, 10.0), Report(2.0, 0.0, 10.0))
    known = Knowledge([late, record], SPACE, limits, Free())
    assert decide(known, record, still(record)) == Continue()


def test_a_run_beyond_what_its_batch_is_known_to_need_counts_for_its_own_cell_alone() -> None:
    space = Space((1, 2, 8), (64,))
    one, two, _ = space.cells
    job = Job({one: 10.0, two: 6.0}, {64: 6.0})
    limits = goal(planned_runs=100)
    done = job.record(limits, one, "done")

    def after(epochs: int) -> Decision:
        reports = [Report(float(k), 0.0, job.epoch_seconds[two]) for k in range(1, epochs + 1)]
        live = TrialRecord("live", two, {}, 1, reports)
        return decide(Knowledge([done, live], space, limits, WorkerHours()), live, still(live))

    assert after(5) == Continue()
    assert cause(after(6)) is StopCause.COST


@given(excess=st.floats(1e-9, 0.2))
def test_figures_that_are_compared_never_look_equal(excess: float) -> None:
    known = Knowledge([JOB.record(GOAL, CELL, "done")], SPACE, GOAL, WorkerHours())
    assert known.incumbent is not None
    words = _why(known, known.incumbent, known.incumbent.cost.mid * (1 + excess)).split()
    assert words[3] != words[6]


def test_a_run_that_no_workers_can_finish_in_time_says_so() -> None:
    known = Knowledge([JOB.record(GOAL, CELL, "done")], SPACE, GOAL, WorkerHours())
    assert known.incumbent is not None
    assert "by the deadline" in _why(known, known.incumbent, math.inf)


@settings(max_examples=60)
@given(
    growing.STEPS,
    st.sampled_from((None, 40.0, 200.0)),
    st.sampled_from((1, 2, 10, 10**6)),
    st.sampled_from((WorkerHours(), NodeHours(), growing.StartedHours())),
)
def test_what_the_bounds_decide_is_what_the_fit_would(
    steps: list[growing.Step], limit: float | None, planned: int, cost: CostMetric
) -> None:
    limits, records = goal(deadline_seconds=limit, planned_runs=planned), dict[str, TrialRecord]()
    for step in steps:
        step.apply(records)
        record = records[f"t{step.trial}"]
        if record.allocation not in growing.SPACE.cells:
            continue
        known = [Knowledge((*records.values(),), growing.SPACE, limits, cost) for _ in range(2)]
        quick = decide(known[0], record, still(record))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stopping, "_surely_saves", lambda *_: False)
            assert decide(known[1], record, still(record)) == quick


def test_a_run_that_surely_saves_is_not_worth_a_fit() -> None:
    live = JOB.record(GOAL, OTHER, "live", epochs=1)
    live.ended = None
    for planned, is_fitted in ((10**9, False), (1, True)):
        known = Knowledge(
            [JOB.record(GOAL, CELL, "done"), live], SPACE, goal(planned_runs=planned), WorkerHours()
        )
        decide(known, live, still(live))
        assert ("log_mean" in vars(known.time)) is is_fitted


def test_without_a_timed_epoch_nothing_is_known_to_do() -> None:
    done = JOB.record(GOAL, OTHER, "done", epochs=1)
    done.reports = [Report(1.0, 1.0, 5.0, 5.0)]
    live = running(Report(1.0, 0.0, 5.0, 5.0))
    assert judge(live, done) == Continue()


@pytest.mark.parametrize("deadline", [None, 1e6])
def test_a_run_on_workers_beside_the_grid_is_still_judged(deadline: float | None) -> None:
    """Ray Train may run on fewer workers than asked for."""
    limits = goal(deadline_seconds=deadline, planned_runs=1)
    reports = [Report(k, 0.0, 50.0, workers=3) for k in (1.0, 2.0)]
    live = running(*reports)
    known = Knowledge(
        [JOB.record(limits, OTHER, "done"), live], Space((1, 2), (64, 128)), limits, WorkerHours()
    )
    goes = going(live, SPACE, free_workers=None, can_resize=True)
    assert goes.workers == 3
    assert cause(decide(known, live, goes)) is StopCause.COST
    live.reports.append(Report(3.0, limits.target, 50.0, workers=3))
    assert cause(decide(known, live, goes)) is StopCause.REACHED
