"""Whatever the shares, training is what one process does with the same global batches."""

from pathlib import Path

import numpy as np
import pytest

from tests.train.jobs import Job, Trained, train, train_alone
from tests.train.world import run_world

SCRIPT = ((5, 3, 1), (1, 1, 7), (0, 4, 5), (9, 0, 0), (3, 3, 3))


def train_all(jobs: list[Job]) -> list[Trained]:
    return [train(job) for job in jobs]


def check(jobs: list[Job], workers: int, store: Path) -> None:
    told = run_world(workers, train_all, jobs, store=store)
    for k, job in enumerate(jobs):
        alone = np.array(train_alone(job))
        first = told[0][k]
        for other in told:
            assert other[k].steps == first.steps, job
            assert other[k].shares == first.shares, job
        for other in told:
            weights = np.array(other[k].weights)
            if np.isnan(alone).any():  # a batch without a token, also for one process
                assert job.is_by_tokens
                assert np.isnan(weights).all()
            elif job.dtype == "float64":
                assert np.abs(weights - alone).max() < 1e-12, job
            else:
                assert np.linalg.norm(weights - alone) < 1e-5 * np.linalg.norm(alone), job


@pytest.mark.slow
def test_weights_equal_those_of_one_process(tmp_path: Path) -> None:
    jobs = [
        Job(50, 9, SCRIPT, epochs=6),
        Job(50, 9, SCRIPT, epochs=6, optimizer="adam"),
        Job(50, 9, SCRIPT, epochs=6, dtype="float32"),
        Job(47, 9, SCRIPT, epochs=6, optimizer="adam", accumulate=2),
        Job(47, 9, SCRIPT, epochs=6, accumulate=3),
        Job(46, 9, SCRIPT, epochs=6, window=2),
        Job(47, 9, SCRIPT, epochs=6, window=2, accumulate=2),
        Job(46, 9, SCRIPT, epochs=2, every_steps=2),
        Job(46, 9, SCRIPT, epochs=2, every_steps=1, num_workers=1),
        Job(8, 9, SCRIPT, epochs=3),
        Job(2, 9, SCRIPT, epochs=3),
        Job(50, 9, SCRIPT, epochs=6, is_by_tokens=True),
        Job(50, 9, SCRIPT, epochs=6, is_by_tokens=True, dtype="float32"),
        Job(49, 9, SCRIPT, epochs=6, is_by_tokens=True, accumulate=2, optimizer="adam"),
        Job(50, 9, SCRIPT, epochs=6, is_by_tokens=True, window=2, num_workers=1),
    ]
    assert all(np.isfinite(train_alone(job)).all() for job in jobs)
    check(jobs, 3, tmp_path / "store")


@pytest.mark.slow
def test_random_shares_never_change_what_is_learned(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    jobs = []
    for _ in range(25):
        batch = int(rng.integers(2, 30))
        script = tuple(
            tuple(int(share) for share in rng.multinomial(batch, rng.dirichlet([0.7, 0.7])))
            for _ in range(4)
        )
        jobs.append(
            Job(
                samples=int(rng.integers(1, 60)),
                batch_size=batch,
                script=script,
                epochs=3,
                optimizer=str(rng.choice(["sgd", "adam"])),
                accumulate=int(rng.integers(1, 4)),
                window=int(rng.integers(1, 3)),
                every_steps=[None, 1, 2][int(rng.integers(3))],
                is_by_tokens=bool(rng.integers(2)),
            )
        )
    check(jobs, 2, tmp_path / "store")


def test_one_worker_trains_as_plain_pytorch_does(tmp_path: Path) -> None:
    jobs = [
        Job(47, 9, ((9,),)),
        Job(47, 9, ((9,),), accumulate=2),
        Job(46, 9, ((9,),), window=2),
        Job(46, 9, ((9,),), accumulate=2, is_by_tokens=True),
    ]
    check(jobs, 1, tmp_path / "store")
