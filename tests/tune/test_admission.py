import logging
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.abilities import Abilities
from raycosttune.core.decision import Answer, Finished, Run, Wait
from raycosttune.core.goal import Goal
from raycosttune.core.node_type import Free
from raycosttune.core.observation import EndCause, Ended, Report
from raycosttune.core.profile import Profile, Profiled
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.tune import admission as module
from raycosttune.tune.admission import LOOK_EVERY_SECONDS, Admission


class CountingSession(Session):
    """Counts how often it is asked."""

    asked = 0

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
        self.asked += 1
        return super().ask(trial_id, free_workers=free_workers)


def CPU(node_type: str) -> dict[str, float]:  # noqa: N802 - as a constant
    assert node_type == ""
    return {"CPU": 1}


def make_session(**settings: Any) -> CountingSession:
    goal = Goal(metric="accuracy", mode="max", target=0.9)
    settings = {"max_concurrent": 4, **settings}
    return CountingSession(Space((1, 2), (32,)), goal, clock=lambda: 0.0, **settings)


def test_a_session_that_said_to_wait_is_asked_again_only_after_a_change() -> None:
    session, admission = make_session(max_concurrent=1), Admission()
    assert isinstance(admission.ask(session, "a", CPU), Run)
    for _ in range(3):
        assert isinstance(admission.ask(session, "b", CPU), Wait)
    assert session.asked == 2
    session.tell("a", Report(1.0, 0.5, 1.0))
    assert isinstance(admission.ask(session, "b", CPU), Wait)
    assert session.asked == 3
    session.tell("a", Ended(EndCause.FINISHED))
    assert isinstance(admission.ask(session, "b", CPU), Run)


def test_the_search_ends_only_when_nothing_runs_any_more() -> None:
    session, admission = make_session(), Admission()
    for name in ("a", "b", "c"):
        admission.ask(session, name, CPU)
    session.tell("a", Ended(EndCause.FAILED))
    session.tell("b", Ended(EndCause.FAILED))
    assert isinstance(admission.ask(session, "d", CPU), Run | Wait)
    for name in list(session.records):
        session.tell(name, Ended(EndCause.FAILED))
    assert isinstance(admission.ask(session, "e", CPU), Finished)


def test_the_limit_of_tune_is_kept_and_survives_a_copy() -> None:
    session, admission = make_session(), Admission()
    admission.limit(1)
    assert isinstance(admission.ask(session, "a", CPU), Run)
    assert isinstance(admission.renewed().ask(session, "b", CPU), Wait)
    assert session.asked == 1
    admission.limit(0)
    assert isinstance(admission.ask(session, "b", CPU), Run)


def test_a_profile_holds_all_its_workers() -> None:
    session = make_session(abilities=Abilities(profile=True))
    answer = Admission().ask(session, "a", CPU)
    assert isinstance(answer, Profile)
    assert session.committed_workers == answer.held.workers
    assert isinstance(Admission().ask(session, "b", CPU), Wait)
    session.tell_profile("a", Profiled({answer.held: 1.0}, 10.0, 9.0))
    assert session.committed_workers == 0


class Looks:
    """Stands for the cluster's nodes, and for the clock between two looks at them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *cpus: float) -> None:
        self.cpus, self.now = cpus, 0.0
        monkeypatch.setattr(module, "nodes_left", lambda: [{"CPU": cpu} for cpu in self.cpus])
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def later(self, *cpus: float) -> None:
        self.cpus = cpus
        self.now += LOOK_EVERY_SECONDS


def test_workers_that_other_jobs_use_are_not_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, admission = Looks(monkeypatch, 1.0, 1.0), Admission()
    goal = Goal(metric="accuracy", mode="max", target=0.9)
    session = Session(Space((1,), (32, 64)), goal, max_concurrent=9, clock=lambda: 0.0)
    for name in "ab":
        assert isinstance(admission.ask(session, name, CPU), Run)
    assert isinstance(admission.ask(session, "c", CPU), Wait)
    looks.later(1.0, 1.0)
    session.tell("a", Ended(EndCause.FAILED))
    looks.later(1.0)  # another job has taken the rest
    looks.later(1.0)
    assert isinstance(admission.ask(session, "d", CPU), Run)
    looks.later(1.0)
    assert isinstance(admission.ask(session, "e", CPU), Wait)


def test_a_trial_that_has_just_ended_is_not_taken_for_another_job_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, admission = Looks(monkeypatch, 2.0), Admission()
    goal = Goal(metric="accuracy", mode="max", target=0.9)
    session = Session(Space((2,), (32, 64)), goal, max_concurrent=9, clock=lambda: 0.0)
    assert isinstance(admission.ask(session, "a", CPU), Run)
    session.tell("a", Ended(EndCause.FAILED))
    looks.later(0.0)  # Ray's figures lag
    assert admission.free_workers(session, CPU) == 2
    looks.later(0.0)
    assert admission.free_workers(session, CPU) == 0


def test_a_trial_that_waits_for_other_jobs_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Looks(monkeypatch, 0.0)
    session, admission = make_session(), Admission()
    with caplog.at_level(logging.WARNING):
        assert isinstance(admission.ask(session, "a", CPU), Run)
        session.tell("a", Ended(EndCause.FAILED))
        assert isinstance(admission.ask(session, "b", CPU), Run)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "other jobs leave 0 of the cluster" in caplog.text


def test_a_large_trial_is_not_starved_by_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pays most waits until there is room for it; nothing smaller overtakes it."""
    looks, admission = Looks(monkeypatch, 1.0), Admission()
    goal = Goal(metric="accuracy", mode="max", target=0.9)
    session = Session(Space((1, 2, 4), (32, 64)), goal, max_concurrent=9, clock=lambda: 0.0)
    small = admission.ask(session, "a", CPU)
    assert isinstance(small, Run)
    assert small.allocation.workers == 1
    looks.later(4.0)
    assert admission.ask(session, "b", CPU) == Wait("4 workers are not free")
    for _ in range(5):
        looks.later(4.0)
        assert isinstance(admission.ask(session, "b", CPU), Wait)
    session.tell("a", Ended(EndCause.FAILED))
    large = admission.ask(session, "b", CPU)
    assert isinstance(large, Run)
    assert large.allocation.workers == 4


@given(
    workers=st.sets(st.integers(1, 6), min_size=1, max_size=4),
    room=st.integers(1, 6),
    ends=st.lists(st.integers(0, 99), min_size=80, max_size=80),
)
@settings(max_examples=25)
def test_trials_of_any_sizes_all_come_to_their_end(
    workers: set[int], room: int, ends: list[int]
) -> None:
    """Whatever the mix and the order of the ends: nothing is promised twice, and nothing hangs."""
    goal = Goal(metric="accuracy", mode="max", target=0.9)
    grid = tuple(sorted(count for count in workers if count <= room)) or (1,)
    space = Space(grid, (60, 120, 240), max_workers=room)
    session = Session(space, goal, max_concurrent=9, clock=lambda: 0.0)
    with pytest.MonkeyPatch.context() as patch:
        Looks(patch, float(room))
        admission = Admission()
        for turn, end in enumerate(ends):
            answer = admission.ask(session, f"t{turn}", CPU)
            assert session.committed_workers <= room
            if isinstance(answer, Finished):
                break
            if isinstance(answer, Wait):
                live = session.live
                assert live, answer.why
                trial = live[end % len(live)].trial_id
                session.tell(trial, Report(1.0, end / 100, 1.0))
                session.tell(trial, Ended(EndCause.FINISHED))
        else:
            pytest.fail("the sweep goes on and on")
    assert session.records
