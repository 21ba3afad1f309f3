import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.constraint import RunBudget
from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.experiment import (
    Experiment,
    first_experiments,
    worthwhile_experiments,
)
from raycosttune.core.goal import Goal
from raycosttune.core.incumbent import Incumbent
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.outcome import outcomes
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, amdahl, goal, spaces, spaces_and_jobs
from tests.core.told import know as know_timed

METRICS = st.sampled_from((NodeHours(), WorkerHours()))
SMALL = settings(max_examples=40)
SPACE = Space((1, 2), (64, 128, 256))
JOB = amdahl(SPACE)
GOAL = goal(planned_runs=1000)


def know(
    *records: TrialRecord, space: Space = SPACE, goal: Goal = GOAL
) -> tuple[Knowledge, Incumbent]:
    known = Knowledge(records, space, goal, WorkerHours())
    assert known.incumbent is not None
    return known, known.incumbent


def new_recipe(k: int, *, ended: bool = True) -> TrialRecord:
    cell = SPACE.cells[0]
    record = JOB.record(GOAL, cell, f"recipe {k}", epochs=1)
    end = Ended(EndCause.STOPPED) if ended else None
    return TrialRecord(record.trial_id, cell, {"lr": float(k)}, k, record.reports, end)


@SMALL
@given(space=spaces(), cost=METRICS, deadline=st.none() | st.floats(1, 1e6), recipes=st.booleans())
def test_before_anything_is_known_every_cell_may_be_first(
    space: Space, cost: CostMetric, deadline: float | None, recipes: bool
) -> None:
    known = Knowledge([], space, goal(deadline_seconds=deadline), cost)
    first = first_experiments(known, recipes=recipes)
    assert first
    assert {experiment.allocation for experiment in first} <= set(space.cells)
    if deadline is None:
        assert len(first) == len(space.cells)
    for experiment in first:
        assert experiment.recipe == (None if recipes else "{}")
        assert 0 < experiment.price < math.inf
        assert 0 < experiment.seconds < math.inf


@SMALL
@given(table=spaces_and_jobs(), data=st.data())
def test_no_cell_runs_twice_with_one_recipe(table: tuple[Space, Job], data: st.DataObject) -> None:
    space, job = table
    begun = data.draw(st.sets(st.sampled_from(space.cells)))
    records = [job.record(GOAL, cell, str(cell), epochs=1) for cell in sorted(begun)]
    known = Knowledge(records, space, goal(target=2.0), NodeHours())
    first = {experiment.allocation for experiment in first_experiments(known, recipes=False)}
    assert first == set(space.cells) - begun


def test_a_cell_that_failed_before_a_report_may_run_again() -> None:
    failed = TrialRecord("t", SPACE.cells[0], {}, 0, [], Ended(EndCause.FAILED))
    known = Knowledge([failed], SPACE, GOAL, NodeHours())
    first = {experiment.allocation for experiment in first_experiments(known, recipes=False)}
    assert first == set(SPACE.cells)


def test_cells_that_cannot_meet_the_deadline_are_left_out() -> None:
    limits = goal(deadline_seconds=60)
    job = Job(dict.fromkeys(SPACE.cells, 1.0), amdahl(SPACE).epochs, startup_seconds=61)
    records = [job.record(limits, SPACE.cells[0], "t", epochs=1)]
    known = Knowledge(records, SPACE, limits, NodeHours())
    assert first_experiments(known, recipes=True) == []
    slow = Job(dict.fromkeys(SPACE.cells, 1e5), amdahl(SPACE).epochs)
    records = [slow.record(limits, SPACE.cells[0], "t", epochs=1)]
    known = Knowledge(records, SPACE, limits, NodeHours())
    assert first_experiments(known, recipes=True) == []


def test_a_deadline_beyond_every_sample_has_a_chance_still() -> None:
    record = JOB.record(GOAL, SPACE.cells[0], "t", epochs=1)
    free = Knowledge([record], SPACE, GOAL, NodeHours())
    samples, _ = outcomes(free, free.places, "{}")
    soonest = float(samples.min())

    def first(part: float, *budgets: RunBudget) -> list[Experiment]:
        limits = replace(GOAL, deadline_seconds=part * soonest, constraints=budgets)
        return first_experiments(Knowledge([record], SPACE, limits, NodeHours()), recipes=False)

    assert first(1.01)
    assert "an estimated chance of " in first(0.99)[0].why
    assert first(0.99)[0].price > 0
    assert not first(0.5)
    ranked = [np.flatnonzero(free.grid.index[e.allocation] == free.places)[0] for e in first(1.1)]
    in_time = [bool(samples[k].min() <= 1.1 * soonest) for k in ranked]
    assert in_time == sorted(in_time, reverse=True)
    assert len(set(in_time)) > 1
    assert not first(0.99, RunBudget(cost=WorkerHours(), at_most=1e-9))


def test_epochs_and_times_that_are_known_to_take_too_long_have_no_chance() -> None:
    job = Job(dict.fromkeys(SPACE.cells, 10.0), {64: 20.0, 128: 20.0, 256: 20.0})
    late, limits = job.record(GOAL, Allocation(1, 128), "late"), goal(deadline_seconds=190.0)
    known = know_timed(SPACE, job, SPACE.cells, [late], limits=limits)
    assert known.incumbent is None
    assert 128 not in {e.allocation.batch_size for e in first_experiments(known, recipes=False)}


@SMALL
@given(
    table=spaces_and_jobs(),
    data=st.data(),
    cost=METRICS,
    planned=st.sampled_from((2, 10, 1000)),
    recipes=st.booleans(),
)
def test_what_is_worthwhile_pays_in_order_and_is_not_known(
    table: tuple[Space, Job], data: st.DataObject, cost: CostMetric, planned: int, recipes: bool
) -> None:
    space, job = table
    whole = data.draw(st.sets(st.sampled_from(space.cells), min_size=1))
    limits = goal(planned_runs=planned)
    known = Knowledge([job.record(limits, cell, str(cell)) for cell in whole], space, limits, cost)
    assert known.incumbent is not None
    ranked = worthwhile_experiments(known, known.incumbent, recipes=recipes)
    values = [experiment.value for experiment in ranked]
    assert values == sorted(values, reverse=True)
    assert all(value > 0 for value in values)
    measured = {other.allocation for other in known.measured}
    for experiment in ranked:
        assert math.isfinite(experiment.price)
        assert experiment.saving <= known.remaining_runs * known.incumbent.cost.mid
        assert (experiment.recipe is None) is (experiment.allocation in measured)
        assert recipes or experiment.recipe is not None


def test_a_batch_that_is_being_learned_is_not_learned_twice() -> None:
    whole = JOB.record(GOAL, SPACE.cells[2], "whole")
    live = TrialRecord("live", SPACE.cells[0], {}, 1)
    known, incumbent = know(whole, live)
    ranked = worthwhile_experiments(known, incumbent, recipes=False)
    before = worthwhile_experiments(*know(whole), recipes=False)
    assert 64 in {e.allocation.batch_size for e in before}
    assert {e.allocation.batch_size for e in ranked} == {128}


def test_before_a_success_runs_at_once_are_at_different_batches_where_they_can_be() -> None:
    space = Space((1, 2, 4, 8), (64, 128, 256))
    live: list[TrialRecord] = []
    while len(live) < len(space.cells):
        known = Knowledge(live, space, GOAL, WorkerHours())
        cell = first_experiments(known, recipes=False)[0].allocation
        live.append(TrialRecord(f"t{len(live)}", cell, {}, len(live)))
    assert {record.allocation.batch_size for record in live[:3]} == {64, 128, 256}
    assert {record.allocation for record in live} == set(space.cells)


def test_one_new_recipe_is_tried_at_a_time() -> None:
    whole = JOB.record(GOAL, SPACE.cells[0], "whole")
    ended, live = (new_recipe(1, ended=ended) for ended in (True, False))
    assert None in {e.recipe for e in worthwhile_experiments(*know(whole, ended), recipes=True)}
    assert None not in {e.recipe for e in worthwhile_experiments(*know(whole, live), recipes=True)}


def test_each_recipe_that_lost_makes_another_less_promising() -> None:
    whole = JOB.record(GOAL, SPACE.cells[0], "whole")

    def saving(lost: int) -> float:
        records = [whole, *(new_recipe(k) for k in range(lost))]
        known, incumbent = know(*records)
        ranked = worthwhile_experiments(known, incumbent, recipes=True)
        saved = sum(experiment.saving for experiment in ranked if experiment.recipe is None)
        assert saved <= known.remaining_runs * incumbent.cost.mid / (lost + 2)
        return saved

    savings = [saving(lost) for lost in (1, 4, 12)]
    assert savings[0] > savings[1] > savings[2]


@pytest.mark.parametrize(("apart", "pays"), [(0, False), (2, True)])
def test_what_only_luck_sets_apart_makes_no_new_recipe_pay(apart: int, *, pays: bool) -> None:
    records = [reached(k, 40 - apart * k) for k in range(12)]
    known, incumbent = know(*records, goal=replace(GOAL, planned_runs=10**9))
    ranked = worthwhile_experiments(known, incumbent, recipes=True)
    assert (None in {experiment.recipe for experiment in ranked}) is pays


def reached(k: int, epochs: int) -> TrialRecord:
    """Returns a run with a recipe of its own that reached the target after so many epochs."""
    short = GOAL.target - 0.1
    reports = [
        Report(float(e), short if e < epochs else GOAL.target, 10.0) for e in range(1, epochs + 1)
    ]
    end = Ended(EndCause.REACHED)
    return TrialRecord(f"t{k}", SPACE.cells[0], {"lr": float(k)}, k, reports, end)


@given(price=st.floats(0, 1e6), saving=st.floats(0, 1e6))
def test_a_value_is_the_saving_beyond_the_price(price: float, saving: float) -> None:
    assert Experiment(SPACE.cells[0], None, price, saving, 1.0, "").value == saving - price


def test_an_experiment_says_why() -> None:
    known, incumbent = know(JOB.record(GOAL, SPACE.cells[0], "whole"))
    for experiment in worthwhile_experiments(known, incumbent, recipes=True):
        what = "tries another recipe" if experiment.recipe is None else "tries the best recipe here"
        assert experiment.why.startswith(f"{what} and is expected to save ")
        assert f"worker-hours over {known.remaining_runs} runs for " in experiment.why
    first = first_experiments(Knowledge([], SPACE, GOAL, WorkerHours()), recipes=False)
    assert first[0].why == "is the cheapest guess before any accuracy is seen"


def test_a_chance_is_shown_only_where_something_was_seen() -> None:
    def first(limits: Goal, *records: TrialRecord) -> str:
        known = Knowledge(records, SPACE, limits, WorkerHours())
        return first_experiments(known, recipes=True)[0].why

    late, free = goal(deadline_seconds=900, target=2.0), goal(target=2.0)
    blind = replace(itself_ended(1, 1), reports=[Report(1.0, None, 1.0)])
    for limits in (late, free):
        assert "%" not in first(limits) + first(limits, blind)
    seen = JOB.record(GOAL, SPACE.cells[0], "t", epochs=1)
    assert first(free, seen) == "is expected to reach the target"
    assert first(late, seen).startswith("reaches the target in time with an estimated chance of ")
    assert "in time" not in first(free, itself_ended(1, 1))


def test_a_cell_with_fewer_workers_is_preferred_where_workers_cost_and_time_does_not() -> None:
    known = Knowledge([], SPACE, GOAL, WorkerHours())
    assert first_experiments(known, recipes=False)[0].allocation.workers == 1
    tight = Knowledge([], SPACE, GOAL, NodeHours())
    assert first_experiments(tight, recipes=False)[0].allocation.workers == 2


@pytest.mark.parametrize("planned", [2, 100])
def test_more_planned_runs_make_more_worthwhile(planned: int) -> None:
    record = JOB.record(GOAL, SPACE.cells[2], "whole")
    few = worthwhile_experiments(*know(record, goal=goal(planned_runs=planned)), recipes=True)
    more = worthwhile_experiments(*know(record, goal=goal(planned_runs=10 * planned)), recipes=True)
    assert {(e.allocation, e.recipe) for e in few} <= {(e.allocation, e.recipe) for e in more}


def itself_ended(k: int, epochs: int) -> TrialRecord:
    record = JOB.record(GOAL, SPACE.cells[0], f"short {k}", epochs=epochs)
    recipe: dict[str, object] = {"lr": float(k)}
    end = Ended(EndCause.FINISHED)
    return TrialRecord(record.trial_id, SPACE.cells[0], recipe, k, record.reports, end)


def chance(experiment: Experiment) -> int:
    return int(experiment.why.rpartition(" ")[2].rstrip("%")) if "%" in experiment.why else 100


def test_each_run_that_ended_by_itself_makes_the_next_one_less_likely_to_last() -> None:
    chances = []
    for count in range(1, 5):
        records = [itself_ended(k, 2) for k in range(count)]
        known = Knowledge(records, SPACE, GOAL, WorkerHours())
        first = first_experiments(known, recipes=True)
        at = {experiment.allocation: experiment for experiment in first}
        chances.append(chance(at[SPACE.cells[0]]))
    assert chances[0] < 100
    assert chances == sorted(set(chances), reverse=True)


def test_runs_that_miss_in_one_cell_lead_to_another() -> None:
    tried = []
    for count in range(6):
        records = [itself_ended(k, 2) for k in range(count)]
        known = Knowledge(records, SPACE, GOAL, WorkerHours())
        tried.append(first_experiments(known, recipes=True)[0].allocation)
    assert tried[0] == SPACE.cells[0]
    assert tried[-1] != SPACE.cells[0]


def test_too_few_epochs_for_the_target_leave_little_chance() -> None:
    begun = JOB.record(GOAL, SPACE.cells[0], "t", epochs=1)
    few, many = (
        first_experiments(
            Knowledge([begun], SPACE, goal(max_epochs=epochs), WorkerHours()), recipes=False
        )[0]
        for epochs in (3, 300)
    )
    assert chance(few) < 20
    assert chance(many) > 80
