import pytest

from raycosttune.core.digest import summed_up
from raycosttune.core.epochs import Seen
from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.runs import Runs
from raycosttune.core.space import Allocation
from tests.core.drive import goal

CELL = Allocation(2, 64)


def added(*told: tuple[str, int, int, float, bool]) -> Runs:
    """Adds runs up: name, turn, epochs, seconds of each, whether the target was reached."""
    runs = Runs(Seen(64))
    for name, turn, epochs, seconds, is_reached in told:
        reports = [Report(float(k), 0.0, seconds) for k in range(1, epochs + 1)]
        if is_reached:
            reports[-1] = Report(float(epochs), 1.0, seconds)
        digest = summed_up(TrialRecord(name, CELL, {}, 0, reports), goal())
        assert digest.epochs is not None
        runs = runs.plus(digest, digest.epochs, turn, limit=50.0)
    return runs


@pytest.mark.parametrize("is_turned", [False, True])
def test_of_the_longest_runs_in_vain_the_first_counts_in_whatever_order_they_end(
    is_turned: bool,
) -> None:
    told = [("short", 0, 2, 1.0, False), ("first", 1, 5, 1.0, False), ("later", 2, 5, 1.0, False)]
    runs = added(*(reversed(told) if is_turned else told))
    assert runs.longest is not None
    assert runs.longest.record.trial_id == "first"
    assert runs.hits is None


@pytest.mark.parametrize("is_turned", [False, True])
def test_successes_are_averaged_and_the_first_and_last_are_told_by_their_turn(
    is_turned: bool,
) -> None:
    told = [("late", 0, 8, 10.0, True), ("a", 1, 4, 10.0, True), ("b", 2, 2, 10.0, True)]
    hits = added(*(reversed(told) if is_turned else told)).hits
    assert hits is not None
    assert hits.mid == pytest.approx(4.0)
    assert (hits.low, hits.high, hits.most) == (1.0, 8.0, 8.0)
    assert (hits.first, hits.last, hits.latest.record.trial_id) == (0, 2, "b")
    assert (hits.seconds, hits.own) == (20.0, {CELL: 20.0})
    assert hits.in_time[CELL][1].record.trial_id == "a"


def test_the_curve_of_a_batch_is_that_of_the_run_that_came_nearest_and_ends_at_the_target() -> None:
    vain = added(("short", 0, 2, 1.0, False), ("long", 1, 3, 1.0, False))
    assert vain.curve == ((1.0, 1.0), (2.0, 1.0), (3.0, 1.0))
    reached = added(("long", 0, 5, 1.0, False), ("hit", 1, 3, 1.0, True))
    assert reached.curve == ((1.0, 1.0), (2.0, 1.0), (3.0, 0.0))
    assert reached.progress < vain.progress
    assert Runs(Seen(64)).curve == ()
