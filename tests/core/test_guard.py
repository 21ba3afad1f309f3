import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.decision import Resize, Stop, StopCause
from raycosttune.core.going import Going
from raycosttune.core.guard import GAIN, HOPELESS, SAFE, Chances, chances, guarded, hopeless
from raycosttune.core.outlook import Outlook
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, goal
from tests.core.told import begun, know

SPACE = Space((1, 2, 4), (64,))
JOB = Job({cell: 60.0 / cell.workers for cell in SPACE.cells}, {64: 10.0}, 15.0)
ONE = Allocation(1, 64)


def seen(
    *in_time: float, costs: tuple[float, ...] = (1.0, 2.0, 3.0), later: float = 0.0
) -> Chances:
    return Chances((1, 2, 4), np.array(in_time), np.full(3, later), np.array(costs))


def outlook(*, deadline: float = 1000.0) -> Outlook:
    limits = goal(deadline_seconds=deadline)
    run = begun(JOB, ONE, 2)
    return Outlook(know(SPACE, JOB, SPACE.cells, [run], limits=limits), "{}", can_resize=True)


def test_more_time_and_fewer_epochs_ahead_are_better_chances() -> None:
    found = outlook()
    by_time = [chances(found, 64, epoch=2.0, seconds_left=s).in_time for s in (60, 300, 3000)]
    assert (np.diff(by_time, axis=0) >= 0).all()
    assert by_time[0].max() < by_time[2].min()


def test_faster_workers_are_the_better_chance_but_for_the_restart() -> None:
    found = outlook()
    goes = Going(1)
    one, two, four = chances(found, 64, epoch=2.0, seconds_left=400.0, going=goes).in_time
    assert one < two < four
    found.startups[:] = 390.0
    one, two, four = chances(found, 64, epoch=2.0, seconds_left=400.0, going=goes).in_time
    assert max(two, four) < 0.01 * one


def test_work_that_is_not_saved_counts_against_a_change() -> None:
    found = outlook()
    saved, lost = (
        chances(found, 64, epoch=2.0, seconds_left=400.0, going=Going(1, lost_epochs=epochs))
        for epochs in (0.0, 2.0)
    )
    assert saved.in_time[0] == lost.in_time[0]
    assert (lost.in_time[1:] < saved.in_time[1:]).all()
    assert (lost.costs[1:] > saved.costs[1:]).all()


def test_only_workers_that_a_run_may_have_are_weighed() -> None:
    goes = Going(1, most=2)
    assert chances(outlook(), 64, seconds_left=400.0, going=goes).workers == (1, 2)
    goes = Going(2, can_resize=False)
    assert chances(outlook(), 64, seconds_left=400.0, going=goes).workers == (2,)


def test_a_safe_run_is_left_alone() -> None:
    assert guarded(seen(SAFE, 1.0, 1.0), Going(1)) is None


def test_the_cheapest_workers_that_make_the_deadline_safe_are_taken() -> None:
    decision = guarded(seen(0.3, 0.95, 0.99), Going(1))
    assert isinstance(decision, Resize)
    assert decision.workers == 2
    assert decision.why == "2 workers meet the deadline with an estimated chance of 95%, 1 with 30%"
    cheap = guarded(seen(0.3, 0.95, 0.99, costs=(1.0, 3.0, 2.0)), Going(1))
    assert isinstance(cheap, Resize)
    assert cheap.workers == 4


def test_a_change_waits_as_long_as_it_would_still_be_safe_at_the_next_report() -> None:
    assert guarded(seen(0.3, 0.95, 0.99, later=SAFE), Going(1)) is None
    assert guarded(seen(0.3, 0.95, 0.99, later=SAFE - 0.01), Going(1)) is not None


def test_a_later_change_is_no_better_than_one_at_once() -> None:
    for seconds in (200.0, 300.0, 400.0, 500.0):
        found = chances(outlook(), 64, epoch=2.0, seconds_left=seconds, going=Going(1))
        assert (found.later[1:] <= found.in_time[1:] + 1e-9).all()
        assert found.later[0] == pytest.approx(found.in_time[0])


def test_where_none_is_safe_the_likeliest_are_taken() -> None:
    decision = guarded(seen(0.2, 0.3, 0.5), Going(1))
    assert isinstance(decision, Resize)
    assert decision.workers == 4


def test_a_run_is_hopeless_only_where_no_workers_have_a_chance() -> None:
    assert hopeless(seen(0.0, 0.0, HOPELESS)) is None
    assert hopeless(seen(0.0, 0.0, HOPELESS / 2)) is not None


def test_a_run_without_a_chance_is_stopped() -> None:
    decision = guarded(seen(0.0, 0.0, HOPELESS / 2), Going(1))
    assert isinstance(decision, Stop)
    assert decision.cause is StopCause.DEADLINE
    assert "an estimated chance of 1.0%" in decision.why


def test_a_run_at_risk_that_nothing_helps_runs_on() -> None:
    assert guarded(seen(0.5, 0.4, 0.3), Going(1)) is None


@given(now=st.floats(0.1, 0.8), gain=st.floats(0, 1), changes=st.integers(0, 3))
def test_each_change_must_gain_more_than_the_one_before(
    now: float, gain: float, changes: int
) -> None:
    then = min(now + gain, 1.0)
    decision = guarded(seen(now, 0.0, then), Going(1, changes=changes))
    assert (decision is not None) is (then - now >= GAIN * (1 + changes) and then > now)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_chances_are_chances(workers: int) -> None:
    found = chances(outlook(), 64, epoch=2.0, seconds_left=300.0, going=Going(workers))
    assert ((found.in_time >= 0) & (found.in_time <= 1)).all()
    assert (found.costs > 0).all()
