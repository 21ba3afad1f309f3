import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Finished, Run
from raycosttune.core.observation import EndCause, Ended, TrialRecord
from raycosttune.core.plan import NoPlan, Plan
from raycosttune.core.prior import Prior
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, Simulation, amdahl, goal, spaces_and_jobs

SPACE = Space((1, 2, 4), (32, 64, 128, 256))
JOB = amdahl(SPACE, startup_seconds=5.0)
FOREIGN = Allocation(1, 8192)


def session(prior: Prior | None, space: Space = SPACE, **goals: float) -> Session:
    return Session(
        space,
        goal(**goals),  # type: ignore[arg-type]  # drawn as numbers
        cost=WorkerHours(),
        prior=prior,
        clock=lambda: 0.0,
    )


def finished(space: Space, job: Job) -> Simulation:
    sweep = Simulation(space, goal(), job, cost=WorkerHours())
    sweep.run()
    return sweep


def prior_of(sweep: Session, samples: float = 1.0) -> Prior:
    return Prior(tuple(sweep.records.values()), tuple(sweep.profiles.values()), samples)


@settings(max_examples=25)
@given(spaces_and_jobs())
def test_of_the_same_job_an_earlier_sweep_counts_as_if_it_were_ones_own(
    table: tuple[Space, Job],
) -> None:
    space, job = table
    earlier = finished(space, job).session
    again = session(prior_of(earlier), space)
    ours, theirs = earlier.plan(), again.plan()
    assert isinstance(ours, Plan)
    assert theirs == replace(ours, spent=0.0)
    assert isinstance(again.ask("new"), Finished)
    assert again.spent == 0
    assert str(theirs) in again.explain()
    assert again.explain().startswith("known from an earlier sweep: ")
    assert "spent" in str(again.estimate())


def test_a_sweep_goes_on_where_an_earlier_one_found_too_little() -> None:
    few = replace(goal(), planned_runs=1)
    earlier = Simulation(SPACE, few, JOB, cost=WorkerHours())
    earlier.run()
    again = session(prior_of(earlier.session), planned_runs=1000)
    answer = again.ask("new")
    assert isinstance(answer, Run)
    tried = {record.allocation for record in earlier.session.records.values()}
    assert answer.allocation not in tried
    assert isinstance(again.plan(), Plan)


def test_trials_at_other_batches_and_profiles_on_other_machines_say_nothing() -> None:
    other = JOB.record(goal(), SPACE.cells[0], "other")
    record = replace(other, allocation=FOREIGN)
    shown = ProfileRecord("p", Profile((FOREIGN,)), Profiled({FOREIGN: 1.0}, 9.0, 5.0))
    for samples in (1.0, 2.0):
        empty = session(Prior((record,), (shown,), samples))
        assert empty.known.time.is_empty
        assert not empty.known.accuracy.recipes


@pytest.mark.parametrize("samples", [0.25, 4.0])
def test_of_more_or_less_data_epochs_take_as_much_longer_and_no_run_is_done(
    samples: float,
) -> None:
    earlier = finished(SPACE, JOB).session
    again = session(prior_of(earlier, samples))
    assert isinstance(again.plan(), NoPlan)
    assert isinstance(again.ask("new"), Run)
    assert again.known.incumbent is None
    for cell in earlier.known.cells:
        if not earlier.known.time.is_measured(cell):
            continue
        before, after = (sweep.known.time.predict(cell) for sweep in (earlier, again))
        assert after.mid == pytest.approx(before.mid * samples, rel=0.15)
        assert after.high / after.low > before.high / before.low
    done = next(record for record in earlier.records.values() if record.reports)
    batch = done.allocation.batch_size
    low, high = earlier.known.accuracy.bounds("{}", batch)
    wider = again.known.accuracy.bounds("{}", batch)
    assert wider[0] == pytest.approx(low / max(samples, 1.0), rel=1e-6)
    assert wider[1] == pytest.approx(high / min(samples, 1.0), rel=1e-6)


def test_what_runs_now_replaces_what_was_expected_of_its_batch() -> None:
    earlier = finished(SPACE, JOB).session
    again = session(prior_of(earlier, 4.0))
    cell = SPACE.cells[0]
    slow = Job(JOB.epoch_seconds, {b: 3 * e for b, e in JOB.epochs.items()})
    again.adopt(slow.record(goal(), cell, "own"))
    low, high = again.known.accuracy.bounds("{}", cell.batch_size)
    assert high == pytest.approx(slow.needed(cell, {}), rel=0.05)
    assert low < high
    assert isinstance(again.plan(), Plan)


@given(st.floats(0.1, 10), st.booleans())
def test_expected_epochs_hold_both_the_same_steps_and_the_same_epochs(
    samples: float, reaches: bool
) -> None:
    cell = SPACE.cells[0]
    whole = JOB.record(goal(), cell, "a") if reaches else JOB.record(goal(), cell, "a", epochs=3)
    again = session(Prior((whole,), (), samples))
    low, high = again.known.accuracy.bounds("{}", cell.batch_size)
    needed = JOB.needed(cell, {}) if reaches else math.inf
    first = needed - 1 if reaches else 3
    assert low <= first * min(1, 1 / samples) * (1 + 1e-9)
    assert high >= needed * max(1, 1 / samples) * (1 - 1e-9)


def test_a_trial_without_a_report_and_a_profile_bring_what_they_have() -> None:
    cell = SPACE.cells[0]
    silent = TrialRecord("s", cell, {}, 0, [], Ended(EndCause.FAILED))
    shown = ProfileRecord("p", Profile((cell,)), Profiled({cell: 2.0}, 9.0, 5.0))
    again = session(Prior((silent,), (shown,), 3.0))
    assert again.known.time.predict(cell).mid == pytest.approx(6.0, rel=0.01)
    assert not again.known.accuracy.recipes


def test_on_other_machines_the_epochs_are_known_and_no_time_is() -> None:
    earlier = finished(SPACE, JOB).session
    told = Prior(
        tuple(earlier.records.values()), tuple(earlier.profiles.values()), is_elsewhere=True
    )
    again = session(told)
    assert again.known.time.is_empty
    assert isinstance(again.plan(), NoPlan)
    for batch in {cell.batch_size for cell in SPACE.cells}:
        ours, theirs = (s.known.accuracy.bounds("{}", batch) for s in (again, earlier))
        assert ours == theirs
    answer = again.ask("t")
    assert isinstance(answer, Run)
    cell, twice = answer.allocation, {c: 2 * s for c, s in JOB.epoch_seconds.items()}
    again.tell("t", Job(twice, JOB.epochs, 5.0).report(goal(), cell, {}, 1))
    plan = again.plan()
    reached = earlier.known.tally.best
    if cell.batch_size in reached:
        assert isinstance(plan, Plan)
        assert plan.predicted_seconds.mid == pytest.approx(
            5.0 + twice[cell] * reached[cell.batch_size].mid, rel=0.05
        )


def test_on_other_machines_no_run_out_of_memory_and_no_deadline_met_counts() -> None:
    cell = SPACE.cells[0]
    done = JOB.record(goal(), cell, "done")
    limit = JOB.seconds(cell) * 1.1
    burst = TrialRecord("burst", cell, {}, 1, done.reports[:1], Ended(EndCause.OUT_OF_MEMORY))
    again = session(Prior((done, burst), is_elsewhere=True), deadline_seconds=limit, planned_runs=1)
    assert again.known.cells == SPACE.cells
    slow = Job({c: 3 * s for c, s in JOB.epoch_seconds.items()}, JOB.epochs, 5.0)
    again.adopt(slow.record(goal(), cell, "own", epochs=1))
    assert isinstance(again.plan(), NoPlan)


def test_more_data_on_other_machines_brings_expected_epochs_alone() -> None:
    earlier = finished(SPACE, JOB).session
    told = replace(prior_of(earlier, 2.0), is_elsewhere=True)
    again = session(told)
    assert again.known.time.is_empty
    assert again.known.accuracy.recipes == ("{}",)


def test_what_a_sweep_began_with_is_said_with_how_far_it_holds() -> None:
    assert str(Prior(())) == "0 trials"
    profile = ProfileRecord("p", Profile(SPACE.cells[:1]))
    assert str(Prior((), (profile,), samples=0.5)) == "0 trials, 1 profile, on 0.5 times the data"
    assert str(Prior((), is_elsewhere=True)).endswith("of which the epochs alone count here")
