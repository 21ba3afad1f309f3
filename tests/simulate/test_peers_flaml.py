from dataclasses import replace

import pytest

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.space import Space
from raycosttune.simulate import AnalyticWorkload, Noise, Outcome, PeerPolicy, Truth, simulate

flaml_peer = pytest.importorskip("raycosttune.simulate.peers.flaml_peer")

GLOBAL = Space((1, 2, 4, 8), (64, 128, 256, 512), max_local_batch=256, excluded=((2, 128),))
LOCAL = Space((1, 2, 4), (32, 64, 128), batch="local", max_workers=2)
COST = WorkerHours()
every_space = pytest.mark.parametrize("space", [GLOBAL, LOCAL])


def goal(space: Space, *, deadline: bool = True) -> Goal:
    free = Goal(target=0.9, metric="accuracy", mode="max")
    fastest = min(Truth(AnalyticWorkload(space), free, COST).seconds.values())
    return replace(free, deadline_seconds=2 * fastest) if deadline else free


def sweep(space: Space, *, seed: int = 0, trials: int = 12, deadline: bool = True) -> Outcome:
    aim = goal(space, deadline=deadline)
    return simulate(
        lambda _: PeerPolicy(flaml_peer.FlamlBlendSearch(space, aim, COST, seed), trials),
        AnalyticWorkload(space),
        cost=COST,
        deadline_seconds=aim.deadline_seconds,
        noise=Noise(time_sd=0.05),
        seed=seed,
    )


@every_space
@pytest.mark.parametrize("seed", range(4))
def test_every_run_is_in_a_cell_that_was_not_run_before(space: Space, seed: int) -> None:
    cells = [trial.allocation for trial in sweep(space, seed=seed, trials=100).trials]
    assert set(cells) <= set(space.cells)
    assert len(cells) == len(set(cells))


def test_the_same_seed_gives_the_same_sweep() -> None:
    first, again = (sweep(GLOBAL, seed=3) for _ in range(2))
    assert first.trials == again.trials


@every_space
@pytest.mark.parametrize("deadline", [False, True])
def test_the_chosen_cell_reaches_the_target_in_time(space: Space, deadline: bool) -> None:
    truth = Truth(AnalyticWorkload(space), goal(space, deadline=deadline), COST)
    assert sweep(space, deadline=deadline).last.chosen in truth.feasible


def test_it_starts_in_the_middle_goes_to_the_most_workers_and_then_to_the_fewest() -> None:
    assert [trial.allocation.workers for trial in sweep(GLOBAL, trials=3).trials] == [2, 8, 1]


def test_a_space_of_one_cell_is_run_once() -> None:
    assert len(sweep(Space((2,), (64,))).trials) == 1


def test_a_search_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    sweep(GLOBAL, trials=100)
    assert not caplog.records
