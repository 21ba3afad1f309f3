"""Whether a run that goes on is given up for a fresh one."""

from raycosttune.core.decision import Continue, Resize, Stop, StopCause
from raycosttune.core.going import Going
from raycosttune.core.space import Allocation
from tests.core.drive import Job, goal
from tests.core.test_planner import JOB, planner
from tests.core.told import begun, vain


def test_a_run_is_given_up_where_a_fresh_one_is_expected_to_cost_less() -> None:
    """Another batch is known to need few epochs, but no run of it was in time yet."""
    job = Job(JOB.epoch_seconds, {64: 9.0, 128: 5.0, 256: 8.0})
    late = [job.record(goal(), Allocation(1, batch), f"r{batch}") for batch in (64, 128)]
    slow = begun(job, Allocation(1, 64), 1)
    decision = planner(*late, slow, job=job, limits=goal(deadline_seconds=400.0)).next_step(
        slow, Going(slow.allocation.workers)
    )
    assert isinstance(decision, Stop)
    assert decision.cause is StopCause.COST
    assert "a fresh run elsewhere" in decision.why


def test_a_run_is_not_given_up_for_a_fresh_one_that_costs_nearly_as_much() -> None:
    """The fresh one is the cheapest of several estimates, so that it is likely dearer."""
    job = Job(JOB.epoch_seconds, {64: 14.0, 128: 20.0, 256: 30.0})
    slow = begun(job, Allocation(1, 64), 1)
    made = planner(slow, job=job, limits=goal(deadline_seconds=220.0))
    decision = made.next_step(slow, Going(1))
    assert isinstance(decision, Resize)
    assert decision.workers == 4


def test_a_run_that_may_as_well_be_given_up_gets_no_workers_that_are_late() -> None:
    """Two workers would be the cheaper ones to go on with until it is given up."""
    job = Job(JOB.epoch_seconds, {64: 20.0, 128: 20.0, 256: 30.0})
    run = begun(job, Allocation(4, 64), 2)
    records = [vain(job, Allocation(4, 64), 4, "v"), run]
    made = planner(*records, job=job, limits=goal(deadline_seconds=150.0))
    assert made.next_step(run, Going(4)) == Continue()
