"""Laws of a session whose driver can profile and resize."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.decision import Continue, Finished, Resize, Run, Stop, Wait
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.plan import NoPlan, Plan
from raycosttune.core.profile import Profile, Profiled
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidCostError
from tests.core.drive import Factors, Job, amdahl, goal, spaces_and_jobs
from tests.core.told import asked, first_run, report, session, shown

SPACE = Space((1, 2, 4), (64, 128, 256))
JOB = amdahl(SPACE)
LOST = Ended(EndCause.FAILED, "the node died", 3600.0)
SWEEPS = settings(max_examples=15)


def drive(sweep: Session, job: Job, most: int = 60) -> Finished:
    """Drives a sweep that may resize its runs to its end."""
    for k in range(most):
        name = f"t{k}"
        answer = sweep.ask(name)
        if isinstance(answer, Finished):
            return answer
        if isinstance(answer, Profile):
            sweep.tell_profile(name, shown(job, answer))
            continue
        assert isinstance(answer, Run)
        workers, epoch = answer.allocation.workers, 0
        decision = sweep.decide(name)
        while not isinstance(decision, Stop) and epoch < 500:
            epoch += 1
            report(sweep, job, name, epoch, workers)
            decision = sweep.decide(name)
            if isinstance(decision, Resize):
                assert decision.workers in sweep.space.workers
                workers = decision.workers
        sweep.tell(name, Ended(EndCause.STOPPED))
    message = f"no end after {most} trials"
    raise AssertionError(message)


def test_profiles_come_before_runs_and_one_at_a_time() -> None:
    sweep = session(SPACE)
    first = asked(sweep, "p")
    assert sweep.ask("q") == Wait("a profile runs")
    assert sweep.ask("p") == first
    assert sweep.tell_profile("p", shown(JOB, first))
    _, run, profiles = first_run(sweep, JOB)
    assert profiles
    assert run.allocation in SPACE.cells
    assert sweep.records


def test_no_profile_is_made_beside_a_run_or_by_a_driver_that_can_not() -> None:
    sweep = session(SPACE, max_concurrent=3)
    _, first, _ = first_run(sweep, JOB)
    second = sweep.ask("u")
    assert isinstance(second, Run)
    assert second.allocation.batch_size != first.allocation.batch_size
    plain = Session(SPACE, goal(), clock=float)
    assert isinstance(plain.ask("t"), Run)
    assert plain.moment.planner is None


def test_what_trials_and_profiles_hold_is_committed() -> None:
    sweep = session(SPACE, max_concurrent=2)
    assert sweep.committed_workers == 0
    assert sweep.live_profiles == []
    first = asked(sweep, "p")
    assert sweep.committed_workers == first.held.workers
    assert [record.trial_id for record in sweep.live_profiles] == ["p"]
    assert sweep.live == []
    sweep.tell_profile("p", shown(JOB, first))
    assert sweep.committed_workers == 0
    name, run, _ = first_run(sweep, JOB)
    assert sweep.committed_workers == run.allocation.workers
    report(sweep, JOB, name, 1, workers=4)
    assert sweep.committed_workers == 4
    sweep.tell(name, Ended(EndCause.STOPPED))
    assert sweep.committed_workers == 0


def test_what_was_spent_counts_profiles_and_resized_parts() -> None:
    sweep = session(SPACE)
    cells = (Allocation(1, 64), Allocation(4, 64))
    name, run, profiles = first_run(sweep, JOB)
    profiled = sum(p.held.workers * shown(JOB, p).seconds for p in profiles) / 3600
    assert sweep.spent == pytest.approx(profiled)
    record = TrialRecord("t", cells[0], {}, 0)
    record.reports += [Report(1.0, 0.0, 3600.0), Report(2.0, 0.0, 1800.0, workers=4)]
    sweep.adopt(record)
    assert sweep.spent == pytest.approx(profiled + 1 + 4 / 2)
    assert f"{run.allocation.workers} worker" in sweep.explain()
    assert name in sweep.explain()


def test_a_lost_profile_is_paid_for_and_asked_for_once_more() -> None:
    sweep = session(SPACE)
    first = asked(sweep, "p")
    assert not sweep.tell("p", Report(1.0, 0.5, 10.0))
    assert sweep.tell("p", LOST)
    assert not sweep.tell("p", LOST)
    assert not sweep.tell_profile("p", shown(JOB, first))
    assert sweep.spent == pytest.approx(first.held.workers)
    assert sweep.live_profiles == []
    assert asked(sweep, "q").cells == first.cells
    assert sweep.tell("q", LOST)
    assert sweep.spent == pytest.approx(2 * first.held.workers)
    run = sweep.ask("t")
    assert isinstance(run, Run)
    report(sweep, JOB, "t", 1)
    sweep.tell("t", Ended(EndCause.STOPPED))
    assert isinstance(sweep.ask("u"), Run)


def test_what_was_measured_before_a_failure_stays() -> None:
    sweep = session(SPACE)
    first = asked(sweep, "p")
    sweep.tell_profile("p", shown(JOB, first))
    for name in ("q", "r"):
        asked(sweep, name)
        assert sweep.tell(name, LOST)
    assert all(sweep.known.time.is_measured(cell) for cell in first.cells)
    assert sweep.moment.planner is not None
    assert isinstance(sweep.ask("t"), Run)


def test_a_profile_that_shows_nothing_again_and_again_does_not_block() -> None:
    sweep = session(SPACE)
    for name in ("p", "q"):
        asked(sweep, name)
        assert sweep.tell_profile(name, Profiled({}, 60.0, 10.0))
    assert isinstance(sweep.ask("t"), Run)


def test_an_unknown_profile_is_not_heard() -> None:
    sweep = session(SPACE)
    assert not sweep.tell_profile("p", Profiled({}, 1.0, 1.0))
    assert not sweep.tell("p", LOST)


@SWEEPS
@given(spaces_and_jobs(), st.sampled_from((1, 10, 1000)), st.booleans())
def test_a_sweep_without_limits_ends_with_a_plan(
    table: tuple[Space, Job], planned: int, resize: bool
) -> None:
    space, job = table
    sweep = session(space, goal(planned_runs=planned), resize=resize)
    assert isinstance(sweep.ask("t0"), Profile)
    drive(sweep, job)
    plan = sweep.plan()
    assert isinstance(plan, Plan)
    assert plan.allocation in space.cells
    assert plan.spent == pytest.approx(sweep.spent)


@SWEEPS
@given(spaces_and_jobs(), st.sampled_from((1, 10, 1000)), st.lists(st.floats(0.5, 2), min_size=1))
def test_a_sweep_over_recipes_ends(
    table: tuple[Space, Job], planned: int, factors: list[float]
) -> None:
    space, job = table
    sweep = session(space, goal(planned_runs=planned), resize=True, proposer=Factors(factors))
    drive(sweep, job)
    plan = sweep.plan()
    assert isinstance(plan, Plan | NoPlan)
    if isinstance(plan, Plan):
        assert plan.recipe["factor"] in factors


@SWEEPS
@given(spaces_and_jobs(), st.floats(0.3, 3))
def test_a_sweep_with_any_deadline_ends(table: tuple[Space, Job], share: float) -> None:
    space, job = table
    limit = share * min(job.seconds(cell) for cell in space.cells)
    sweep = session(space, goal(deadline_seconds=limit), resize=True)
    drive(sweep, job)
    plan = sweep.plan()
    assert isinstance(plan, Plan | NoPlan)
    if share < 0.9:
        assert isinstance(plan, NoPlan)


@SWEEPS
@given(spaces_and_jobs(), st.floats(0.05, 3))
def test_a_sweep_overspends_its_budget_by_at_most_one_report_or_profile(
    table: tuple[Space, Job], share: float
) -> None:
    space, job = table
    budget = share * space.cells[0].workers * job.seconds(space.cells[0]) / 3600
    sweep = session(space, goal(sweep_budget=budget, planned_runs=1000))
    drive(sweep, job)
    most = max(c.workers for c in space.cells)
    report_cost = max(job.epoch_seconds.values()) + job.startup_seconds
    profile_cost = max((p.seconds for p in sweep.profiles.values()), default=0.0)
    assert sweep.spent <= budget + most * max(report_cost, profile_cost) / 3600


def test_a_trial_in_a_cell_that_others_have_broken_runs_on() -> None:
    sweep = session(SPACE, max_concurrent=2)
    name, run, _ = first_run(sweep, JOB)
    report(sweep, JOB, name, 1)
    sweep.adopt(TrialRecord("o", run.allocation, {}, 1, [], Ended(EndCause.OUT_OF_MEMORY)))
    assert run.allocation not in sweep.known.cells
    assert sweep.decide(name) == Continue()


def test_a_sweep_whose_every_cell_is_broken_ends() -> None:
    space = Space((1,), (64,))
    job = amdahl(space)
    sweep = session(space)
    name, _, _ = first_run(sweep, job)
    report(sweep, job, name, 1)
    sweep.tell(name, Ended(EndCause.OUT_OF_MEMORY))
    assert sweep.moment.planner is None
    assert isinstance(sweep.ask("u"), Finished)


class Fickle:
    """Is a cost metric that fails once it is told to."""

    unit = "EUR"
    fails = False

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        if self.fails:
            raise InvalidCostError("no price today")  # noqa: EM101, TRY003 - a fake's
        return allocation.workers * seconds


def test_a_cost_that_fails_after_a_profile_ends_the_sweep() -> None:
    cost = Fickle()
    sweep = session(SPACE, cost=cost)
    sweep.tell_profile("p", shown(JOB, asked(sweep, "p")))
    cost.fails = True
    answer = sweep.ask("q")
    assert isinstance(answer, Finished)
    assert answer.is_failure


def test_a_resized_run_that_meets_the_deadline_is_the_plan_where_nothing_else_is() -> None:
    """On one worker the run is late, and on two the likely time is too near the deadline."""
    space = Space((1, 2), (64,))
    job = Job({Allocation(1, 64): 100.0, Allocation(2, 64): 60.0}, {64: 10.0})
    sweep = session(space, goal(deadline_seconds=605.0), resize=True)
    first_run(sweep, job)
    record = TrialRecord("r", Allocation(1, 64), {}, 0)
    record.reports += [Report(1.0, 0.0, 62.0), Report(10.0, 1.0, 540.0, attempt=2, workers=2)]
    record.ended = Ended(EndCause.REACHED)
    sweep.adopt(record)
    known = sweep.known
    assert known.is_delivered
    assert known.measured == ()
    plan = sweep.plan()
    assert isinstance(plan, Plan)
    assert plan.allocation == Allocation(2, 64)
    assert plan.measured_cost is None
