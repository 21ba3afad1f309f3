import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from raycosttune.core.cost import NodeHours, WorkerHours
from raycosttune.core.held import (
    paid,
    paid_for,
    parts,
    present,
    resized,
    resizes,
    was_resized,
)
from raycosttune.core.observation import EndCause, Ended, Report, Resized, TrialRecord
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.space import Allocation, Space

SPACE = Space((1, 2, 4), (64,), workers_per_node=2)
CELL = Allocation(1, 64)
COUNTS = st.none() | st.sampled_from((1, 2, 4))


def trial(*held: tuple[int | None, float], end: float | None = None) -> TrialRecord:
    reports = [
        Report(float(k), 0.0, seconds, attempt=k, workers=workers)
        for k, (workers, seconds) in enumerate(held, 1)
    ]
    ended = None if end is None else Ended(EndCause.STOPPED, seconds=end)
    return TrialRecord("t", CELL, {}, 0, reports, ended)


def test_what_a_resized_trial_cost_by_hand() -> None:
    record = trial((None, 3600.0), (1, 1800.0), (4, 3600.0), (4, 900.0), (2, 7200.0), end=3600.0)
    assert paid(record, SPACE, WorkerHours()) == pytest.approx(1.5 + 4 * 1.25 + 2 * 3)
    assert paid(record, SPACE, NodeHours()) == pytest.approx(1.5 + 2 * 1.25 + 3)
    assert list(parts(record, SPACE)) == [
        (CELL, 5400.0),
        (Allocation(4, 64, 2), 4500.0),
        (Allocation(2, 64, 1), 10800.0),
    ]


def test_a_trial_that_moves_before_it_cost_anything_has_one_part() -> None:
    assert list(parts(trial((2, 10.0)), SPACE)) == [(Allocation(2, 64), 10.0)]


@example([(2, 1.0), (1, 0.0), (2, 0.0)], None)
@given(st.lists(st.tuples(COUNTS, st.floats(0, 1e5)), max_size=6), st.none() | st.floats(0, 1e4))
def test_the_parts_add_up_to_the_seconds(
    held: list[tuple[int | None, float]], end: float | None
) -> None:
    record = trial(*held, end=end)
    found = list(parts(record, SPACE))
    assert sum(seconds for _, seconds in found) == pytest.approx(record.seconds)
    assert all(a != b for (a, _), (b, _) in itertools.pairwise(found))
    if not was_resized(record):
        assert [cell for cell, _ in found] == [CELL]


def test_a_trial_holds_what_its_last_report_was_made_on() -> None:
    assert present(trial(), SPACE) == CELL
    assert present(trial((4, 1.0), (None, 1.0)), SPACE) == CELL
    assert present(trial((None, 1.0), (4, 1.0)), SPACE) == Allocation(4, 64, 2)


def test_only_other_workers_are_a_resize() -> None:
    assert not was_resized(trial((None, 1.0), (1, 1.0)))
    assert was_resized(trial((None, 1.0), (2, 1.0), (1, 1.0)))


def test_a_cell_of_another_cluster_stays_as_it_was() -> None:
    foreign = Allocation(4, 64, 4)
    assert resized(SPACE, foreign, 4) == foreign
    assert resized(SPACE, foreign, 2) == Allocation(2, 64, 1)


def test_a_profile_pays_for_all_its_workers() -> None:
    record = ProfileRecord("p", Profile((CELL, Allocation(4, 64, 2))))
    assert paid_for(record, WorkerHours()) == 0
    record.show(Profiled({CELL: 1.0}, 3600.0, 10.0))
    assert paid_for(record, WorkerHours()) == pytest.approx(4)
    assert paid_for(record, NodeHours()) == pytest.approx(2)


def test_workers_are_promised_before_they_report() -> None:
    record = trial((1, 3600.0))
    record.resized = Resized(4, 1)
    assert present(record, SPACE) == Allocation(4, 64, 2)
    assert resizes(record, SPACE) == 0
    record.ended = Ended(EndCause.STOPPED, seconds=1800.0)
    assert paid(record, SPACE, WorkerHours()) == pytest.approx(1 + 2)


def test_a_late_report_of_the_start_before_changes_no_promise() -> None:
    record = trial((1, 1.0))
    record.resized = Resized(4, 1)
    record.reports.append(Report(2.0, 0.0, 1.0, attempt=1, workers=1))
    assert present(record, SPACE).workers == 4
    record.reports.append(Report(3.0, 0.0, 1.0, attempt=2, workers=2))
    assert present(record, SPACE).workers == 2
    assert resizes(record, SPACE) == 1
    record.reports.append(Report(4.0, 0.0, 1.0, attempt=2))
    assert present(record, SPACE).workers == 4


def test_time_since_the_last_report_is_paid_on_the_present_workers() -> None:
    record = trial((1, 3600.0), (4, 3600.0))
    assert paid(record, SPACE, WorkerHours(), unheard=1800.0) == pytest.approx(1 + 4 + 2)
