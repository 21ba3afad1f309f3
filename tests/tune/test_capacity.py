from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended
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


def make_session() -> Session:
    goal = Goal(metric="accuracy", mode="max", target=0.9)
    return Session(Space((1, 2), (32,)), goal, max_concurrent=4, clock=lambda: 0.0)


def test_admission_is_closed_until_something_changes() -> None:
    session, admission = make_session(), Admission()
    session.ask("a")
    assert not admission.is_closed(session, 1)
    admission.close(session, 1)
    assert admission.is_closed(session, 1)
    assert not admission.is_closed(session, 2)
    session.tell("a", Ended(EndCause.FINISHED))
    assert not admission.is_closed(session, 1)


def test_the_limit_of_tune_is_kept_and_survives_a_copy() -> None:
    session, admission = make_session(), Admission()
    admission.limit(1)
    assert not admission.is_full(session)
    session.ask("a")
    assert admission.renewed().is_full(session)
    admission.limit(0)
    assert not admission.is_full(session)
    assert admission.free_workers(session, {"CPU": 1}) is None
