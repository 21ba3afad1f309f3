import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Finished, Wait
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause
from raycosttune.core.profile import Profile
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.noise import Noise
from raycosttune.simulate.outcome import Outcome
from raycosttune.simulate.peer import Choice, Peer, PeerPolicy, PeerTrial
from raycosttune.simulate.run import simulate
from raycosttune.simulate.table import TableWorkload
from tests.simulate.worlds import FEW, one_batch, tables


class Listed(Peer):
    """Asks for what a list says, and prunes after so many reports."""

    def __init__(
        self,
        space: Space,
        goal: Goal,
        *,
        asks: Sequence[Allocation | Profile],
        prune_after: float = math.inf,
    ) -> None:
        super().__init__(space, goal, WorkerHours(), 0)
        self.left, self.prune_after = list(asks), prune_after
        self.told: list[PeerTrial] = []

    def ask(self) -> Allocation | Profile | None:
        return self.left.pop(0) if self.left else None

    def tell(self, trial: PeerTrial) -> None:
        assert trial is self.trials[-1]
        self.told.append(trial)

    def prunes(self, trial: PeerTrial) -> bool:
        return len(trial.reports) >= self.prune_after


def goal(deadline: float | None = None, target: float = 1.0) -> Goal:
    return Goal(target=target, metric="m", mode="max", deadline_seconds=deadline)


def driven(
    workload: TableWorkload,
    asks: Sequence[Allocation | Profile],
    *,
    deadline: float | None = None,
    trials: int = 20,
    prune_after: float = math.inf,
    noise: Noise | None = None,
) -> tuple[Listed, Outcome]:
    peer = Listed(workload.space, goal(deadline), asks=asks, prune_after=prune_after)
    outcome = simulate(
        lambda _: PeerPolicy(peer, trials),
        workload,
        cost=WorkerHours(),
        deadline_seconds=deadline,
        noise=noise,
    )
    return peer, outcome


@st.composite
def asked(draw: st.DrawFn, workload: TableWorkload) -> list[Allocation | Profile]:
    cells = st.sampled_from(workload.space.cells)
    profiles = st.lists(cells, min_size=1, max_size=3, unique=True).map(tuple).map(Profile)
    return draw(st.lists(cells | profiles, max_size=6))


@FEW
@given(data=st.data(), workload=tables(), deadline=st.none() | st.floats(100, 2e4))
def test_a_peer_is_cut_where_it_must_and_nowhere_else(
    data: st.DataObject, workload: TableWorkload, deadline: float | None
) -> None:
    asks = data.draw(asked(workload))
    peer, outcome = driven(workload, asks, deadline=deadline, noise=Noise(0.1))
    limit, best = deadline or math.inf, math.inf
    ran = [trial for trial in outcome.trials if not trial.is_profile]
    assert len(peer.told) == len(ran) == sum(isinstance(ask, Allocation) for ask in asks)
    for trial, made in zip(peer.told, ran, strict=True):
        assert trial.seconds == pytest.approx(made.seconds)
        assert trial.cost == pytest.approx(WorkerHours()(trial.allocation, trial.seconds))
        costs = [0.0]
        for report in trial.reports:
            costs.append(costs[-1] + WorkerHours()(trial.allocation, report.seconds))
        assert all(cost < best or cost == pytest.approx(best) for cost in costs[:-1])
        if trial.is_reached:
            assert trial.shortfall <= 0
            if trial.seconds <= limit:
                best = min(best, trial.cost)
        else:
            assert trial.shortfall > 0
            is_late = trial.seconds + trial.reports[-1].training_seconds > limit
            is_dear = trial.cost >= best or trial.cost == pytest.approx(best)
            curve = workload.curve(trial.allocation.batch_size)
            is_whole = len(trial.reports) == len(curve.epochs)
            assert is_late or is_dear or is_whole
        assert trial.seconds - trial.reports[-1].seconds <= limit
    assert peer.incumbent_cost == best


@FEW
@given(data=st.data(), workload=tables(), trials=st.integers(1, 4))
def test_a_peer_runs_one_start_at_a_time_and_so_many_in_all(
    data: st.DataObject, workload: TableWorkload, trials: int
) -> None:
    asks = data.draw(asked(workload))
    _, outcome = driven(workload, asks, trials=trials)
    assert outcome.seconds == pytest.approx(sum(trial.seconds for trial in outcome.trials))
    ran = [trial for trial in outcome.trials if not trial.is_profile]
    assert len(ran) == min(trials, sum(isinstance(ask, Allocation) for ask in asks))
    assert outcome.why in (f"{trials} trials were made", "it proposes nothing further")


def test_a_peer_is_not_asked_while_a_profile_runs() -> None:
    workload = one_batch({1: 800.0, 4: 300.0}, startup=50.0)
    single, large = workload.space.cells
    peer, outcome = driven(workload, [Profile((single, large)), single])
    assert [trial.started for trial in outcome.trials] == [0.0, 50.0 + 10 * (80 + 30)]
    assert peer.times == {single: 800.0, large: 300.0}
    assert peer.startups == {4: 50.0, 1: 50.0}


def test_a_peer_recommends_its_cheapest_run_in_time() -> None:
    workload = one_batch({1: 800.0, 2: 390.0, 4: 300.0})
    single, double, large = workload.space.cells
    peer, outcome = driven(workload, [large, double, single], deadline=1700.0)
    assert outcome.plan == Choice(double)
    assert [trial.cause for trial in outcome.trials] == [
        EndCause.REACHED,
        EndCause.REACHED,
        EndCause.STOPPED,
    ]
    assert peer.incumbent_cost == pytest.approx(2 * 4 * 390 / 3600)
    assert [len(trial.reports) for trial in peer.told] == [4, 4, 2]


def test_a_run_is_cut_when_it_has_cost_as_much_as_the_best() -> None:
    workload = one_batch({1: 800.0, 4: 300.0})
    single, large = workload.space.cells
    peer, outcome = driven(workload, [single, large])
    assert [len(trial.reports) for trial in peer.told] == [4, 3]
    assert outcome.trials[1].cause is EndCause.STOPPED


def test_a_run_that_reaches_the_target_late_is_no_success() -> None:
    workload = one_batch({1: 800.0}, needed=1)
    peer, outcome = driven(workload, list(workload.space.cells), deadline=700.0)
    assert peer.told[0].is_reached
    assert peer.reached == []
    assert outcome.plan is None
    assert not outcome.last.delivered


def test_a_peer_may_prune() -> None:
    workload = one_batch({1: 800.0})
    peer, outcome = driven(workload, list(workload.space.cells), prune_after=2)
    assert len(peer.told[0].reports) == 2
    assert peer.told[0].epoch_seconds == 800
    assert outcome.trials[0].cause is EndCause.STOPPED


def test_a_start_up_is_that_of_the_nearest_worker_count_seen() -> None:
    workload = one_batch({1: 8.0, 8: 3.0}, startup=50.0)
    peer = Listed(workload.space, goal(), asks=())
    assert peer.startup(4) == 0
    peer.startups = {1: 10.0, 8: 80.0}
    assert [peer.startup(n) for n in (1, 3, 6, 16)] == [10, 10, 80, 80]


def test_a_trial_without_a_report_has_no_epoch_time() -> None:
    assert PeerTrial(Allocation(1, 64)).epoch_seconds == math.inf


def test_a_plain_peer_says_nothing() -> None:
    peer = Peer(Space((1,), (64,)), goal(), WorkerHours(), 0)
    with pytest.raises(NotImplementedError):
        peer.ask()
    assert peer.choose() is None
    assert peer.prunes(PeerTrial(Allocation(1, 64))) is False
    peer.tell(PeerTrial(Allocation(1, 64)))


def test_a_peer_waits_while_its_trial_runs() -> None:
    policy = PeerPolicy(Listed(Space((1,), (64,)), goal(), asks=[Allocation(1, 64)]), 1)
    policy.ask("a")
    assert policy.ask("b") == Wait("one trial at a time")
    assert policy.plan() is None
    assert isinstance(PeerPolicy(Listed(Space((1,), (64,)), goal(), asks=()), 1).ask("a"), Finished)
