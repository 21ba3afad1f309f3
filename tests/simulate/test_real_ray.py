"""The simulator and a real Ray are two drivers of one session."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import tune

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.simulate import AnalyticWorkload, Noise, simulate
from raycosttune.train import keys
from raycosttune.tune import CostAwareScheduler, CostAwareSearch, function_trainable

pytestmark = [pytest.mark.ray, pytest.mark.slow]
JOB = AnalyticWorkload(Space((1, 2), (64, 128, 256)), noise_scale=300.0, time_constant=3.0)
AIM = Goal(
    metric="accuracy",
    mode="max",
    target=0.9,
    deadline_seconds=1200.0,
    sweep_deadline_seconds=4000.0,
    planned_runs=100,
)


def train(config: dict[str, Any]) -> None:
    """Reports what the job would show, with its seconds, at once."""
    cell = JOB.space.allocation(config["num_workers"], config["batch_size"])
    start = JOB.startup_seconds(cell.workers)
    for count, shown in enumerate(Noise().run(JOB, cell, seed=0, repetition=0)):
        first = start if count == 0 else 0.0
        tune.report(
            {
                "epoch": shown.epoch,
                "accuracy": shown.value,
                keys.SECONDS: first + shown.seconds,
                keys.STARTUP_SECONDS: first,
            }
        )


def made(session: Session) -> list[tuple[object, ...]]:
    """Returns what a session decided, trial by trial."""
    return [
        (record.allocation, len(record.reports), record.ended and record.ended.reason)
        for record in session.records.values()
    ]


def paid(sessions: list[Session]) -> float:
    return sum(record.seconds for session in sessions for record in session.records.values())


@pytest.mark.usefixtures("shared_ray")
@pytest.mark.timeout(240)
def test_a_simulated_sweep_and_one_on_ray_decide_alike_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions: list[Session] = []

    def start(clock: Any) -> Session:
        sessions.append(Session(JOB.space, AIM, cost=WorkerHours(), max_concurrent=1, clock=clock))
        return sessions[0]

    simulated = simulate(start, JOB, cost=WorkerHours(), deadline_seconds=1200.0)

    search = CostAwareSearch(AIM, cost=WorkerHours(), max_concurrent=1)
    real: list[Session] = []

    def start_on_ray(*arguments: Any, clock: object, **named: Any) -> Session:
        del clock
        # Each report brings its own seconds; the sweep's clock is their sum.
        real.append(Session(*arguments, clock=lambda: paid(real), **named))
        return real[0]

    monkeypatch.setattr("raycosttune.tune.setup.Session", start_on_ray)
    monkeypatch.setattr("raycosttune.tune.sweep.time", SimpleNamespace(monotonic=float))
    tune.run(
        function_trainable(train),
        config={
            "num_workers": tune.choice(list(JOB.space.workers)),
            "batch_size": tune.choice(list(JOB.space.batches)),
        },
        search_alg=search,
        scheduler=CostAwareScheduler(),
        num_samples=-1,
        storage_path=str(tmp_path),
        raise_on_failed_trial=False,
        reuse_actors=True,  # a trial starts sooner in the process of one before
        verbose=0,
    )
    assert len(simulated.trials) > 2
    assert made(search.session) == made(sessions[0])
    assert search.session.spent == pytest.approx(sessions[0].spent)
    assert search.session.elapsed_seconds == pytest.approx(simulated.seconds)
