"""Laws of what is known where recipes differ in their epoch times."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.audit import against
from raycosttune.core.certificate import certify
from raycosttune.core.choice import profile_recipe
from raycosttune.core.class_pace import scores
from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Recipe, recipe_key
from raycosttune.core.plan import Plan, make_plan
from raycosttune.core.prior import Prior
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.core.times import UNSEEN_SD, Times
from raycosttune.errors import InvalidSpaceError
from tests.core.drive import Simulation, amdahl, goal
from tests.core.paced import BF16, FP32, PacedJob, declared, paced, paced_jobs
from tests.core.told import asked, session, shown

SPACE = declared(Space((1, 2, 4), (64, 128, 256)))
JOB = paced(amdahl(SPACE), bf16=0.6)
CELL = SPACE.cells[0]
METRICS = st.sampled_from((NodeHours(), WorkerHours()))


def know(records: list, space: Space = SPACE, **limits: float) -> Knowledge:  # type: ignore[type-arg]
    return Knowledge(records, space, goal(**limits), WorkerHours())  # type: ignore[arg-type]


@settings(max_examples=100)
@given(data=st.data(), table=paced_jobs(), cost=METRICS, share=st.floats(0, 1))
def test_nothing_untried_saves_more_than_the_gap_with_any_recipe_tried(
    data: st.DataObject, table: tuple[Space, PacedJob], cost: CostMetric, share: float
) -> None:
    space, job = table
    recipes: list[Recipe] = [FP32, BF16, {**BF16, "factor": data.draw(st.floats(0.5, 2))}]
    times = sorted(job.seconds(cell, recipe) for cell in space.cells for recipe in recipes)
    limits = goal(deadline_seconds=(times[0] + share * (times[-1] - times[0])) * 1.001)
    limit = limits.deadline_seconds or math.inf
    pairs = st.tuples(st.sampled_from(space.cells), st.integers(0, 2))
    records = [
        job.run(limits, cell, recipes[k], f"{n}", epochs)
        for epochs, least in ((None, 1), (1, 0))
        for n, (cell, k) in enumerate(sorted(data.draw(st.sets(pairs, min_size=least))))
    ]
    for k, record in enumerate(records):
        record.trial_id = f"t{k}"
    known = Knowledge(records, space, limits, cost)
    incumbent = known.incumbent
    if incumbent is None:
        return
    best = (1 - certify(known, incumbent).gap) * incumbent.cost.mid
    own = known.class_of(incumbent.recipe)
    measured = {(run.allocation, known.class_of(run.recipe)) for run in known.measured}
    for recipe in (recipe for recipe in recipes if recipe_key(recipe) in known.recipes):
        name = space.time_class(recipe)
        for cell in space.cells:
            seconds = job.seconds(cell, recipe)
            # With the recipes of the plan's class a cell is tried as it is without classes.
            is_tried = (cell, name) in measured
            if seconds <= limit and not is_tried:
                assert cost(cell, seconds) >= best * (1 - 1e-9), (name, own)


@settings(max_examples=40)
@given(data=st.data(), table=paced_jobs())
def test_recipes_of_one_class_are_told_apart_as_without_any(
    data: st.DataObject, table: tuple[Space, PacedJob]
) -> None:
    space, job = table
    whole = data.draw(st.sets(st.sampled_from(space.cells), min_size=1))
    recipes = [{**FP32, "factor": 1.5}, FP32]
    records = [
        job.run(goal(), cell, recipe, f"{cell} {k}")
        for cell in sorted(whole)
        for k, recipe in enumerate(recipes)
    ]
    one, other = (know(records, some) for some in (space, replace(space, affects_time=())))
    key = recipe_key(FP32)
    assert np.array_equal(one.time_of(key).log_mean, other.time.log_mean)
    assert np.array_equal(one.time_of(key).log_least, other.time.log_least)
    assert make_plan(one, None, 0.0) == make_plan(other, None, 0.0)
    assert scores(one) == pytest.approx(scores(other))


def test_a_class_is_known_from_a_few_cells_by_what_the_others_show() -> None:
    records = [JOB.run(goal(), cell, FP32, f"fp32 {cell}") for cell in SPACE.cells]
    few = [SPACE.allocation(1, 64), SPACE.allocation(4, 256)]
    records += [JOB.run(goal(), cell, BF16, f"bf16 {cell}") for cell in few]
    known, key = know(records), recipe_key(BF16)
    time = known.time_of(key)
    alone = know([record for record in records if record.recipe == BF16]).time_of(key)
    off, sds = [], []
    for cell in set(SPACE.cells) - set(few):
        truth = math.log(0.6 * JOB.epoch_seconds[cell])
        assert not time.is_measured(cell)
        off.append(abs(math.log(time.predict(cell).mid) - truth))
        sds.append((time.sd(cell), alone.sd(cell)))
    assert max(off) < 0.1
    assert all(joint < own for joint, own in sds)
    slow, fast = (known.times.pace(known.class_of(recipe_key(one))) for one in (FP32, BF16))
    assert fast / slow == pytest.approx(0.6, rel=0.05)


def test_a_class_that_was_not_timed_is_uncertain_and_bounded_by_nothing() -> None:
    known = know([JOB.run(goal(), SPACE.cells[0], FP32, "t")])
    timed, other = known.times.of(SPACE.time_class(FP32)), known.times.of(SPACE.time_class(BF16))
    assert not other.is_empty
    assert all(other.bounds(cell) == (0.0, math.inf) for cell in SPACE.cells)
    assert all(other.sd(cell) >= UNSEEN_SD for cell in SPACE.cells)
    assert np.allclose(other.log_mean, timed.log_mean)
    assert known.least_seconds(SPACE.cells[0], 5.0) == known.startup.predict(SPACE.cells[0]).low
    assert not other.is_known.any()
    assert other.broken == []
    assert known.times.is_known.sum() == 1


def test_before_anything_is_timed_only_ratios_mean_anything() -> None:
    times = Times(SPACE, {}, (0.0,))
    assert times.unknown.is_empty
    assert times.unknown.broken == []
    assert times.of(SPACE.time_class(BF16)).is_empty
    assert times.slack == pytest.approx(0.1)
    assert know([]).classes == ("",)


def test_a_plan_is_the_cheapest_by_its_time_and_not_by_its_epochs() -> None:
    cell = SPACE.cells[0]
    hungry: Recipe = {**BF16, "factor": 1.2}
    records = [JOB.run(goal(), cell, FP32, "few"), JOB.run(goal(), cell, hungry, "fast")]
    plan, pooled = (
        make_plan(know(records, space), None, 0.0)
        for space in (SPACE, replace(SPACE, affects_time=()))
    )
    assert isinstance(plan, Plan)
    assert isinstance(pooled, Plan)
    assert (plan.trial_id, pooled.trial_id) == ("fast", "few")
    assert plan.predicted_seconds.mid == pytest.approx(JOB.seconds(cell, hungry), rel=0.01)
    known = know(records)
    assert [run.record.trial_id for run in known.measured] == ["few", "fast"]
    score = dict(zip(known.accuracy.recipes, scores(known), strict=True))
    assert score[recipe_key(hungry)] < score[recipe_key(FP32)]


def test_where_no_recipe_is_in_time_the_fastest_on_changing_workers_is_the_plan() -> None:
    cell = SPACE.cells[0]
    slow, fast = JOB.run(goal(), cell, FP32, "slow"), JOB.run(goal(), cell, BF16, "fast")
    for record in (slow, fast):
        *early, last = record.reports  # the first ones on workers that nobody may choose
        record.reports = [*(replace(r, seconds=r.seconds / 9, workers=3) for r in early), last]
    fastest = fast.run_seconds
    known = know([slow, fast], deadline_seconds=fastest * 1.001)
    assert known.incumbent is not None
    assert known.incumbent.record.trial_id == "fast"
    assert known.incumbent.seconds.mid > fastest * 1.001
    assert known.plans.least_cost <= known.incumbent.cost.mid
    assert know([slow], deadline_seconds=fastest * 0.5).incumbent is None


def test_a_class_that_breaks_a_bound_is_named() -> None:
    space = declared(Space((1,), (32, 64)))
    job = paced(amdahl(space), bf16=0.6)
    odd = replace(job, epoch_seconds=dict(zip(space.cells, (2.0, 10.0), strict=True)))
    records = [odd.run(goal(), cell, FP32, f"fp32 {cell}") for cell in space.cells]
    records.append(job.run(goal(), space.cells[0], BF16, "bf16"))
    known = know(records, space)
    assert any("precision=fp32 took 2.05 s" in line for line in against(known))
    assert known.times.slack > 0.5


def test_a_profile_counts_for_the_class_of_its_recipe() -> None:
    cells = SPACE.cells[:2]
    for recipe, classes in ((BF16, (SPACE.time_class(BF16),)), (None, ())):
        record = ProfileRecord("p", Profile(cells, recipe=recipe))
        record.show(shown(JOB, record.profile))
        known = Knowledge([], SPACE, goal(), WorkerHours(), profiles=[record])
        assert known.times.names == classes


class Precisions:
    """Proposes both precisions in turn, until it fails."""

    is_broken = False

    def propose(self, index: int, records: object) -> Recipe:
        del records
        if self.is_broken:
            message = "no more"
            raise InvalidSpaceError(message)
        return dict((FP32, BF16)[index % 2])


def test_a_profile_times_the_best_recipe_and_before_that_the_next_one() -> None:
    sweep, proposer = session(SPACE, proposer=Precisions()), Precisions()
    profile = asked(sweep, "p")
    assert profile.recipe == proposer.propose(0, ())
    assert json.loads(json.dumps(sweep.state()))["profiles"][0]["recipe"] == profile.recipe
    again = session(SPACE)
    again.load_state(sweep.state())
    assert again.profiles == sweep.profiles
    reached, vain = JOB.run(goal(), SPACE.cells[0], BF16, "t"), JOB.run(goal(), CELL, FP32, "u", 1)
    assert profile_recipe(know([reached]), profile, proposer) == BF16
    assert profile_recipe(know([]), profile, None) == {}
    tried = [JOB.run(goal(), CELL, {**FP32, "k": k}, f"t{k}", 1) for k in range(9)]
    proposer.is_broken = True
    assert profile_recipe(know([*tried, vain]), profile, proposer) == FP32
    with pytest.raises(InvalidSpaceError, match="no more"):
        profile_recipe(know([]), profile, proposer)


def test_where_all_proposals_were_tried_a_profile_times_the_first() -> None:
    records = [JOB.run(goal(), CELL, recipe, f"{k}", 1) for k, recipe in enumerate((FP32, BF16))]
    known = know(records, deadline_seconds=1.0)
    assert profile_recipe(known, Profile((CELL,)), Precisions()) == FP32


def test_a_prior_on_other_data_counts_for_the_class_of_each_recipe() -> None:
    run, cells = JOB.run(goal(), CELL, FP32, "t"), SPACE.cells[1:3]
    profiles = []
    for name, recipe in (("p", BF16), ("q", None)):
        record = ProfileRecord(name, Profile(cells, recipe=recipe))
        record.show(shown(JOB, record.profile))
        profiles.append(record)
    prior = Prior((run,), tuple(profiles), samples=2.0)
    sweep = Session(SPACE, goal(), cost=WorkerHours(), prior=prior, clock=float)
    times = sweep.known.times
    assert times.names == tuple(sorted(map(SPACE.time_class, (FP32, BF16))))
    seconds = times.of(SPACE.time_class(BF16)).predict(cells[0]).mid
    assert seconds == pytest.approx(2 * JOB.epoch_seconds[cells[0]], rel=0.05)


def test_of_runs_of_a_class_those_beyond_the_deadline_met_it_nowhere() -> None:
    run = JOB.run(goal(), CELL, BF16, "t")
    for limit, count in ((run.run_seconds * 0.9, 0), (run.run_seconds * 1.1, 1)):
        tally = know([run], deadline_seconds=limit).tally
        assert len(tally.of_class(SPACE.time_class(BF16)).own) == count
        assert not tally.of_class(SPACE.time_class(FP32)).best


def test_a_sweep_ends_on_the_faster_class_and_goes_on_alike_after_a_restore() -> None:
    space = declared(Space((1, 2), (64, 128)))
    job = paced(amdahl(space), bf16=0.5)
    sweep = Simulation(space, goal(planned_runs=100), job, proposer=Precisions())
    sweep.run()
    plan = sweep.session.plan()
    assert isinstance(plan, Plan)
    assert plan.recipe["precision"] == "bf16"
    again = sweep.fresh_session()
    again.load_state(json.loads(json.dumps(sweep.session.state())))
    assert again.plan() == plan
    assert again.explain() == sweep.session.explain()
    assert "precision=bf16: an epoch takes 0.5" in again.explain()


@pytest.mark.parametrize("names", [("a", "a"), ("",), (3,)])
def test_names_that_are_no_different_texts_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSpaceError, match="affects_time must hold different names"):
        Space((1,), (32,), affects_time=names)


def test_a_space_tells_its_names_only_where_there_are_some() -> None:
    assert SPACE.data()["affects_time"] == ("precision",)
    assert "affects_time" not in Space((1,), (32,)).data()
    assert Space((1,), (32,)).time_class(BF16) == ""
    assert SPACE.time_class(FP32) != SPACE.time_class(BF16) == SPACE.time_class({**BF16, "lr": 1})
