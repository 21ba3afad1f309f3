from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.plan import NoPlan
from raycosttune.core.profile import Profile
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.peer import Choice, Peer, PeerPolicy
from raycosttune.simulate.policy import HasAllocation, ProfilingPolicy

CELLS = st.builds(Allocation, st.integers(1, 8), st.integers(8, 64), st.integers(1, 2))


@given(st.lists(CELLS, min_size=1).map(tuple))
def test_a_profile_holds_the_most_workers_of_its_cells(cells: tuple[Allocation, ...]) -> None:
    held = Profile(cells).held
    assert held in cells
    assert all((held.workers, held.nodes) >= (cell.workers, cell.nodes) for cell in cells)


def test_sessions_and_peers_hear_profiles_and_only_a_plan_has_a_cell() -> None:
    space, goal = Space((1,), (8,)), Goal(target=1, metric="m", mode="max")
    session = Session(space, goal, clock=float)
    assert isinstance(session, ProfilingPolicy)
    assert isinstance(PeerPolicy(Peer(space, goal, WorkerHours(), 0), 1), ProfilingPolicy)
    assert isinstance(session.plan(), NoPlan)
    assert not isinstance(session.plan(), HasAllocation)
    assert isinstance(Choice(Allocation(1, 8)), HasAllocation)
