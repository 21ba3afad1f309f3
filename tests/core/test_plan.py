import math
from dataclasses import replace

import pytest

from raycosttune.core.cost import NodeHours, WorkerHours
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.plan import NoPlan, Plan, cut_short, make_plan
from raycosttune.core.space import Space
from tests.core.drive import Job, Simulation, amdahl, goal

SPACE = Space((1, 2), (64, 128))
ONE, OTHER, TWO = SPACE.cells[0], SPACE.cells[1], SPACE.cells[2]
JOB = amdahl(SPACE, startup_seconds=5)


def trial(*reports: Report, name: str = "t") -> TrialRecord:
    return TrialRecord(name, ONE, {"lr": 0.1}, 0, list(reports), Ended(EndCause.REACHED))


def plan_of(*records: TrialRecord, rate: LearningRate | None = None) -> Plan:
    plan = make_plan(Knowledge(records, SPACE, goal(), WorkerHours()), rate, 1.5)
    assert isinstance(plan, Plan)
    return plan


def no_plan(*records: TrialRecord, deadline: float | None = None) -> str:
    known = Knowledge(records, SPACE, goal(deadline_seconds=deadline), NodeHours())
    plan = make_plan(known, None, 0.25)
    assert isinstance(plan, NoPlan)
    assert str(plan) == f"no plan: {plan.reason}. The search spent 0.25 node-hours."
    return plan.reason


def test_a_plan_that_ran_has_what_its_trial_measured() -> None:
    plan = plan_of(JOB.record(goal(), ONE, "t"))
    assert plan.measured_seconds == pytest.approx(JOB.seconds(ONE))
    assert plan.measured_cost == pytest.approx(JOB.seconds(ONE) / 3600)
    assert (plan.allocation, plan.trial_id, plan.spent) == (ONE, "t", 1.5)
    assert plan.epochs == pytest.approx(JOB.needed(ONE, {}))
    assert plan.predicted_seconds.low <= JOB.seconds(ONE) <= plan.predicted_seconds.high


def test_a_plan_that_did_not_run_names_the_trial_of_its_batch() -> None:
    job = Job({ONE: 100.0, TWO: 20.0}, {64: 6.0})
    plan = plan_of(job.record(goal(), ONE, "whole"), job.record(goal(), TWO, "begun", epochs=1))
    assert (plan.allocation, plan.trial_id) == (TWO, "whole")
    assert plan.measured_seconds is plan.measured_cost is None
    assert "(not run itself)" in str(plan)


def test_a_plan_names_the_trial_that_ran_it_before_another_of_its_batch() -> None:
    job = Job({ONE: 20.0, TWO: 100.0}, {64: 6.0})
    plan = plan_of(job.record(goal(), ONE, "own"), job.record(goal(), TWO, "other"))
    assert (plan.allocation, plan.trial_id) == (ONE, "own")


def test_a_plan_says_beside_its_certificate_what_is_likely() -> None:
    space = Space((1, 2), (64, 128))
    session = Simulation(space, goal(), amdahl(space)).session
    session.adopt(amdahl(space).record(goal(), space.cells[0], "a"))
    plan = session.plan()
    assert isinstance(plan, Plan)
    assert plan.likely_saving is not None
    assert 0 < plan.likely_saving < plan.certificate.gap
    said = f"{plan.certificate}, and likely none saves more than "
    assert f"{said}{math.ceil(plan.likely_saving * 100)}%. The search spent" in str(plan)


def test_what_is_likely_is_no_more_than_what_is_certain() -> None:
    known = Knowledge([JOB.record(goal(), ONE, "t")], SPACE, goal(), WorkerHours())
    plan = make_plan(known, None, 1.5, likely_saving=1.0)
    assert isinstance(plan, Plan)
    assert plan.likely_saving == plan.certificate.gap < 1


def test_where_nothing_tells_or_nothing_is_left_a_plan_says_nothing_of_what_is_likely() -> None:
    plan = plan_of(JOB.record(goal(), ONE, "t"))
    done = replace(plan.certificate, untried=0, gap=0.0)
    free = replace(plan.certificate, is_bounded=False)
    for other in (
        plan,
        replace(plan, certificate=done, likely_saving=0.0),
        replace(plan, certificate=free, likely_saving=0.1),
    ):
        assert "likely" not in str(other)


def test_the_checkpoint_is_the_first_one_at_the_target() -> None:
    reports = [
        Report(1.0, 0.0, 5.0, checkpoint="early"),
        Report(2.0, 1.0, 5.0),
        Report(3.0, 1.0, 5.0, checkpoint="reached"),
        Report(4.0, 1.0, 5.0, checkpoint="late"),
    ]
    assert plan_of(trial(*reports)).checkpoint == "reached"
    assert plan_of(trial(*reports[:2])).checkpoint is None


def test_the_rate_of_a_plan_is_that_of_its_batch() -> None:
    record = trial(Report(1.0, 1.0, 5.0))
    assert plan_of(record).recipe == {"lr": 0.1}
    scaled = plan_of(record, rate=LearningRate(reference_batch=32)).recipe
    assert scaled == {"lr": pytest.approx(0.2)}


def test_a_plan_says_workers_batch_epochs_cost_and_time() -> None:
    text = str(plan_of(Job({ONE: 60.0}, {64: 6.0}).record(goal(), ONE, "t")))
    assert text.startswith("1 worker, batch 64, 6 epochs: 0.1 worker-hours (measured 0.1), 360 s (")
    assert text.endswith("The search spent 1.5 worker-hours.")
    assert "1 worker, batch 64, lr=0.1, 1 epoch: " in str(plan_of(trial(Report(1.0, 1.0, 5.0))))
    job = Job({TWO: 60.0}, {64: 6.0})
    assert str(plan_of(job.record(goal(), TWO, "t"))).startswith("2 workers, ")


def test_no_plan_says_what_was_tried() -> None:
    begun = JOB.record(goal(), ONE, "t", epochs=2)
    missing = trial(Report(1.0, None, 5.0))
    near = trial(Report(1.0, 0.9, 5.0), Report(2.0, 0.8, 5.0))
    assert no_plan() == "no trial has started"
    nothing = "1 trial, none reached accuracy 1; none reported a finite 'accuracy'"
    assert no_plan(missing) == nothing
    assert no_plan(begun, trial(*near.reports, name="u")) == (
        "2 trials, none reached accuracy 1; the best was 0.9, after 1 of the 2 epochs of u "
        "(1 worker, batch 64, lr=0.1); a plan for less needs no trial: raycosttune plan RUN "
        "--target 0.9"
    )
    assert no_plan(near, deadline=60).startswith("1 trial, none reached accuracy 1 within 60 s")
    late = [trial(Report(1.0, 0.9, 50.0), Report(2.0, 1.0, seconds)) for seconds in (25.0, 15.0)]
    assert no_plan(*late, near, deadline=60) == (
        "3 trials, none reached accuracy 1 within 60 s; the fastest one at the target took 65 s"
    )


def test_no_plan_says_what_still_runs() -> None:
    fresh = TrialRecord("t", ONE, {}, 0)
    begun = TrialRecord("u", ONE, {}, 0, [Report(1.0, 0.9, 5.0)])
    assert no_plan(fresh) == "1 trial, 1 running, nothing reported yet"
    assert no_plan(begun, fresh) == (
        "2 trials, 2 running, none reached accuracy 1; the best was 0.9"
    )


def test_no_plan_says_that_nothing_was_reported() -> None:
    dead = TrialRecord("t", ONE, {}, 0, [], Ended(EndCause.FAILED, "no such layer"))
    assert no_plan(dead).endswith("; nothing was reported; the last one: no such layer")


def test_no_plan_says_what_ended_the_search() -> None:
    ended = TrialRecord("t", ONE, {}, 0, [Report(1.0, 0.9, 5.0)], Ended(EndCause.STOPPED, "why."))
    assert no_plan(ended).endswith("of t (1 worker, batch 64); the last one: why")
    known = Knowledge([ended], SPACE, goal(sweep_budget=0.1), NodeHours())
    plan = make_plan(known, None, 0.25)
    assert "; the search ended: the sweep's budget of 0.1 node-hours is spent." in str(plan)


def test_a_plan_says_which_limit_ended_the_search() -> None:
    records = [JOB.record(goal(), ONE, "t")]
    known = Knowledge(records, SPACE, goal(sweep_budget=0.1), NodeHours())
    plan = make_plan(known, None, 0.25)
    assert isinstance(plan, Plan)
    assert plan.limit == "the sweep's budget of 0.1 node-hours is spent"
    assert str(plan).endswith(f"The search spent 0.25 node-hours and ended early: {plan.limit}.")


def test_without_a_plan_the_best_model_in_time_is_named() -> None:
    limits = goal(deadline_seconds=25.0)
    told = [
        Report(1.0, 0.2, 10.0, checkpoint="early"),
        Report(2.0, 0.6, 10.0, checkpoint="best"),
        Report(2.5, 0.7, 1.0),
        Report(2.7, None, 1.0, checkpoint="unknown"),
        Report(3.0, 0.9, 10.0, checkpoint="late"),
    ]
    worse = TrialRecord("b", SPACE.cells[0], {}, 1, [Report(1.0, 0.5, 10.0, checkpoint="worse")])
    records = [TrialRecord("a", SPACE.cells[0], {}, 0, told), worse]
    plan = make_plan(Knowledge(records, SPACE, limits, WorkerHours()), None, 1.0)
    assert isinstance(plan, NoPlan)
    assert plan.checkpoint == "best"
    assert str(plan).endswith(" The best model lies in best.")
    plan = make_plan(Knowledge([], SPACE, limits, WorkerHours()), None, 0.0)
    assert isinstance(plan, NoPlan)
    assert plan.checkpoint is None


def test_what_cuts_a_sweep_short_is_told_with_its_plan_or_the_lack_of_one() -> None:
    plan = plan_of(JOB.record(goal(), ONE, "t"))
    assert cut_short(plan, "") == plan
    assert cut_short(plan, "so few").limit == "so few"  # type: ignore[union-attr]
    assert cut_short(replace(plan, limit="late"), "so few") == replace(plan, limit="late")
    none = NoPlan("none reached it", 1.0, "hours")
    assert cut_short(none, "") == none
    assert cut_short(none, "so few") == replace(none, reason="none reached it; ended early: so few")
