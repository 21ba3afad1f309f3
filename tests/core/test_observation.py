import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.observation import EndCause, Ended, Report, Resized, TrialRecord
from raycosttune.core.space import Allocation
from raycosttune.core.value import LEAST_AMOUNT

ANY = st.floats(allow_nan=True, allow_infinity=True)
NUMBERS = st.floats(-1e6, 1e6)
AMOUNTS = st.just(0.0) | st.floats(LEAST_AMOUNT, 1e6)


def record(*reports: Report, ended: Ended | None = None) -> TrialRecord:
    return TrialRecord("t", Allocation(2, 64), {}, 0, list(reports), ended)


def attempt(number: int, first: int, last: int) -> list[Report]:
    return [Report(float(k), 0.0, 10.0, attempt=number) for k in range(first, last + 1)]


@given(epoch=ANY, value=st.none() | ANY, seconds=ANY, startup=ANY)
def test_a_cleaned_report_holds_numbers_alone(
    epoch: float, value: float | None, seconds: float, startup: float
) -> None:
    report = Report(epoch, value, seconds, startup).cleaned()
    assert report.value is None or math.isfinite(report.value)
    assert 0 <= report.startup_seconds < math.inf
    assert 0 <= report.training_seconds <= report.seconds < math.inf
    assert 0 <= report.epoch < math.inf


@given(epoch=AMOUNTS, value=st.none() | NUMBERS, seconds=AMOUNTS, startup=AMOUNTS)
def test_cleaning_leaves_a_clean_report_as_it_is(
    epoch: float, value: float | None, seconds: float, startup: float
) -> None:
    report = Report(epoch, value, seconds, startup, attempt=2, checkpoint="/c")
    assert report.cleaned() == report


@given(st.lists(st.floats(0, 1e6), max_size=5), st.none() | st.floats(0, 1e6))
def test_every_second_is_paid_once(times: list[float], last: float | None) -> None:
    ended = None if last is None else Ended(EndCause.STOPPED, seconds=last)
    trial = record(*(Report(k + 1.0, None, s) for k, s in enumerate(times)), ended=ended)
    assert trial.seconds == pytest.approx(sum(times) + (last or 0.0))
    assert trial.is_live is (last is None)


@given(first=st.integers(1, 6), second=st.integers(1, 6), resumed=st.integers(1, 7))
def test_a_run_goes_on_across_a_restart_that_resumed_and_anew_after_one_that_did_not(
    first: int, second: int, resumed: int
) -> None:
    before, after = attempt(1, 1, first), attempt(2, resumed, resumed + second)
    trial = record(*before, *after)
    run = after if resumed == 1 else before + after
    assert trial.run == run
    assert trial.run_seconds == 10.0 * len(run)
    assert trial.seconds == 10.0 * (len(before) + len(after))
    assert trial.epoch == resumed + second


def test_only_the_last_of_several_fresh_starts_is_the_run() -> None:
    last = attempt(3, 1, 2)
    assert record(*attempt(1, 1, 3), *attempt(2, 1, 2), *last).run == last


def test_a_trial_without_a_report_is_at_epoch_0() -> None:
    assert (record().epoch, record().run, record().run_seconds) == (0.0, [], 0.0)


@pytest.mark.parametrize("much", [1e308, 1e300, 10**400])
def test_an_amount_that_nobody_trains_for_is_no_number(much: float) -> None:
    report = Report(much, much, much, much, noise_scale=math.nan).cleaned()
    assert (report.epoch, report.seconds, report.startup_seconds) == (0.0, 0.0, 0.0)
    assert report.value is None or report.value == much
    assert report.noise_scale is None
    assert Ended(EndCause.FAILED, seconds=much).cleaned().seconds == 0


def test_training_time_is_never_negative() -> None:
    assert Report(1.0, None, 3.0, startup_seconds=5.0).training_seconds == 0.0


@given(seconds=ANY)
def test_a_cleaned_end_was_paid_for_a_number_of_seconds(seconds: float) -> None:
    assert 0 <= Ended(EndCause.FAILED, seconds=seconds).cleaned().seconds < math.inf


def test_a_change_of_workers_is_taken_once() -> None:
    trial = record(*attempt(1, 1, 2))
    change = Resized(4, 1, "late")
    assert change.cleaned() is change
    assert trial.take(change)
    assert not trial.take(change)
    assert trial.resized is change
    assert trial.take(Resized(1, 2))
    assert not trial.take(Resized(8, 1))
    assert trial.take(Resized(2, 2, "the cluster shrank before it went on"))
    assert trial.resized is not None
    assert trial.resized.workers == 2
    trial.take(Ended(EndCause.STOPPED))
    assert not trial.take(Resized(2, 3))
