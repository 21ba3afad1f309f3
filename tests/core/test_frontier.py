import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.cost import WorkerHours
from raycosttune.core.frontier import Point, cheapest, frontier, infeasible, points, thinned
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.plan import NoPlan, make_plan
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, goal, spaces_and_jobs

SPACE = Space((1, 2), (64, 128))
CELL = Allocation(1, 64)


def point(deadline: float, cost: float, workers: int = 1) -> Point:
    return Point(Allocation(workers, 64), "{}", deadline, deadline, cost, is_measured=True)


POINTS = st.lists(
    st.builds(point, st.floats(1, 100), st.floats(0, 100), st.integers(1, 9)), max_size=9
)


def know(space: Space, deadline: float | None, *records: TrialRecord) -> Knowledge:
    return Knowledge(records, space, goal(deadline_seconds=deadline), WorkerHours())


@given(among=POINTS, deadline=st.floats(0, 101))
def test_the_frontier_costs_at_each_deadline_what_the_cheapest_point_costs(
    among: list[Point], deadline: float
) -> None:
    line = frontier(among)
    best, on_line = cheapest(among, deadline), cheapest(line, deadline)
    assert (best and best.cost) == (on_line and on_line.cost)
    assert line == sorted(line, key=lambda point: -point.cost)
    assert len({(p.deadline, p.cost) for p in line}) == len(line)


@given(among=POINTS, most=st.integers(4, 6), kept=st.integers(0, 8))
def test_a_thinned_frontier_keeps_its_ends_and_what_it_shall(
    among: list[Point], most: int, kept: int
) -> None:
    line = frontier(among)
    own = line[kept] if kept < len(line) else None
    left = thinned(line, most, (own,))
    assert len(left) == min(len(line), most)
    assert [p for p in line if p in left] == left
    for needed in (line[:1], line[-1:], [own] if own else []):
        assert all(p in left for p in needed)


def test_what_saves_least_is_left_out_first() -> None:
    line = [point(1, 10), point(2, 9), point(3, 5), point(4, 4.5), point(5, 1)]
    assert [p.deadline for p in thinned(line, 4, ())] == [1, 2, 3, 5]
    assert [p.deadline for p in thinned(line, 3, ())] == [1, 3, 5]
    assert [p.deadline for p in thinned(line, 3, (line[3],))] == [1, 4, 5]


def test_nothing_is_a_point_before_a_run_reached_the_target() -> None:
    job = Job({CELL: 10.0}, {64: 10.0})
    assert points(know(SPACE, None)) == ()
    assert points(know(SPACE, None, job.record(goal(), CELL, "t", epochs=2))) == ()


def test_one_run_predicts_the_cells_beside_it() -> None:
    space = Space((1, 2), (64,))
    one, two = space.cells
    job = Job({one: 36.0, two: 20.0}, {64: 10.0}, startup_seconds=3.0)
    known = know(space, None, job.record(goal(), one, "t"))
    own, other = points(known)
    assert (own.allocation, own.is_measured) == (one, True)
    assert (other.allocation, other.is_measured) == (two, False)
    assert own.seconds == pytest.approx(363)  # 3 + 10 x 36
    assert own.cost == pytest.approx(363 / 3600)
    assert own.deadline == pytest.approx(363)  # as the run itself took
    epochs = known.accuracy.samples("{}", 64).mean
    assert other.seconds == pytest.approx(3 + known.time.predict(two).mid * epochs)
    assert other.cost == pytest.approx(2 * other.seconds / 3600)
    assert other.deadline > other.seconds


def test_a_point_meets_the_deadlines_that_its_configuration_is_measured_to_meet() -> None:
    space = Space((1, 2), (64,))
    one, two = space.cells
    job = Job({one: 36.0, two: 20.0}, {64: 10.0})
    records = [job.record(goal(), one, "t"), job.record(goal(), two, "u", epochs=3)]
    for point in points(know(space, None, *records)):
        for deadline in (point.deadline * 0.999, point.deadline * 1.001):
            known = know(space, deadline, *records)
            is_met = any(point.is_of(other) for other in known.measured)
            assert is_met is (deadline > point.deadline)


def test_a_run_that_changed_its_workers_keeps_its_cell_in_time() -> None:
    reports = [Report(1.0, 0.0, 10.0), Report(2.0, 0.0, 5.0, workers=2)]
    record = TrialRecord("t", CELL, {}, 0, [*reports, Report(3.0, 1.0, 5.0, workers=2)])
    limit = 25.0  # its cell alone takes 30 s
    known = know(Space((1,), (64,)), limit, record)
    assert known.incumbent is not None
    assert known.measured == ()
    assert [(p.deadline, p.is_of(known.incumbent)) for p in points(known)] == [(limit, True)]


def test_the_other_recipe_is_measured_and_the_plans_recipe_is_predicted() -> None:
    space = Space((1, 2), (64,))
    one, two = space.cells
    fast = [Report(1.0, 1.0, 10.0)]
    slow = [Report(1.0, 0.0, 5.0), Report(2.0, 0.0, 5.0), Report(3.0, 1.0, 5.0)]
    records = [
        TrialRecord("fast", one, {"lr": 1.0}, 0, fast, Ended(EndCause.REACHED)),
        TrialRecord("slow", two, {"lr": 0.1}, 1, slow, Ended(EndCause.REACHED)),
    ]
    found = {
        (p.allocation.workers, p.recipe[-4:-1]): p.is_measured
        for p in points(know(space, None, *records))
    }
    assert found == {
        (1, "1.0"): True,
        (2, "1.0"): True,
        (1, "0.1"): True,
        (2, "0.1"): True,
    }
    wide = Space((1, 2, 4), (64,))
    predicted = [p for p in points(know(wide, None, *records)) if not p.is_measured]
    assert [(p.allocation.workers, p.recipe) for p in predicted] == [(4, '{"lr": 1.0}')]


def test_nothing_is_infeasible_before_it_is_certified() -> None:
    job = Job({CELL: 30.0}, {64: 10.0})
    begun = job.record(goal(), CELL, "t", epochs=1)
    whole = job.record(goal(), CELL, "t")
    space = Space((1,), (64,))
    fresh = TrialRecord("t", CELL, {}, 0)
    assert infeasible(know(space, 1.0)) == ""
    assert infeasible(know(space, 1.0, fresh)) == ""
    assert infeasible(know(space, None, begun)) == ""
    assert infeasible(know(space, 301.0, whole)) == ""
    assert infeasible(know(space, 61.0, begun)) == ""  # two epochs may do
    other = TrialRecord("live", CELL, {"lr": 0.1}, 1)
    assert infeasible(know(space, 40.0, begun))
    assert infeasible(know(space, 40.0, begun, other)) == ""
    out = [TrialRecord("o", CELL, {}, 0, [], Ended(EndCause.OUT_OF_MEMORY))] * 2
    assert infeasible(know(space, 40.0, begun, *out)) == ""


def test_the_next_evaluation_bounds_a_cell_from_below() -> None:
    space = Space((1,), (64,))
    begun = Job({CELL: 30.0}, {64: 10.0}).record(goal(), CELL, "t", epochs=1)
    text = infeasible(know(space, 40.0, begun))
    low = 2 * 30 * math.exp(-0.1)  # less two deviations of the noise of a single timed epoch
    assert text == (
        f"infeasible: even 1 worker at batch 64 needs at least {low:.3g} s; "
        f"a deadline of at least {low:.3g} s may do"
    )


def test_a_run_that_came_too_late_says_which_deadline_would_do() -> None:
    space = Space((1, 2), (64,))
    one, two = space.cells
    job = Job({one: 50.0, two: 30.0}, {64: 10.0})
    records = [job.record(goal(), cell, str(cell)) for cell in space.cells]
    half = 2 * math.sqrt(4 * 0.05**2 / (4 + 16)) / math.sqrt(9 * 2 / math.pi)  # nine timed in each
    low, high = (300 * math.exp(off) for off in (-half, half))
    assert infeasible(know(space, 200.0, *records)) == (
        f"infeasible: even 2 workers at batch 64 need between {low:.0f} and {high:.0f} s; "
        f"a deadline of at least {low:.0f} s may do; measured: 300 s"
    )
    assert infeasible(know(space, low + 0.01, *records)) == ""


def test_what_a_verdict_compares_differs_in_print() -> None:
    space = Space((1,), (64,))
    begun = Job({CELL: 30.0}, {64: 10.0}).record(goal(), CELL, "t", epochs=1)
    low = 2 * 30 * math.exp(-0.1)
    text = infeasible(know(space, 54.28, begun))
    assert f"needs at least {low:.4g} s; " in text
    slow = Job({CELL: 30000.0}, {64: 10.0}).record(goal(), CELL, "t", epochs=1)
    assert f"needs at least {1000 * low:.0f} s; " in infeasible(know(space, 54.29, slow))


def test_a_verdict_names_the_recipes_where_others_could_be_tried() -> None:
    space = Space((1,), (64,))
    late = TrialRecord("t", CELL, {"lr": 0.1}, 0, [Report(1.0, 0.0, 30.0)])
    assert " s with the recipes tried; a deadline " in infeasible(know(space, 40.0, late))
    other = TrialRecord("u", CELL, {"lr": 0.2}, 1, [Report(1.0, 1.0, 60.0)])
    assert "; measured: " in infeasible(know(space, 20.0, late, other))


@pytest.mark.parametrize("deadline", [150.0, 290.0])
def test_repeats_that_differ_bound_a_cell_by_the_sooner(deadline: float) -> None:
    space = Space((1,), (64,))
    runs = [Job({CELL: 30.0}, {64: k}).record(goal(), CELL, f"{k}") for k in (10.0, 6.0)]
    # What is sure is the sooner one's 180 s, less what the timed epochs leave open.
    assert bool(infeasible(know(space, deadline, *runs))) is (deadline < 170)


def test_no_plan_says_that_no_cell_can_meet_the_deadline_where_nothing_else_ended_it() -> None:
    space = Space((1,), (64,))
    job = Job({CELL: 30.0}, {64: 10.0})

    def reason(*records: TrialRecord, spent: float = 0.0) -> str:
        limits = goal(deadline_seconds=40.0, sweep_budget=1.0)
        known = Knowledge(records, space, limits, WorkerHours())
        plan = make_plan(known, None, spent)
        assert isinstance(plan, NoPlan)
        return plan.reason

    begun = job.record(goal(), CELL, "t", epochs=1)
    live = TrialRecord("u", CELL, {}, 1, begun.reports)
    tried = "none reached accuracy 1 within 40 s; the best was 0"
    where = ", after 1 epoch of t (1 worker, batch 64)"
    verdict = "infeasible: even 1 worker at batch 64 "
    assert reason(begun).startswith(f"1 trial, {tried}{where}; {verdict}")
    assert reason(begun, live) == f"2 trials, 1 running, {tried}"
    assert reason(begun, spent=1.0).endswith(
        f"{tried}{where}; the search ended: the sweep's budget of 1 worker-hours is spent"
    )


@settings(max_examples=150)
@given(data=st.data(), table=spaces_and_jobs(), share=st.floats(1, 1.1))
def test_a_deadline_that_a_cell_meets_is_never_called_infeasible(
    data: st.DataObject, table: tuple[Space, Job], share: float
) -> None:
    space, job = table
    records = []
    for cell in data.draw(st.sets(st.sampled_from(space.cells), min_size=1)):
        most = job.needed(cell, {}) - 1
        whole = st.none() if most == 0 else st.none() | st.just(most) | st.integers(1, most)
        records.append(job.record(goal(), cell, str(cell), epochs=data.draw(whole)))
    fastest = min(job.seconds(cell) for cell in space.cells)
    assert infeasible(know(space, share * fastest, *records)) == ""
