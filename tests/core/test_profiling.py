import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended
from raycosttune.core.planner import Planner
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.profiling import (
    MOST_CELLS,
    MOST_PROFILES,
    choose_profile,
    first_profile,
    next_profile,
)
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, amdahl, goal, spaces_and_jobs
from tests.core.told import know, profiled, shown, vain

SPACE = Space((1, 2, 4), (64, 128, 256))
JOB = amdahl(SPACE)
FEWEST = [cell for cell in SPACE.cells if cell.workers == 1]
FAILED = Ended(EndCause.FAILED, seconds=30.0)
SMALL = settings(max_examples=25)


def with_profiles(*profiles: ProfileRecord, planned_runs: int = 10) -> Knowledge:
    known = know(SPACE, JOB, FEWEST)
    limits = goal(planned_runs=planned_runs)
    return Knowledge((), SPACE, limits, known.cost, profiles=profiles)


def planner(known: Knowledge) -> Planner | None:
    if known.time.is_empty:
        return None
    return Planner(known, recipes=False, can_resize=True)


def failed(name: str, cells: tuple[Allocation, ...] = (FEWEST[0],)) -> ProfileRecord:
    record = ProfileRecord(name, Profile(cells))
    record.take(FAILED)
    return record


@SMALL
@given(spaces_and_jobs())
def test_the_first_profile_holds_the_fewest_workers(table: tuple[Space, Job]) -> None:
    space, _ = table
    known = Knowledge((), space, goal(), know(SPACE, JOB, FEWEST).cost)
    profile = first_profile(known)
    cells = [cell for cell in space.cells if cell.workers == space.workers[0]]
    assert set(profile.cells) <= set(cells)
    assert {min(cells), max(cells)} <= set(profile.cells)
    assert len(profile.cells) == min(len(cells), 3)


@SMALL
@given(spaces_and_jobs(), st.sampled_from((1, 10, 1000)), st.booleans())
def test_profiles_are_of_unmeasured_cells_of_the_space_and_end(
    table: tuple[Space, Job], planned: int, has_deadline: bool
) -> None:
    space, job = table
    limit = min(job.seconds(cell) for cell in space.cells) * 1.2 if has_deadline else None
    limits = goal(planned_runs=planned, deadline_seconds=limit)
    made: list[ProfileRecord] = []
    for k in range(MOST_PROFILES + 5):
        known = Knowledge((), space, limits, know(SPACE, JOB, FEWEST).cost, profiles=tuple(made))
        profile = choose_profile(known, planner(known), math.inf)
        if profile is None:
            break
        assert set(profile.cells) <= set(space.cells)
        assert len(set(profile.cells)) == len(profile.cells)
        assert not any(known.time.is_measured(cell) for cell in profile.cells)
        assert len(profile.cells) <= MOST_CELLS
        made.append(profiled(job, profile.cells, f"p{k}"))
    assert 1 <= len(made) <= MOST_PROFILES


def test_after_two_failures_none_is_made_and_what_was_measured_stays() -> None:
    good = profiled(JOB, FEWEST)
    one = with_profiles(good, failed("a"))
    two = with_profiles(good, failed("a"), failed("b"))
    assert choose_profile(one, planner(one), math.inf) is not None
    assert choose_profile(two, planner(two), math.inf) is None
    assert all(two.time.is_measured(cell) for cell in FEWEST)
    assert (
        two.startup.predict(1) == one.startup.predict(1) == with_profiles(good).startup.predict(1)
    )
    assert choose_profile(with_profiles(failed("a")), None, math.inf) is not None
    assert choose_profile(with_profiles(failed("a"), failed("b")), None, math.inf) is None


def test_a_cell_that_a_profile_left_out_is_not_asked_for_again() -> None:
    known = with_profiles(profiled(JOB, FEWEST))
    asked = choose_profile(known, planner(known), math.inf)
    assert asked is not None
    partial = ProfileRecord("a", asked)
    partial.show(shown(JOB, asked, left_out=asked.cells[:1]))
    after = with_profiles(profiled(JOB, FEWEST), partial)
    assert after.unprofiled == set(asked.cells[:1])
    then = choose_profile(after, planner(after), math.inf)
    assert then is None or asked.cells[0] not in then.cells


@pytest.mark.parametrize("free", [0, 1, 2])
def test_no_profile_holds_more_workers_than_are_free(free: int) -> None:
    empty, known = with_profiles(), with_profiles(profiled(JOB, FEWEST))
    first = choose_profile(empty, None, free)
    assert (first is None) is (free < 1)
    then = choose_profile(known, planner(known), free)
    assert then is None or then.held.workers <= free
    assert (then is None) is (free < 2)


def test_none_is_made_where_no_run_is_planned_or_no_cell_is_left() -> None:
    cell = SPACE.cells[0]
    delivered = know(
        SPACE, JOB, FEWEST, [JOB.record(goal(), cell, "t")], limits=goal(planned_runs=1)
    )
    assert delivered.remaining_runs == 0
    assert choose_profile(delivered, planner(delivered), math.inf) is None
    lone = Space((1,), (64,))
    out = vain(JOB, cell, 1)
    out.ended = Ended(EndCause.OUT_OF_MEMORY)
    assert choose_profile(know(lone, JOB, FEWEST[:1], [out]), None, math.inf) is None


def test_times_without_a_profile_have_no_price_and_make_none() -> None:
    known = Knowledge([vain(JOB, SPACE.cells[0], 3)], SPACE, goal(), know(SPACE, JOB, FEWEST).cost)
    assert known.samples_per_epoch is None
    assert choose_profile(known, planner(known), math.inf) is None


def test_more_planned_runs_never_make_fewer_profiles() -> None:
    counts = []
    for planned in (1, 10, 1000):
        made = [profiled(JOB, FEWEST)]
        while True:
            known = with_profiles(*made, planned_runs=planned)
            chooser = planner(known)
            assert chooser is not None
            profile = next_profile(known, chooser.outlook("{}"))
            if profile is None:
                break
            made.append(profiled(JOB, profile.cells, f"p{len(made)}"))
        counts.append(len(made))
    assert counts == sorted(counts)


def test_with_a_success_the_recipe_that_reached_it_is_what_counts() -> None:
    records = [JOB.record(goal(), SPACE.cells[0], "t")]
    known = know(SPACE, JOB, FEWEST, records, limits=goal(planned_runs=1000))
    profile = choose_profile(known, planner(known), math.inf)
    assert profile is not None
    assert profile.why.startswith("is expected to save")


def test_a_start_that_costs_more_than_it_may_save_is_not_made() -> None:
    slow = Job(JOB.epoch_seconds, JOB.epochs, startup_seconds=600.0)
    for job, pays in ((JOB, True), (slow, False)):
        known = with_profiles(profiled(job, FEWEST), planned_runs=1)
        assert (choose_profile(known, planner(known), math.inf) is not None) is pays


def test_a_start_that_is_dear_times_cells_of_fewer_workers_too() -> None:
    slow = Job(JOB.epoch_seconds, JOB.epochs, startup_seconds=600.0)
    fastest = min(slow.seconds(cell) for cell in SPACE.cells)
    limits = goal(planned_runs=1000, deadline_seconds=1.3 * fastest)
    measured = profiled(slow, FEWEST[:2])
    known = Knowledge((), SPACE, limits, know(SPACE, JOB, FEWEST).cost, profiles=(measured,))
    profile = choose_profile(known, planner(known), math.inf)
    assert profile is not None
    assert {2, 4} <= {cell.workers for cell in profile.cells}
