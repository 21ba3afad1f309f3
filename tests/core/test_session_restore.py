"""Laws of a session with profiles that is saved and loaded."""

import json

import pytest

from raycosttune.core.decision import Run, Wait
from raycosttune.core.observation import EndCause, Ended
from raycosttune.core.profile import Profile
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.errors import InvalidStateError
from tests.core.drive import amdahl, goal
from tests.core.told import asked, session, shown

SPACE = Space((1, 2, 4), (64, 128, 256))
JOB = amdahl(SPACE)
LOST = Ended(EndCause.FAILED, "the node died", 3600.0)


def restored(sweep: Session) -> Session:
    again = session(sweep.space, sweep.goal)
    again.load_state(json.loads(json.dumps(sweep.state(), allow_nan=False)))
    return again


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_profile_that_ran_is_asked_for_again_after_a_restore(*, is_shown: bool) -> None:
    sweep = session(SPACE)
    first = asked(sweep, "p")
    again = restored(sweep)
    assert again.state() == sweep.state()
    assert again.ask("p") == first
    assert again.ask("q") == Wait("a profile runs")
    if is_shown:
        assert again.tell_profile("p", shown(JOB, first))
    else:
        assert again.tell("p", LOST)
    assert isinstance(again.ask("q"), Profile)


@pytest.mark.parametrize("end", [None, "shown", "lost"])
def test_profiles_are_saved_and_loaded(end: str | None) -> None:
    sweep = session(SPACE)
    first = asked(sweep, "p")
    if end == "shown":
        sweep.tell_profile("p", shown(JOB, first))
    elif end == "lost":
        sweep.tell("p", LOST)
    again = restored(sweep)
    assert again.profiles == sweep.profiles
    assert again.spent == sweep.spent
    assert again.ask("q") == sweep.ask("q")


def test_a_state_from_before_there_were_profiles_has_none() -> None:
    sweep = session(SPACE)
    state = sweep.state()
    del state["profiles"]
    sweep.tell_profile("p", shown(JOB, asked(sweep, "p")))
    sweep.load_state(state)
    assert sweep.profiles == {}


@pytest.mark.parametrize("junk", [3, [3], [{}], [{"cells": 3}], [{"cells": [{"workers": 0}]}]])
def test_a_state_whose_profiles_can_not_be_read_is_refused(junk: object) -> None:
    sweep = session(SPACE)
    asked(sweep, "p")
    before = sweep.state()
    with pytest.raises(InvalidStateError, match="a state must have records"):
        sweep.load_state({**before, "profiles": junk})
    assert sweep.state() == before


def test_a_driver_that_can_no_longer_profile_does_not_wait_for_one() -> None:
    sweep = session(SPACE)
    asked(sweep, "p")
    plain = Session(SPACE, goal(), clock=float)
    plain.load_state(sweep.state())
    assert isinstance(plain.ask("t"), Run)
    assert sweep.estimate().trials.high > 0


def test_the_sweep_is_at_least_as_old_as_a_journal_says() -> None:
    sweep = session(SPACE)
    now = sweep.elapsed_seconds
    sweep.advance(now + 50.0)
    assert sweep.elapsed_seconds == pytest.approx(now + 50.0)
    sweep.advance(now + 20.0)
    assert sweep.elapsed_seconds == pytest.approx(now + 50.0)
