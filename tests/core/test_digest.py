import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.digest import Digests, summed_up
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.space import Allocation, Space
from raycosttune.core.timed import timed
from tests.core.drive import Job, goal, spaces_and_jobs

CELL = Allocation(1, 64)
NOISY = ((0, 0.9, 10.0), (1, 0.5, None), (2, None, 40.0), (3, 0.1, -5.0))
SMALL = settings(max_examples=40)


def trial(*reports: Report) -> TrialRecord:
    return TrialRecord("t", CELL, {}, 0, list(reports))


@SMALL
@given(table=spaces_and_jobs(), epochs=st.integers(1, 5))
def test_an_even_run_has_no_one_off_work(table: tuple[Space, Job], epochs: int) -> None:
    space, job = table
    record = job.record(goal(), space.cells[0], "t", epochs=epochs)
    # Whether a report's seconds less its start-up give back the epoch's is up to rounding.
    slack = 1e-9 * job.epoch_seconds[space.cells[0]]
    workers = record.allocation.workers
    _, found = timed(record)
    assert list(found) == [workers]
    assert found[workers] == pytest.approx((job.startup_seconds,), abs=slack)


def test_what_the_first_epoch_takes_beyond_the_others_is_start_up() -> None:
    slow = trial(Report(1.0, 0.1, 9.0, 2.0), Report(2.0, 0.2, 3.0), Report(3.0, 0.3, 4.0))
    assert timed(slow)[1] == {1: (5.0,)}


def test_a_lone_epoch_is_taken_as_it_is() -> None:
    assert timed(trial(Report(1.0, 0.1, 9.0, 2.0)))[1] == {1: (2.0,)}


def test_each_attempt_has_its_own_one_off_work() -> None:
    restarted = trial(
        Report(1.0, 0.1, 9.0),
        Report(2.0, 0.2, 3.0),
        Report(3.0, 0.3, 10.0, 1.0, attempt=2),
        Report(4.0, 0.4, 4.0, attempt=2),
    )
    assert timed(restarted)[1] == {1: (5.0, 6.0)}


def test_a_resized_trial_is_timed_on_each_number_of_workers() -> None:
    record = trial(
        Report(1.0, 0.1, 12.0, 2.0),
        Report(2.0, 0.2, 8.0),
        Report(3.0, 0.3, 7.0, 3.0, attempt=2, workers=4),
        Report(4.0, 0.4, 3.0, attempt=2, workers=4),
    )
    assert timed(record)[0] == {1: (8.0,), 4: (3.0,)}
    assert timed(record)[1] == {1: (4.0,), 4: (4.0,)}


def test_gaps_and_scales_are_read_in_the_direction_of_the_goal() -> None:
    limits = Goal(target=0.2, metric="loss", mode="min")
    reports = [Report(float(k), v, 1.0, noise_scale=s) for k, v, s in NOISY]
    digest = summed_up(trial(*reports), limits)
    assert [epoch for epoch, _ in digest.gaps] == [1.0, 3.0]
    assert [gap for _, gap in digest.gaps] == pytest.approx([0.3, 0.0])
    assert digest.scales == ((2.0, 40.0),)


def test_a_trial_is_read_again_only_where_it_went_on() -> None:
    limits: Goal = goal()
    digests = Digests(limits)
    record = trial(Report(1.0, 0.1, 9.0))
    first = digests(record)
    assert digests(record) is first
    record.reports.append(Report(2.0, limits.target, 3.0))
    second = digests(record)
    assert second is not first
    assert second == summed_up(record, limits)
    assert second.reached is not None
    record.ended = Ended(EndCause.STOPPED)
    assert digests(record) is second
    assert second == summed_up(record, limits)


def test_another_trial_of_the_same_name_is_read_anew() -> None:
    digests = Digests(goal())
    before = digests(trial(Report(1.0, 0.1, 9.0)))
    assert digests(trial(Report(1.0, 0.1, 7.0))).seconds_to_target == 7.0
    assert before.epochs is not None
    assert before.epochs.high == math.inf
