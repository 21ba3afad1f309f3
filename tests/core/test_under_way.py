"""Runs at once: each is worth what it adds to those under way, and all together no more than is."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.abilities import Abilities
from raycosttune.core.array import Floats
from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Run, Wait
from raycosttune.core.experiment import Experiment, worthwhile_experiments
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, TrialRecord
from raycosttune.core.outcome import outcomes
from raycosttune.core.planner import Planner, _lasting
from raycosttune.core.profile import Profile
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.core.under_way import under_way
from tests.core.drive import Job, amdahl, goal, spaces_and_jobs
from tests.core.told import begun, first_run, profiled, shown, vain

SPACE = Space((1, 2, 4), (32, 252, 256))
JOB = amdahl(SPACE, noise_scale=1000.0)
GOAL = goal(planned_runs=1000)
FIRST, OTHER, ALIKE = Allocation(1, 32), Allocation(4, 252), Allocation(4, 256)


def know(
    space: Space, job: Job, first: Allocation, live: list[TrialRecord], *, timed: bool = False
) -> Knowledge:
    profiles = (profiled(job, space.cells),) if timed else ()
    records = [job.record(GOAL, first, "first"), *live]
    return Knowledge(records, space, GOAL, WorkerHours(), profiles=profiles)


def ranked(known: Knowledge, *, planned: bool) -> list[Experiment]:
    assert known.incumbent is not None
    if planned:
        return Planner(known, recipes=False, can_resize=False).further_runs(known.incumbent)
    return worthwhile_experiments(known, known.incumbent, recipes=False)


def of_batch(runs: list[Experiment], batch_size: int) -> Experiment | None:
    return next((run for run in runs if run.allocation.batch_size == batch_size), None)


def perfect(known: Knowledge, *, planned: bool) -> float:
    """What would be saved if the costs of all cells were known, quantile by quantile."""
    assert known.incumbent is not None
    best = known.incumbent.cost.mid
    return float(known.remaining_runs * np.maximum(best - _least(known, planned), 0).mean())


def _least(known: Knowledge, planned: bool) -> Floats:
    if not planned:
        return np.asarray(outcomes(known, known.places, "{}")[1].min(axis=0))
    outlook = Planner(known, recipes=False, can_resize=False).outlook("{}")
    costs = []
    for batch in outlook.batches:
        stages = _lasting(outlook.belief.stages(batch, 0.0), outlook.belief.afresh(batch, 0.0))
        costs.append(outlook.cheapest(batch, stages, caution=0.5)[0])
    return np.asarray(np.min(costs, axis=0))


@pytest.mark.parametrize("planned", [False, True])
@settings(max_examples=20, deadline=None)
@given(table=spaces_and_jobs(), data=st.data())
def test_all_that_run_at_once_claim_no_more_than_perfect_knowledge_would_save(
    planned: bool,
    table: tuple[Space, Job],
    data: st.DataObject,
) -> None:
    space, job = table
    first = data.draw(st.sampled_from(space.cells))
    live: list[TrialRecord] = []
    claimed, known = 0.0, know(space, job, first, live, timed=planned)
    most = perfect(known, planned=planned)
    while runs := ranked(known, planned=planned):
        claimed += runs[0].saving
        live.append(TrialRecord(f"t{len(live)}", runs[0].allocation, {}, len(live) + 1))
        known = know(space, job, first, live, timed=planned)
    assert claimed <= most * (1 + 1e-9)


@pytest.mark.parametrize("planned", [False, True])
def test_beside_a_run_that_is_nearly_the_same_a_run_is_worth_about_nothing(
    planned: bool,
) -> None:
    alone = of_batch(ranked(know(SPACE, JOB, FIRST, [], timed=True), planned=planned), 256)
    assert alone is not None
    live = [TrialRecord("live", OTHER, {}, 1)]
    beside = of_batch(ranked(know(SPACE, JOB, FIRST, live, timed=True), planned=planned), 256)
    assert beside is None or beside.saving < 0.1 * alone.saving
    assert beside is None or beside.price == pytest.approx(alone.price, rel=0.2)


@pytest.mark.parametrize("planned", [False, True])
def test_beside_a_run_that_can_no_longer_win_a_run_is_worth_what_it_is_alone(
    planned: bool,
) -> None:
    job = amdahl(SPACE, noise_scale=20.0)
    slow = Job(job.epoch_seconds, dict.fromkeys(job.epochs, 5000.0))
    live = [begun(slow, OTHER, 75, "live")]
    known = know(SPACE, job, ALIKE, live, timed=True)
    assert [trial.record for trial in under_way(known)] == live
    gone = know(SPACE, job, ALIKE, [vain(slow, OTHER, 75, "live")], timed=True)
    beside, alone = (of_batch(ranked(some, planned=planned), 32) for some in (known, gone))
    assert beside is not None
    assert alone is not None
    assert (beside.saving, beside.price) == (alone.saving, alone.price)


def test_what_has_shown_its_epochs_or_runs_in_a_dropped_cell_is_not_awaited() -> None:
    reached = JOB.record(GOAL, OTHER, "reached")
    reached.ended = None
    away = TrialRecord("away", Allocation(8, 256), {}, 2)
    live = TrialRecord("live", ALIKE, {}, 3)
    known = know(SPACE, JOB, FIRST, [reached, away, live])
    assert [trial.record for trial in under_way(known)] == [live]


@pytest.mark.parametrize("planned", [False, True])
def test_what_a_new_recipe_may_show_counts_beside_a_run_of_the_best_one(
    planned: bool,
) -> None:
    live = [TrialRecord("live", Allocation(1, 32), {"lr": 0.2}, 1)]
    beside, alone = (ranked(know(SPACE, JOB, FIRST, some), planned=planned) for some in (live, []))
    now, before = (of_batch(runs, 256) for runs in (beside, alone))
    assert before is not None
    assert now is None or now.saving < before.saving


@pytest.mark.parametrize("profile", [False, True])
def test_more_planned_runs_let_more_runs_pay_at_once_and_few_let_the_others_wait(
    profile: bool,
) -> None:
    space = Space((1, 2, 4), (32, 64, 128, 256, 512, 1024))
    counts = [at_once(space, planned, profile=profile) for planned in (100, 1000, 10_000)]
    assert counts == sorted(counts)
    assert counts[0] == 1  # of five other batches that would each pay by itself
    assert 1 < counts[-1] < 5


def at_once(space: Space, planned: int, *, profile: bool) -> int:
    """How many runs start at once after the first success."""
    job, limits = amdahl(space, noise_scale=300.0), goal(planned_runs=planned)
    sweep = Session(
        space, limits, cost=WorkerHours(), abilities=Abilities(profile=profile), clock=float
    )
    name, run, profiles = first_run(sweep, job)
    record = sweep.records[name]
    for epoch in range(1, job.needed(run.allocation, run.recipe) + 1):
        sweep.tell(name, job.report(limits, record.allocation, record.recipe, epoch))
    sweep.tell(name, Ended(EndCause.REACHED))
    assert bool(profiles) is profile
    runs = 0
    for k in range(30):
        answer = sweep.ask(f"u{k}")
        if isinstance(answer, Wait):
            assert answer.why.endswith("beside what the running ones may find")
            return runs
        if isinstance(answer, Profile):
            sweep.tell_profile(f"u{k}", shown(job, answer))
            continue
        assert isinstance(answer, Run)
        runs += 1
    message = "no end to runs at once"
    raise AssertionError(message)
