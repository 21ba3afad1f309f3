import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, TrialRecord
from raycosttune.core.planner import Planner
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.profiling import (
    MOST_CELLS,
    MOST_PROFILES,
    UNLIMITED,
    Left,
    choose_profile,
    first_profile,
    left_of,
    left_out,
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
    assert min(cells) in profile.cells
    assert set(profile.cells) <= set(cells)
    assert len(profile.cells) <= 3


def test_the_first_profile_needs_no_more_memory_than_half_of_all_cells() -> None:
    known = with_profiles()
    profile = first_profile(known)
    share = max(cell.local_batch for cell in profile.cells)
    assert share == 64
    assert sum(cell.local_batch >= share for cell in SPACE.cells) >= len(SPACE.cells) / 2
    lone = Space((1, 8), (512, 1024, 2048, 4096))
    small = Knowledge((), lone, goal(), known.cost)
    assert [cell.batch_size for cell in first_profile(small).cells] == [512]


@pytest.mark.parametrize("limit", ["cost", "seconds"])
def test_no_profile_outlasts_what_is_left_of_the_sweep(limit: str) -> None:
    known = with_profiles(profiled(JOB, FEWEST), planned_runs=1000)
    free = choose_profile(known, planner(known), math.inf)
    assert free is not None
    took = shown(JOB, free)
    whole = {"cost": took.seconds * free.held.workers / 3600, "seconds": took.seconds}[limit]
    for share, is_made in ((2.0, True), (0.05, False)):
        left = replace(UNLIMITED, **{limit: share * whole})
        made = choose_profile(known, planner(known), math.inf, left)
        assert (made is not None) is is_made


@pytest.mark.parametrize("limit", ["cost", "seconds"])
def test_guests_that_would_outlast_what_is_left_are_not_timed(limit: str) -> None:
    slow = Job(JOB.epoch_seconds, JOB.epochs, startup_seconds=60.0)
    reached = [slow.record(goal(), SPACE.cells[0], "t")]
    known = know(SPACE, slow, FEWEST[:2], reached, limits=goal(planned_runs=1000))
    whole = choose_profile(known, planner(known), math.inf)
    assert whole is not None
    hosts = [cell for cell in whole.cells if cell.workers == whole.held.workers]
    assert len(hosts) < len(whole.cells)
    seconds = shown(slow, Profile(tuple(hosts))).seconds * 1.02
    left = {"cost": seconds * whole.held.workers / 3600, "seconds": seconds}[limit]
    made = choose_profile(known, planner(known), math.inf, replace(UNLIMITED, **{limit: left}))
    assert made is not None
    took = shown(slow, made).seconds
    assert {"cost": took * made.held.workers / 3600, "seconds": took}[limit] <= left * 1.01


def test_what_is_left_is_what_was_not_spent() -> None:
    limits = goal(sweep_budget=5.0, sweep_deadline_seconds=100.0)
    assert left_of(limits, spent=2.0, elapsed_seconds=30.0) == Left(3.0, 70.0)
    assert left_of(goal(), spent=2.0, elapsed_seconds=30.0) == UNLIMITED


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


def test_a_cell_is_timed_again_only_where_much_hangs_on_it_once_the_epochs_are_known() -> None:
    """Epoch times that follow no law are known less well, and the cells are close rivals."""
    uneven = {c: 60.0 / c.workers * (0.99, 1.01)[k % 2] for k, c in enumerate(SPACE.cells)}
    job = Job(uneven, JOB.epochs)
    reached = [job.record(goal(), SPACE.cells[4], "r")]

    def asked(records: Sequence[TrialRecord], planned: int) -> Profile | None:
        limits = goal(planned_runs=planned)
        known = know(SPACE, job, SPACE.cells, records, limits=limits)
        return choose_profile(known, planner(known), math.inf)

    assert asked(reached, 2) is None
    assert asked((), 10**6) is None
    again = asked(reached, 10**6)
    assert again is not None
    assert set(again.cells) <= set(SPACE.cells)


def test_a_cell_without_a_rival_is_timed_once() -> None:
    lone = Space((1,), (64,))
    reached = [JOB.record(goal(), lone.cells[0], "r")]
    known = know(lone, JOB, lone.cells, reached, limits=goal(planned_runs=10**6))
    assert choose_profile(known, planner(known), math.inf) is None


def test_after_two_failures_none_is_made_and_what_was_measured_stays() -> None:
    good = profiled(JOB, FEWEST)
    one = with_profiles(good, failed("a"))
    two = with_profiles(good, failed("a"), failed("b"))
    assert choose_profile(one, planner(one), math.inf) is not None
    assert choose_profile(two, planner(two), math.inf) is None
    assert all(two.time.is_measured(cell) for cell in FEWEST)
    starts = [known.startup.predict(FEWEST[0]) for known in (two, one, with_profiles(good))]
    assert starts == [starts[0]] * 3
    assert choose_profile(with_profiles(failed("a")), None, math.inf) is not None
    assert choose_profile(with_profiles(failed("a"), failed("b")), None, math.inf) is None


def test_a_cell_that_a_profile_left_out_is_not_asked_for_again() -> None:
    known = with_profiles(profiled(JOB, FEWEST))
    asked = choose_profile(known, planner(known), math.inf)
    assert asked is not None
    partial = ProfileRecord("a", asked)
    partial.show(shown(JOB, asked, left_out=asked.cells[:1]))
    after = with_profiles(profiled(JOB, FEWEST), partial)
    assert left_out(after.profiles) == set(asked.cells[:1])
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


@pytest.mark.parametrize("is_reached", [False, True])
def test_more_planned_runs_never_make_fewer_profiles(*, is_reached: bool) -> None:
    counts = []
    records = [JOB.record(goal(), FEWEST[0], "t")] if is_reached else []
    for planned in (1, 10, 1000):
        made = [profiled(JOB, FEWEST)]
        while True:
            limits, cost = goal(planned_runs=planned), know(SPACE, JOB, FEWEST).cost
            known = Knowledge(records, SPACE, limits, cost, profiles=tuple(made))
            chooser = planner(known)
            assert chooser is not None
            profile = next_profile(known, chooser.outlook("{}"))
            if profile is None:
                break
            made.append(profiled(JOB, profile.cells, f"p{len(made)}"))
        counts.append(len(made))
    assert counts == sorted(counts)
    assert (counts[0] == counts[-1]) is not is_reached


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
    slow = Job(JOB.epoch_seconds, JOB.epochs, startup_seconds=20.0)
    reached = [slow.record(goal(), SPACE.cells[0], "t")]
    known = know(SPACE, slow, FEWEST[:2], reached, limits=goal(planned_runs=1000))
    profile = choose_profile(known, planner(known), math.inf)
    assert profile is not None
    assert {2, 4} <= {cell.workers for cell in profile.cells}
