import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.observation import EndCause, Ended, Report
from raycosttune.core.profile import (
    Profile,
    Profiled,
    ProfileRecord,
    profile_from_data,
    profile_to_data,
)
from raycosttune.core.space import Allocation

CELLS = (Allocation(1, 64), Allocation(2, 64), Allocation(2, 128))
FAILED = Ended(EndCause.FAILED, "a node died", 30.0)
SECONDS = st.floats(0.1, 1e6)


def record() -> ProfileRecord:
    return ProfileRecord("p", Profile(CELLS, steps=10, why="times"))


def shown(samples: float = 1000.0, startup: float = 20.0) -> Profiled:
    """Returns what steps of 1, 2 and 3 seconds show."""
    steps = dict(zip(CELLS, (1.0, 2.0, 3.0), strict=True))
    epochs = {cell: s * samples / cell.batch_size for cell, s in steps.items()}
    return Profiled(epochs, startup + 10 * 6, startup)


def test_a_profile_lives_until_it_shows_something() -> None:
    profile = record()
    assert (profile.is_live, profile.is_failed) == (True, False)
    assert (profile.seconds, profile.epoch_seconds, profile.samples_per_epoch) == (0, {}, None)
    assert profile.show(shown())
    assert (profile.is_live, profile.is_failed) == (False, False)
    assert profile.seconds == 80
    assert not profile.show(shown(9.0))
    assert not profile.take(FAILED)
    assert profile.shown == shown()


def test_a_lost_profile_is_paid_for_and_has_failed() -> None:
    profile = record()
    assert not profile.take(Report(1.0, 0.5, 10.0))
    assert profile.take(FAILED)
    assert (profile.is_live, profile.is_failed) == (False, True)
    assert profile.seconds == 30
    assert not profile.take(FAILED)
    assert not profile.show(shown())
    assert profile.samples_per_epoch is None


def test_a_profile_that_timed_no_cell_has_failed() -> None:
    profile = record()
    profile.show(Profiled({}, 50.0, 20.0))
    assert profile.is_failed
    assert profile.seconds == 50


@given(st.floats(1, 1e7))
def test_the_samples_of_an_epoch_follow_from_steps_and_epochs(samples: float) -> None:
    profile = record()
    profile.show(shown(samples))
    assert profile.samples_per_epoch == pytest.approx(samples)


def test_without_time_after_the_start_nothing_follows() -> None:
    profile = record()
    profile.show(Profiled({CELLS[0]: 3.0}, 20.0, 20.0))
    assert profile.samples_per_epoch is None


@pytest.mark.parametrize("odd", [math.nan, math.inf, -1.0, 0.0, 1e300])
def test_what_is_no_time_is_left_out(odd: float) -> None:
    profile = record()
    profile.show(Profiled({CELLS[0]: odd, CELLS[1]: 3.0}, math.nan, -2.0))
    assert profile.shown == Profiled({CELLS[1]: 3.0}, 0.0, 0.0)


@given(st.lists(SECONDS | st.none(), min_size=3, max_size=3), SECONDS, SECONDS)
def test_a_shown_profile_can_be_written_and_read(
    epochs: list[float | None], seconds: float, startup: float
) -> None:
    profile = record()
    timed = {cell: s for cell, s in zip(CELLS, epochs, strict=True) if s is not None}
    profile.show(Profiled(timed, seconds, startup))
    data = json.loads(json.dumps(profile_to_data(profile), allow_nan=False))
    assert profile_from_data(data) == profile


def test_a_live_profile_can_be_written_and_read() -> None:
    data = json.loads(json.dumps(profile_to_data(record()), allow_nan=False))
    assert profile_from_data(data) == record()


@pytest.mark.parametrize(
    ("key", "value"),
    [("trial_id", 1), ("steps", 0), ("why", None), ("seconds", "long"), ("startup_seconds", None)],
)
def test_a_profile_with_a_value_of_another_kind_is_refused(key: str, value: object) -> None:
    profile = record()
    profile.show(shown())
    with pytest.raises(ValueError, match=f"{key} must be a"):
        profile_from_data({**profile_to_data(profile), key: value})
