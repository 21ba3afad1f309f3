from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.observation import Report, TrialRecord
from raycosttune.core.space import Allocation
from raycosttune.train import keys
from raycosttune.tune.result import ResultReader


def make_record(*epochs: float) -> TrialRecord:
    record = TrialRecord("a", Allocation(1, 32), {}, 0)
    record.reports.extend(Report(epoch, 0.5, 1.0) for epoch in epochs)
    return record


def result(iteration: int, **values: Any) -> dict[str, Any]:
    return {"training_iteration": iteration, "time_this_iter_s": 2.0, "loss": 0.5, **values}


def test_the_same_result_is_read_once() -> None:
    reader, record = ResultReader(), make_record()
    reader.begin(record, 0.0)
    assert not reader.is_repeated(record, result(1))
    reader.read("a", result(1), "loss", None, 3.0)
    assert reader.is_repeated(record, result(1))
    assert reader.is_repeated(record, result(1, done=True))
    assert not reader.is_repeated(record, result(2))


def test_a_start_that_reports_nothing_repeats_the_one_before_at_its_end() -> None:
    reader, record = ResultReader(), make_record(1.0, 2.0)
    reader.begin(record, 0.0)
    assert reader.is_repeated(record, result(2, epoch=2, done=True))
    assert not reader.is_repeated(record, result(2, epoch=2))
    assert not reader.is_repeated(record, result(1, epoch=3, done=True))


def test_an_unannounced_restart_shows_in_the_iterations() -> None:
    reader = ResultReader()
    reader.begin(make_record(), 0.0)
    attempts = [reader.read("a", result(i), "loss", None, 0.0).attempt for i in (1, 2, 1, 2)]
    assert attempts == [1, 1, 2, 2]


def test_time_that_no_report_covered_is_paid_by_the_next_one() -> None:
    reader, record = ResultReader(), make_record()
    reader.begin(record, 10.0)
    reader.read("a", result(1), "loss", None, 12.0)
    record.reports.append(Report(1.0, 0.5, 2.0))
    reader.pause("a", 15.0)
    reader.begin(record, 100.0)
    report = reader.read("a", result(1), "loss", None, 104.0)
    assert (report.attempt, report.seconds) == (2, 3.0 + 4.0)
    assert reader.unpaid_seconds("a", 105.0) == 1.0
    reader.forget("a")
    assert reader.unpaid_seconds("a", 105.0) == 0.0


def test_a_metered_run_brings_its_own_seconds_and_attempt() -> None:
    reader = ResultReader()
    reader.begin(make_record(), 0.0)
    metered = {
        keys.SECONDS: 9.0,
        keys.STARTUP_SECONDS: 7.0,
        keys.ATTEMPT: 3,
        keys.INDEX: 2,
        keys.CHECKPOINT: "/c",
    }
    assert reader.missed("a", result(1, **metered))
    report = reader.read("a", result(1, epoch=4, **metered), "loss", "/other", 0.0)
    assert report == Report(4.0, 0.5, 9.0, 7.0, 3, "/c")
    assert not reader.missed("a", result(2, **{**metered, keys.INDEX: 3}))


def test_a_negative_time_costs_nothing() -> None:
    reader = ResultReader()
    reader.begin(make_record(), 0.0)
    assert reader.read("a", result(1, time_this_iter_s=-1.0), "loss", None, 0.0).seconds == 0


def test_a_start_is_charged_from_the_request_for_its_workers() -> None:
    reader = ResultReader()
    reader.begin(make_record(), 10.0)
    first = reader.read("a", result(1), "loss", None, 15.0)
    assert (first.seconds, first.startup_seconds) == (5.0, 3.0)
    second = reader.read("a", result(2), "loss", None, 19.0)
    assert (second.seconds, second.startup_seconds) == (2.0, 0.0)


@given(now=st.floats(10, 1e4), age=st.none() | st.floats(-1e5, 1e5))
def test_a_start_is_paid_from_its_request_or_else_from_when_tune_was_given_it(
    now: float, age: float | None
) -> None:
    reader = ResultReader({"a": age}.get)
    reader.begin(make_record(), 10.0)
    is_of_start = age is not None and 0 <= age <= now - 10.0
    expected = pytest.approx(age if is_of_start else now - 10.0, abs=1e-9)
    assert reader.unpaid_seconds("a", now) == expected
    reader.pause("a", now)
    assert reader.unpaid_seconds("a", now + 50.0) == expected


def test_a_request_is_of_one_start_and_no_longer_read_after_a_report() -> None:
    ages = [2.0, 1e9, 1e9]
    reader = ResultReader(lambda _: ages.pop(0))
    reader.begin(make_record(), 10.0)
    assert reader.unpaid_seconds("a", 15.0) == 2.0
    assert reader.unpaid_seconds("a", 16.0) == 3.0
    reader.pause("a", 17.0)
    reader.begin(make_record(), 20.0)  # the file has the earlier start's request alone
    assert reader.unpaid_seconds("a", 21.0) == 4.0 + 1.0
    reader.read("a", result(1, **{keys.SECONDS: 1.0, keys.ATTEMPT: 2}), "loss", None, 22.0)
    assert reader.unpaid_seconds("a", 24.0) == 2.0
    assert ages == [1e9]


def test_a_wait_for_workers_that_others_hold_is_free() -> None:
    reader = ResultReader()
    reader.wait("unknown", 1.0)
    reader.begin(make_record(), 10.0)
    reader.wait("a", 100.0)
    assert reader.read("a", result(1), "loss", None, 103.0).seconds == 3.0
    reader.wait("a", 200.0)
    assert reader.unpaid_seconds("a", 201.0) == 98.0


def test_the_time_of_a_metered_run_is_its_own_alone() -> None:
    reader = ResultReader()
    reader.begin(make_record(), 10.0)
    metered = {keys.SECONDS: 1.0, keys.ATTEMPT: 1, keys.INDEX: 1}
    assert reader.read("a", result(1, **metered), "loss", None, 99.0).seconds == 1.0


@pytest.mark.parametrize("own", [[0, 0, 0], [0, 1, 2], [1, 1, 2], [100, 200, 300], [None] * 3])
def test_no_result_is_lost_to_an_iteration_that_the_loop_reports_itself(own: list[int]) -> None:
    reader, record = ResultReader(), make_record()
    reader.begin(record, 0.0)
    for number, iteration in enumerate(own, 1):
        told = result(iteration, iterations_since_restore=number)
        assert not reader.is_repeated(record, told)
        report = reader.read("a", told, "loss", None, 0.0)
        assert (report.epoch, report.attempt) == (number, 1)
        assert reader.is_repeated(record, told)


def test_iterations_go_on_where_tune_counts_on_after_a_restart() -> None:
    reader = ResultReader()
    reader.begin(make_record(1.0, 2.0), 0.0)
    told = [result(3 + k, iterations_since_restore=1 + k) for k in range(2)]
    assert [reader.read("a", row, "loss", None, 0.0).epoch for row in told] == [3.0, 4.0]
    again = result(3, iterations_since_restore=1)
    report = reader.read("a", again, "loss", None, 0.0)
    assert (report.epoch, report.attempt) == (3.0, 3)


def test_a_time_that_the_loop_reports_itself_is_not_believed() -> None:
    reader = ResultReader()
    reader.begin(make_record(), 0.0)
    told = result(1, time_this_iter_s=1e6, **{keys.ITERATION_SECONDS: 2.0})
    assert reader.read("a", told, "loss", None, 3.0).seconds == 3.0
