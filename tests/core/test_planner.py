import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.decision import Continue, Resize, Stop, StopCause
from raycosttune.core.evidence import RUN_SD
from raycosttune.core.goal import Goal
from raycosttune.core.going import Going
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, TrialRecord
from raycosttune.core.planner import LUCK, MOST_MISSES, Planner, _lasting
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, amdahl, goal, spaces_and_jobs
from tests.core.told import begun, know, vain

SPACE = Space((1, 2, 4), (64, 128, 256))
JOB = amdahl(SPACE)
FAST = min(JOB.seconds(cell) for cell in SPACE.cells)
SMALL = settings(max_examples=25)


def planner(
    *records: TrialRecord,
    space: Space = SPACE,
    job: Job = JOB,
    limits: Goal | None = None,
    recipes: bool = False,
    can_resize: bool = True,
) -> Planner:
    known = know(space, job, space.cells, records, limits=limits)
    return Planner(known, recipes=recipes, can_resize=can_resize)


def reached(cell: Allocation = SPACE.cells[0], name: str = "r") -> TrialRecord:
    return JOB.record(goal(), cell, name)


def further(made: Planner, known: Knowledge) -> list[Allocation]:
    assert known.incumbent is not None
    return [run.allocation for run in made.further_runs(known.incumbent)]


@SMALL
@given(spaces_and_jobs(), st.none() | st.floats(0.3, 5), st.integers(0, 4), st.booleans())
def test_first_runs_are_one_a_batch_in_the_order_of_their_costs(
    table: tuple[Space, Job], share: float | None, done: int, recipes: bool
) -> None:
    space, job = table
    cell = space.cells[-1]
    limit = None if share is None else share * job.seconds(cell)
    limits = goal(deadline_seconds=limit)
    made = planner(
        *([vain(job, cell, done)] if done else []),
        space=space,
        job=job,
        limits=limits,
        recipes=recipes,
    )
    runs = made.first_runs()
    fresh = made.fresh(made.new_recipe)
    batches = {c.batch_size for c in space.cells}
    assert len(batches) <= len(runs) <= len(batches) + 1
    assert {run.allocation.batch_size for run in runs} == batches
    assert {run.allocation for run in runs} <= set(space.cells)
    assert {run.recipe for run in runs} == {None if recipes else "{}"}
    assert all(run.price > 0 and run.seconds > 0 and run.why for run in runs)
    if len(runs) == len(batches):
        best = made.outlook(made.new_recipe).batches[int(fresh.costs.argmin())]
        assert runs[0].allocation.batch_size == best


def test_without_hope_the_run_that_most_likely_is_in_time_comes_first() -> None:
    records = [vain(JOB, cell, 30, f"t{k}") for k, cell in enumerate(SPACE.cells[:3])]
    made = planner(*records, limits=goal(deadline_seconds=FAST / 10))
    first = made.first_runs()[0]
    assert first.why.startswith("reaches the target in time with an estimated chance")
    assert made.fresh("{}").loss > 2


@pytest.mark.parametrize("end", ["by itself", "late", "last epoch", "given up", "silent"])
def test_a_cell_whose_runs_often_went_to_their_end_in_vain_is_left_unless_recipes_may_help(
    end: str,
) -> None:
    cell = planner().first_runs()[0].allocation
    records = [vain(JOB, cell, 3, f"t{k}") for k in range(MOST_MISSES)]
    limits = goal(
        deadline_seconds=records[0].run_seconds if end == "late" else None,
        max_epochs=3 if end == "last epoch" else None,
    )
    for record in records:
        record.ended = Ended(EndCause.FINISHED if end == "by itself" else EndCause.STOPPED)
        if end == "silent":
            record.reports.clear()
    is_left = end not in {"given up", "silent"}
    runs = planner(*records, limits=limits).first_runs()
    assert (cell not in {run.allocation for run in runs}) is is_left
    proposing = planner(*records, limits=limits, recipes=True).first_runs()
    assert len(proposing) >= len(SPACE.batches)


def test_a_batch_that_is_being_run_is_not_run_twice() -> None:
    cell = planner().first_runs()[0].allocation
    others = planner(begun(JOB, cell, 1)).first_runs()
    assert others
    assert cell.batch_size not in {run.allocation.batch_size for run in others}


def test_batches_whose_epochs_are_known_or_being_learned_are_not_run_again() -> None:
    cells = {cell.batch_size: cell for cell in SPACE.cells if cell.workers == 1}
    running = begun(JOB, cells[128], 1)
    limits = goal(planned_runs=10_000)
    known = know(SPACE, JOB, SPACE.cells, [reached(cells[64]), running], limits=limits)
    made = Planner(known, recipes=False, can_resize=True)
    assert {cell.batch_size for cell in further(made, known)} <= {256}


def test_a_batch_whose_runs_went_to_their_end_in_vain_is_not_run_for_ever() -> None:
    """The target was reached too late, in a cell that others are known to be faster than."""
    job = Job({c: 100.0 / c.workers for c in SPACE.cells}, {64: 10.0, 128: 12.0, 256: 15.0})
    late = job.record(goal(), Allocation(1, 64), "late")
    limits = goal(deadline_seconds=400.0, planned_runs=10_000)
    records = [late]
    for k in range(MOST_MISSES + 1):
        known = know(SPACE, job, SPACE.cells, records, limits=limits)
        assert known.incumbent is not None
        assert not known.is_delivered
        runs = Planner(known, recipes=False, can_resize=True).further_runs(known.incumbent)
        assert (128 in {run.allocation.batch_size for run in runs}) is (k < MOST_MISSES)
        records.append(vain(job, Allocation(1, 128), 5, f"t{k}"))


def test_a_batch_whose_runs_are_given_up_after_as_many_epochs_again_is_not_run_for_ever() -> None:
    """A run that is given up at its first report shows nothing once another went further."""
    job = amdahl(SPACE, noise_scale=1000.0)
    slow = Job(job.epoch_seconds, dict.fromkeys(job.epochs, 5000.0))
    limits = goal(planned_runs=10_000)
    first = job.record(goal(), Allocation(1, 64), "first")
    for given_up, tried in (([1, 2, 1, 2], False), ([1, 2, 1], True), ([1, 2, 3, 4], True)):
        gone = [vain(slow, Allocation(1, 256), n, f"t{k}") for k, n in enumerate(given_up)]
        known = know(SPACE, job, SPACE.cells, [first, *gone], limits=limits)
        runs = further(Planner(known, recipes=False, can_resize=True), known)
        assert (256 in {cell.batch_size for cell in runs}) is tried


def test_more_planned_runs_never_make_fewer_further_runs() -> None:
    counts, values = [], []
    for planned in (1, 10, 100, 10_000):
        known = know(SPACE, JOB, SPACE.cells, [reached()], limits=goal(planned_runs=planned))
        made = Planner(known, recipes=True, can_resize=True)
        assert known.incumbent is not None
        runs = made.further_runs(known.incumbent)
        assert [run.value for run in runs] == sorted((run.value for run in runs), reverse=True)
        assert all(run.value > 0 for run in runs)
        counts.append(len(runs))
        values.append(sum(run.value for run in runs))
    assert counts == sorted(counts)
    assert values == sorted(values)
    assert counts[0] == 0
    assert counts[-1] > 0


def test_luck_that_another_run_has_not_again_is_no_reason_for_a_run() -> None:
    """Stages that chance alone spreads say nothing of later runs, those of an unknown law do."""
    mean = math.log(20)
    for sd, kept in ((0.5 * RUN_SD, 0.0), (5 * RUN_SD, 1 - LUCK / 25)):
        stages = np.exp(mean + np.array([-sd, sd]))
        found = np.log(_lasting(stages, stages))
        assert found == pytest.approx(mean + kept * np.array([-sd, sd]))
    assert _lasting(np.array([7.0, 7.0]), np.array([7.0])) == pytest.approx(7.0)


def test_epochs_made_in_vain_do_not_make_a_run_count_as_lucky() -> None:
    """A run just beyond them is as lucky as it looked before it began, and no luckier."""
    afresh = np.array([40.0, 60.0, 80.0, 100.0, 120.0])
    whole, left = _lasting(afresh, afresh), _lasting(afresh[2:], afresh)
    assert left == pytest.approx(whole[2:])
    assert left[0] < _lasting(afresh[2:], afresh[2:])[0]


def test_another_recipe_is_tried_once_at_a_time() -> None:
    limits = goal(planned_runs=10_000)
    incumbent = reached()
    other = TrialRecord(
        "o", SPACE.cells[0], {"lr": 0.2}, 1, [JOB.report(goal(), SPACE.cells[0], {}, 1)]
    )
    for records, tries in (([incumbent], True), ([incumbent, other], False)):
        known = know(SPACE, JOB, SPACE.cells, records, limits=limits)
        assert known.incumbent is not None
        runs = Planner(known, recipes=True, can_resize=True).further_runs(known.incumbent)
        assert any(run.recipe is None for run in runs) is tries


def test_a_run_before_any_success_goes_on_while_it_is_the_best() -> None:
    cell = planner().first_runs()[0].allocation
    run = begun(JOB, cell, 1)
    decision = planner(run, can_resize=False).next_step(run, Going(run.allocation.workers))
    assert decision == Continue()


def test_a_run_is_resized_only_where_it_may_be() -> None:
    """Eight epochs are likely, for which one worker is too slow."""
    job = Job({c: 30.0 / c.workers for c in SPACE.cells}, {64: 8.0, 128: 80.0, 256: 90.0})
    limits = goal(deadline_seconds=150.0)
    late = job.record(goal(), Allocation(1, 64), "late")
    run = begun(job, Allocation(1, 64), 1)
    moved = planner(late, run, job=job, limits=limits).next_step(run, Going(run.allocation.workers))
    kept = planner(late, run, job=job, limits=limits, can_resize=False).next_step(
        run, Going(run.allocation.workers)
    )
    assert isinstance(moved, Resize)
    assert moved.workers in {2, 4}
    assert not isinstance(kept, Resize)


def test_a_run_past_the_deadline_is_stopped() -> None:
    run = begun(JOB, SPACE.cells[0], 3)
    decision = planner(run, limits=goal(deadline_seconds=run.run_seconds)).next_step(
        run, Going(run.allocation.workers)
    )
    assert isinstance(decision, Stop)
    assert decision.cause is StopCause.DEADLINE


@pytest.mark.parametrize("can_resize", [True, False])
def test_a_run_that_is_sure_to_miss_its_deadline_is_stopped(can_resize: bool) -> None:
    """Every batch was run in vain for longer than the deadline leaves room for."""
    records = [vain(JOB, cell, 30, f"t{k}") for k, cell in enumerate(SPACE.cells[:3])]
    run = begun(JOB, Allocation(2, 64), 1)
    limits = goal(deadline_seconds=0.3 * FAST)
    decision = planner(*records, run, limits=limits, can_resize=can_resize).next_step(
        run, Going(run.allocation.workers)
    )
    assert isinstance(decision, Stop)
    assert decision.cause is StopCause.DEADLINE


def test_a_run_at_risk_goes_on_where_a_fresh_one_would_cost_more() -> None:
    run = begun(JOB, Allocation(2, 64), 1)
    decision = planner(run, limits=goal(deadline_seconds=0.5 * FAST)).next_step(run, Going(2))
    assert decision == Continue()


def test_a_run_with_a_small_chance_goes_on_where_a_fresh_one_has_none() -> None:
    records = [vain(JOB, cell, 12, f"t{k}") for k, cell in enumerate(SPACE.cells[:4])]
    run, limits = begun(JOB, Allocation(4, 64), 1), goal(deadline_seconds=0.8 * FAST)
    made = planner(*records, run, limits=limits)
    assert not made.fresh("{}").has_hope
    assert made.next_step(run, Going(4)) == Continue()


def test_after_a_success_a_run_that_can_not_pay_is_stopped() -> None:
    run = begun(JOB, Allocation(4, 256), 40)
    for planned, kind in ((2, Stop), (10**9, Continue)):
        fast = planned > 2
        told = begun(JOB, Allocation(1, 128), 1) if fast else run
        limits = goal(planned_runs=planned)
        decision = planner(reached(Allocation(4, 64)), told, limits=limits).next_step(
            told, Going(told.allocation.workers)
        )
        assert isinstance(decision, kind)


def test_a_cell_that_fails_to_start_is_never_chosen() -> None:
    cell = planner().first_runs()[0].allocation
    out = TrialRecord("t", cell, {}, 0, [], Ended(EndCause.OUT_OF_MEMORY))
    chosen = {run.allocation for run in planner(out).first_runs()}
    assert cell not in chosen
    assert chosen


@pytest.mark.parametrize("recipes", [False, True])
def test_the_new_recipe_is_the_empty_one_where_none_is_proposed(recipes: bool) -> None:
    made = planner(recipes=recipes)
    assert made.new_recipe == (None if recipes else "{}")
    assert made.outlook(made.new_recipe) is made.outlook(made.new_recipe)
    assert made.fresh(made.new_recipe) is made.fresh(made.new_recipe)
