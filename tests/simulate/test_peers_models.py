import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.cost import NodeHours, WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.observation import Report
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate import (
    AnalyticWorkload,
    Curve,
    Noise,
    Outcome,
    Peer,
    PeerPolicy,
    PeerTrial,
    Profile,
    Truth,
    bill,
    simulate,
)
from raycosttune.simulate.oracle import seconds_to_target
from raycosttune.simulate.peers.independent import BatchThenWorkers, WorkersThenBatch
from raycosttune.simulate.peers.liang2022 import Liang2022
from raycosttune.simulate.peers.linear_scaling import LinearScaling, scaling_line
from raycosttune.simulate.peers.pollux import PolluxModel
from raycosttune.simulate.peers.profiling import (
    PredictingPeer,
    coarse_counts,
    coarse_grid,
    interpolated,
    profiles_of,
)

BATCHES = (64, 128, 256, 512, 1024)
SMALL = Space((1, 2, 4, 8), BATCHES)
NODES = Space((1, 2, 3, 4, 6, 8, 12, 16), BATCHES, workers_per_node=4, divisible=False)
LOCAL = Space((1, 2, 3, 4, 8), (16, 32, 64), batch="local", workers_per_node=4)
HOLES = Space((2, 4, 6), (96, 192, 384), excluded=((2, 96), (4, 384)))
PHI = 500.0
Start = Callable[[Space, Goal, WorkerHours | NodeHours, int], Peer]
PEERS: dict[str, Start] = {
    "liang2022-global": partial(Liang2022, reading="global"),
    "liang2022-local": partial(Liang2022, reading="local"),
    "workers-then-batch": WorkersThenBatch,
    "batch-then-workers": BatchThenWorkers,
    "linear-scaling": LinearScaling,
    "pollux": partial(PolluxModel, noise_scale=lambda _batch, _epoch: PHI),
    "pollux-without-noise-scale": PolluxModel,
}
every_peer = pytest.mark.parametrize("start", PEERS.values(), ids=PEERS)
every_space = pytest.mark.parametrize(
    "space", [SMALL, NODES, LOCAL, HOLES], ids=["small", "nodes", "local", "holes"]
)


class SlowNetwork(AnalyticWorkload):
    """Pays for every node beyond the first."""

    def step_seconds(self, cell: Allocation) -> float:
        return super().step_seconds(cell) + 0.05 * (cell.nodes > 1)


class Barren(AnalyticWorkload):
    """Never reaches a target with a large batch."""

    def curve(self, batch_size: int) -> Curve:
        curve = super().curve(batch_size)
        return curve if batch_size < 512 else Curve(curve.epochs[:30], (0.5,) * 30)


def goal_of(workload: AnalyticWorkload, k: float | None) -> Goal:
    goal = Goal(target=0.9, metric="accuracy", mode="max")
    fastest = min(seconds_to_target(workload, goal).values())
    return goal if k is None else replace(goal, deadline_seconds=k * fastest)


def sweep(
    start: Start,
    workload: AnalyticWorkload,
    goal: Goal,
    cost: WorkerHours | NodeHours | None = None,
    seed: int = 0,
) -> tuple[Outcome, Peer]:
    metric = cost or WorkerHours()
    peer = start(workload.space, goal, metric, seed)
    outcome = simulate(
        lambda _: PeerPolicy(peer, 20),
        workload,
        cost=metric,
        deadline_seconds=goal.deadline_seconds,
        noise=Noise(0.03, curves=True),
        seed=seed,
    )
    return outcome, peer


@every_peer
@every_space
@pytest.mark.parametrize("k", [3.0, None], ids=["deadline", "none"])
def test_a_peer_finishes_with_a_plan_that_is_in_time(
    start: Start, space: Space, k: float | None
) -> None:
    workload = SlowNetwork(space)
    goal = goal_of(workload, k)
    outcome, _ = sweep(start, workload, goal)
    judged = bill(Truth(workload, goal, WorkerHours()), outcome.last)
    assert outcome.why == "it proposes nothing further"
    assert not judged.misses_target
    assert not judged.misses_deadline
    assert judged.ratio < 6


@every_peer
@every_space
def test_a_peer_proposes_legal_cells_only(start: Start, space: Space) -> None:
    class Watched(Peer):
        def ask(self) -> Allocation | Profile | None:
            answer = peer.ask()
            asked.extend(answer.cells if isinstance(answer, Profile) else [answer])
            return answer

    asked: list[Allocation | None] = []
    workload = SlowNetwork(space)
    goal = goal_of(workload, 2.0)
    peer = start(space, goal, NodeHours(), 0)
    watched = Watched(space, goal, NodeHours(), 0)
    watched.trials, watched.times, watched.startups = peer.trials, peer.times, peer.startups
    simulate(lambda _: PeerPolicy(watched, 20), workload, cost=NodeHours())
    assert set(asked) <= {*space.cells, None}


@every_peer
def test_the_same_seed_gives_the_same_sweep(start: Start) -> None:
    workload = SlowNetwork(NODES)
    goal = goal_of(workload, 2.0)
    assert sweep(start, workload, goal, seed=3)[0] == sweep(start, workload, goal, seed=3)[0]


@every_peer
def test_no_cell_is_run_twice(start: Start) -> None:
    workload = SlowNetwork(NODES)
    _, peer = sweep(start, workload, goal_of(workload, 1.5), NodeHours())
    cells = [trial.allocation for trial in peer.trials]
    assert len(cells) == len(set(cells))


@every_peer
def test_an_unreachable_target_ends_without_a_plan(start: Start) -> None:
    workload = Barren(Space((1, 2), (512, 1024)))
    outcome, _ = sweep(start, workload, Goal(target=0.9, metric="accuracy", mode="max"))
    assert outcome.plan is None
    assert outcome.why == "it proposes nothing further"


@every_peer
def test_a_batch_that_ends_short_of_the_target_does_not_win(start: Start) -> None:
    workload = Barren(SMALL)
    goal = goal_of(workload, None)
    outcome, _ = sweep(start, workload, goal)
    assert not bill(Truth(workload, goal, WorkerHours()), outcome.last).misses_target


@every_space
def test_profiles_keep_no_worker_idle(space: Space) -> None:
    profiles = profiles_of(coarse_grid(space), "a test")
    assert all(len({cell.workers for cell in profile.cells}) == 1 for profile in profiles)
    assert {profile.held.workers for profile in profiles} == coarse_counts(space.cells)


def trial(cell: Allocation, epochs: int, *, is_reached: bool = False) -> PeerTrial:
    reports = [Report(epoch + 1, 0.5, seconds=10.0) for epoch in range(epochs)]
    cost = WorkerHours()(cell, 10.0 * epochs)
    return PeerTrial(
        cell,
        cost=cost,
        seconds=10.0 * epochs,
        training_seconds=10.0 * epochs,
        epochs=epochs,
        is_reached=is_reached,
        is_over=True,
        reports=reports,
    )


def test_a_cut_run_rules_out_its_cell_and_one_that_ended_its_batch() -> None:
    goal = Goal(target=0.9, metric="accuracy", mode="max", deadline_seconds=100.0)
    cut, ended = SMALL.allocation(2, 64), SMALL.allocation(1, 256)
    peer = PredictingPeer(SMALL, goal, WorkerHours(), 0)
    peer.trials = [trial(cut, 10), trial(ended, 4)]
    assert peer.failed == {cut} | {cell for cell in SMALL.cells if cell.batch_size == 256}


def test_guessed_epochs_grow_with_what_was_run_in_vain() -> None:
    goal = Goal(target=0.9, metric="accuracy", mode="max")
    peer = PredictingPeer(SMALL, goal, WorkerHours(), 0)
    before = peer.guessed_epochs
    peer.trials = [trial(SMALL.cells[0], 40)]
    assert before == 20
    assert peer.guessed_epochs == 60


@given(st.dictionaries(st.sampled_from([1, 2, 4, 8, 16]), st.floats(0.1, 100), min_size=1))
def test_interpolation_passes_through_what_was_measured(times: dict[int, float]) -> None:
    measured = {Allocation(n, 64): seconds for n, seconds in times.items()}
    predicted = [interpolated(measured, cell) for cell in measured]
    assert predicted == pytest.approx(list(measured.values()))


@pytest.mark.parametrize("k", [1.5, 3.0, None])
def test_pollux_finds_the_oracle_where_its_noise_scale_is_right(k: float | None) -> None:
    workload = SlowNetwork(NODES, epoch_overhead_seconds=0.0, noise_scale=PHI)
    goal = goal_of(workload, k)
    outcome, _ = sweep(PEERS["pollux"], workload, goal)
    assert bill(Truth(workload, goal, WorkerHours()), outcome.last).regret < 0.1


def test_an_unknown_noise_scale_leaves_epochs_alone() -> None:
    workload = SlowNetwork(NODES)
    goal = goal_of(workload, 3.0)
    nan = partial(PolluxModel, noise_scale=lambda _batch, _epoch: math.nan)
    assert sweep(nan, workload, goal)[0] == sweep(PolluxModel, workload, goal)[0]


@every_space
def test_the_scaling_line_keeps_the_batch_per_worker_where_it_is_legal(space: Space) -> None:
    line = scaling_line(space)
    base = line[0]
    legal = {(cell.workers, cell.batch_size) for cell in space.cells}
    assert [cell.workers for cell in line] == sorted({n for n, _ in legal})
    for cell in line:
        wanted = cell.workers * base.batch_size // base.workers
        assert cell.batch_size == wanted or (cell.workers, wanted) not in legal


def test_workers_come_first_at_the_middle_batch() -> None:
    workload = SlowNetwork(NODES)
    _, peer = sweep(WorkersThenBatch, workload, goal_of(workload, None))
    batches = [trial.allocation.batch_size for trial in peer.trials]
    changed = next(k for k, batch in enumerate(batches) if batch != 256)
    later = {trial.allocation.workers for trial in peer.trials[changed - 1 :]}
    assert batches[0] == 256
    assert len(later) == 1


def test_the_batch_comes_first_at_the_middle_workers() -> None:
    workload = SlowNetwork(NODES)
    _, peer = sweep(BatchThenWorkers, workload, goal_of(workload, None))
    workers = [trial.allocation.workers for trial in peer.trials]
    changed = next(k for k, count in enumerate(workers) if count != 6)
    later = {trial.allocation.batch_size for trial in peer.trials[changed:]}
    assert workers[0] == 6
    assert len(later) == 1


@pytest.mark.parametrize("start", [Liang2022, PolluxModel])
def test_a_joint_choice_is_verified_by_its_own_run(start: Start) -> None:
    workload = SlowNetwork(NODES)
    _, peer = sweep(start, workload, goal_of(workload, 3.0))
    assert peer.choose() in {trial.allocation for trial in peer.reached}
