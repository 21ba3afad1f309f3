from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.abilities import Abilities
from raycosttune.core.decision import Answer, Finished, Run, Wait
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Report
from raycosttune.core.profile import Profile, Profiled
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.tune.admission import Admission
from raycosttune.tune.capacity import (
    cluster_nodes,
    most_workers,
    most_workers_per_node,
    node_capacity,
)


def test_a_node_holds_whole_workers_only() -> None:
    assert node_capacity({"CPU": 7.0, "GPU": 2.0}, {"CPU": 2}) == 3
    assert node_capacity({"CPU": 7.0, "GPU": 2.0}, {"CPU": 2, "GPU": 1}) == 2
    assert node_capacity({"CPU": 7.0}, {"CPU": 1, "GPU": 1}) == 0
    assert node_capacity({"CPU": 7.0}, {"GPU": 0}) == 0


@given(st.integers(1, 200), st.integers(1, 64))
def test_rounding_never_loses_a_worker(parts: int, workers: int) -> None:
    assert node_capacity({"CPU": float(workers)}, {"CPU": 1 / parts}) == workers * parts


def test_what_is_left_on_two_nodes_does_not_make_a_worker() -> None:
    nodes = [{"CPU": 3.0}, {"CPU": 3.0}]
    assert most_workers(nodes, {"CPU": 2}) == 2
    assert most_workers_per_node(nodes, {"CPU": 2}) == 1
    assert most_workers_per_node([], {"CPU": 2}) == 0


def test_without_ray_the_cluster_is_unknown() -> None:
    assert cluster_nodes() is None


class CountingSession(Session):
    """Counts how often it is asked."""

    asked = 0

    def ask(self, trial_id: str, *, free_workers: int | None = None) -> Answer:
        self.asked += 1
        return super().ask(trial_id, free_workers=free_workers)


CPU = {"CPU": 1}


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
