import itertools
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.digest import summed_up
from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.space import Allocation
from raycosttune.core.timings import Timings
from tests.core.drive import goal

CELL, OTHER = Allocation(1, 64), Allocation(2, 64)


def trial(cell: Allocation, *seconds: float, startup: float = 0.0) -> TrialRecord:
    """Returns a run whose epochs take so long, the first one with the start-up."""
    reports = [Report(1.0, 0.0, startup + seconds[0], startup)]
    reports += [Report(float(k), 0.0, s) for k, s in enumerate(seconds[1:], 2)]
    return TrialRecord("t", cell, {}, 0, reports)


def timed(*records: TrialRecord) -> Timings[int]:
    timings = Timings[int]()
    for record in records:
        timings.add(summed_up(record, goal()), lambda workers: workers)
    return timings


def close(seconds: Sequence[float]) -> object:
    """What is taken off goes in steps of a tenth."""
    return pytest.approx(tuple(seconds), rel=0.06)


def test_a_first_epoch_that_stands_alone_is_taken_as_it_is_where_none_tells_more() -> None:
    timings = timed(trial(CELL, 9.0, startup=2.0))
    assert timings.epochs == {1: (9.0,)}
    assert timings.starts == {("", 1): (2.0,)}
    assert not timings.is_sure


def test_it_loses_what_the_first_epochs_of_others_took_beyond_later_ones() -> None:
    lone, whole = trial(OTHER, 20.0, startup=2.0), trial(CELL, 8.0, 3.0, 3.0)
    for records in itertools.permutations((lone, whole)):
        timings = timed(*records)
        assert timings.epochs[1] == (3.0, 3.0)
        assert timings.epochs[2] == close([15.0])
        assert timings.starts["", 2] == close([7.0])
        assert timings.starts["", 1] == (5.0,)
        assert timings.is_sure


def test_it_tells_nothing_of_epochs_where_it_is_mostly_one_off_work() -> None:
    timings = timed(trial(OTHER, 5.5, startup=2.0), trial(CELL, 8.0, 3.0))
    assert timings.epochs.keys() == {1}
    assert timings.starts["", 2] == close([7.0])


def test_one_that_is_shorter_than_that_is_all_start_up() -> None:
    timings = timed(trial(OTHER, 1.0, startup=2.0), trial(CELL, 8.0, 3.0))
    assert timings.epochs.keys() == {1}
    assert timings.starts["", 2] == (3.0,)


def test_noise_in_first_epochs_changes_no_other() -> None:
    timings = timed(trial(OTHER, 5.0), trial(CELL, 3.2, 3.0), trial(CELL, 2.9, 3.0))
    assert timings.epochs[2] == (5.0,)


def test_a_report_before_the_first_epoch_is_no_epoch() -> None:
    record = TrialRecord("t", CELL, {}, 0, [Report(0.0, 0.0, 4.0, 1.0)])
    timings = timed(record)
    assert not timings.epochs
    assert timings.starts == {("", 1): (1.0,)}


def test_epochs_of_no_place_have_a_start_up() -> None:
    timings = Timings[int]()
    for record in (trial(CELL, 9.0), trial(CELL, 9.0, 3.0)):
        timings.add(summed_up(record, goal()), lambda _: None)
    assert not timings.epochs
    assert len(timings.starts["", 1]) == 2


def test_a_copy_grows_by_itself() -> None:
    first = timed(trial(OTHER, 20.0))
    second = first.copy()
    second.add(summed_up(trial(CELL, 8.0, 3.0), goal()), lambda workers: workers)
    assert first.epochs == {2: (20.0,)}
    assert second.epochs[2] == close([15.0])


def test_what_a_copy_learns_of_one_off_work_is_unknown_to_the_first() -> None:
    first = timed(trial(OTHER, 20.0))
    first.copy().add(summed_up(trial(CELL, 8.0, 3.0), goal()), lambda workers: workers)
    first.add(summed_up(trial(CELL, 9.0), goal()), lambda workers: workers)
    assert first.epochs == {1: (9.0,), 2: (20.0,)}


seconds = st.lists(st.floats(0.5, 50.0), min_size=1, max_size=3)
runs = st.lists(
    st.builds(lambda cell, s: trial(cell, *s), st.sampled_from([CELL, OTHER]), seconds),
    min_size=1,
    max_size=5,
)


@given(runs, st.randoms(use_true_random=False))
def test_the_order_in_which_trials_are_added_changes_nothing(
    records: list[TrialRecord], random: "object"
) -> None:
    shuffled = records.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = timed(*records), timed(*shuffled)
    assert one.epochs.keys() == other.epochs.keys()
    for where, found in one.epochs.items():
        assert sorted(found) == pytest.approx(sorted(other.epochs[where]))
    for start, found in one.starts.items():
        assert sorted(found) == pytest.approx(sorted(other.starts[start]))


ODD = st.sampled_from((math.nan, math.inf, -1.0, 0.0, 1e-320, 0.5, 1.0, 2.0, 3.0, 60.0, 1e15))
odd_reports = st.lists(
    st.builds(
        Report,
        ODD,
        st.just(0.0),
        ODD,
        ODD,
        st.integers(1, 3),
        workers=st.sampled_from((None, 1, 2)),
    ),
    max_size=6,
)


@given(st.lists(odd_reports, max_size=4))
def test_reports_of_anything_leave_times_that_can_be_reckoned_with(
    told: list[list[Report]],
) -> None:
    """No number, negative, next to nothing, backwards, and anew on other workers."""
    records = [TrialRecord("t", CELL, {}, 0) for _ in told]
    for record, reports in zip(records, told, strict=True):
        for report in reports:
            record.take(report)
    timings = timed(*records)
    epochs = [each for found in timings.epochs.values() for each in found]
    assert all(1e-30 < each < 1e30 for each in epochs)
    assert all(0 <= each < 1e16 for found in timings.starts.values() for each in found)


@given(runs)
def test_what_is_taken_off_an_epoch_is_added_to_its_start_up(records: list[TrialRecord]) -> None:
    timings = timed(*records)
    for where, found in timings.epochs.items():
        assert all(0 < each < math.inf for each in found)
        assert max(found) <= 50.0
        assert where in {1, 2}
    attempts = sum(len(found) for found in timings.starts.values())
    assert attempts == len(records)
