from dataclasses import replace

import pytest

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.space import Space
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate import AnalyticWorkload, Noise, Outcome, PeerPolicy, Truth, simulate

zeus_peer = pytest.importorskip("raycosttune.simulate.peers.zeus_peer")

SPACE = Space((1, 2, 4, 8), (64, 128, 256, 512), max_local_batch=256, excluded=((4, 64),))
COST = WorkerHours()
FREE = Goal(target=0.9, metric="accuracy", mode="max")
WORKLOAD = AnalyticWorkload(SPACE)
FASTEST = min(Truth(WORKLOAD, FREE, COST).seconds.values())


def sweep(
    workers: int, *, seed: int = 0, default_batch: int | None = None, slack: float = 2.0
) -> Outcome:
    aim = replace(FREE, deadline_seconds=slack * FASTEST)
    peer = zeus_peer.ZeusBatch(SPACE, aim, COST, seed, workers=workers, default_batch=default_batch)
    return simulate(
        lambda _: PeerPolicy(peer, 20),
        WORKLOAD,
        cost=COST,
        deadline_seconds=aim.deadline_seconds,
        noise=Noise(time_sd=0.05),
        seed=seed,
    )


@pytest.mark.parametrize("workers", SPACE.workers)
def test_every_run_is_a_new_batch_of_the_one_worker_count(workers: int) -> None:
    cells = [trial.allocation for trial in sweep(workers).trials]
    assert cells
    assert set(cells) <= {cell for cell in SPACE.cells if cell.workers == workers}
    assert len(cells) == len(set(cells))


def test_the_same_seed_gives_the_same_sweep() -> None:
    assert sweep(8, seed=3).trials == sweep(8, seed=3).trials


def test_the_chosen_cell_reaches_the_target_in_time() -> None:
    truth = Truth(WORKLOAD, replace(FREE, deadline_seconds=2 * FASTEST), COST)
    assert sweep(8).last.chosen in truth.feasible


def test_it_starts_from_the_default_batch() -> None:
    assert sweep(8, default_batch=512).trials[0].allocation.batch_size == 512


def test_it_ends_without_a_plan_where_every_batch_missed() -> None:
    outcome = sweep(1, slack=1.0)
    assert outcome.last.chosen is None
    assert outcome.why == "it proposes nothing further"


def test_a_worker_count_must_have_cells() -> None:
    with pytest.raises(InvalidWorkloadError, match=r"workers must be one of \[1, 2, 4, 8\], got 3"):
        zeus_peer.ZeusBatch(SPACE, FREE, COST, 0, workers=3)
