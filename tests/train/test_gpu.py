"""What only a CUDA device can show: events, streams, mixed precision."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import mse_loss
from torch.utils.data import TensorDataset

from raycosttune.train.data import prepare_data_loader
from raycosttune.train.gradient import clip_gradients
from raycosttune.train.model import prepare_model
from raycosttune.train.settings import Settings, install
from raycosttune.train.step import Step, StepClock
from tests.train.jobs import Job, Scripted, flat, train, train_alone
from tests.train.world import run_world

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.slow,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device: not run"),
]
SCRIPT = ((5, 4), (1, 8), (0, 9), (7, 2))


def test_compute_is_timed_on_the_device_and_no_step_waits_for_it() -> None:
    clock = StepClock(on_device=True)
    matrix = torch.randn(4000, 4000, device="cuda")
    for _ in range(3):
        clock.fetch()
        clock.start(Step(4, 4, 4, 1))
        clock.train()
        for _ in range(20):
            matrix = matrix @ matrix * 1e-4
        clock.reduce()
    clock.fetch()
    timing = clock.read()
    assert timing.steps == 3
    assert timing.compute_seconds > 0
    alone = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    alone[0].record()
    for _ in range(20):
        matrix = matrix @ matrix * 1e-4
    alone[1].record()
    alone[1].synchronize()
    assert timing.step_seconds == pytest.approx(alone[0].elapsed_time(alone[1]) / 1000, rel=0.8)


def train_all(jobs: list[Job]) -> list[Any]:
    return [train(job) for job in jobs]


def test_weights_equal_those_of_one_process_on_the_device(tmp_path: Path) -> None:
    jobs = [
        Job(50, 9, SCRIPT, epochs=5),
        Job(47, 9, SCRIPT, epochs=5, optimizer="adam", accumulate=2),
        Job(50, 9, SCRIPT, epochs=5, dtype="float32"),
    ]
    told = run_world(2, train_all, jobs, store=tmp_path / "store", seconds=180)
    for k, job in enumerate(jobs):
        alone = np.array(train_alone(job))
        error = np.linalg.norm(np.array(told[0][k].weights) - alone) / np.linalg.norm(alone)
        assert error < (1e-11 if job.dtype == "float64" else 1e-4)


def train_mixed(amp: bool) -> dict[str, Any]:
    """Trains in mixed precision with uneven shares; runs on each worker."""
    restore = install(Settings(policy=Scripted(SCRIPT)))
    job = Job(45, 9, SCRIPT, dtype="float32")
    loader = prepare_data_loader(TensorDataset(*job.data()), batch_size=9)
    model = prepare_model(job.network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cuda", enabled=amp)
    norms = []
    for _ in range(5):
        for inputs, target in loader:
            with torch.autocast("cuda", dtype=torch.float16, enabled=amp):
                loss = mse_loss(model(inputs), target)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            norms.append(clip_gradients(model, 0.5, scaler=scaler, optimizer=optimizer))
            scaler.step(optimizer)
            scaler.update()
    restore()
    return {"weights": flat(model.cpu()), "norms": norms, "noise": loader.rebalancer.noise.samples}


def test_mixed_precision_trains_alike(tmp_path: Path) -> None:
    mixed = run_world(2, train_mixed, True, store=tmp_path / "mixed", seconds=180)  # noqa: FBT003 - goes to the workers by place
    full = run_world(2, train_mixed, False, store=tmp_path / "full", seconds=180)  # noqa: FBT003 - goes to the workers by place
    assert mixed[0]["weights"] == mixed[1]["weights"]
    difference = np.array(mixed[0]["weights"]) - np.array(full[0]["weights"])
    assert np.linalg.norm(difference) < 0.02 * np.linalg.norm(full[0]["weights"])
