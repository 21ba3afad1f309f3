"""Rebalancing in real runs of Ray Train: out of memory, and with fewer workers.

That the callback alone turns it on is shown by `examples/straggler.py`, which is run as a test.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import ray
import ray.train
import torch
from ray.train import FailureConfig, RunConfig, ScalingConfig
from torch.utils.data import TensorDataset

from raycosttune.train import keys
from raycosttune.train.checkpoint import report, resume
from raycosttune.train.data import prepare_data_loader
from raycosttune.train.model import prepare_model
from raycosttune.train.place import STATE_FILE
from raycosttune.train.rebalance_callback import RebalanceCallback
from tests.train.lean import LeanTrainer

ROOT = Path(__file__).parents[2]
SAMPLES, BATCH = 240, 48


def train(config: dict[str, Any]) -> Any:
    """Trains with pauses in place of compute; the last worker is four times slower.

    Worker 0 runs out of memory with more samples than `config["fits"]` in a step. The run ends
    after that, with an epoch in which the slow one has less: no clock says when a plan comes.
    """
    context = ray.train.get_context()
    rank, workers = context.get_world_rank(), context.get_world_size()
    inputs = torch.linspace(-1, 1, SAMPLES, dtype=torch.float64)[:, None]
    loader = prepare_data_loader(TensorDataset(inputs, inputs.sin()), batch_size=BATCH)
    model = prepare_model(torch.nn.Linear(1, 1).double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    began = resume(model, optimizer, loader=loader)
    seen = []
    for epoch in range(began, config["epochs"]):
        rows, shares = 0, loader.shares
        for batch, target in loader:
            if rank == 0 and len(batch) > config["fits"]:
                msg = "CUDA out of memory. Tried to allocate 2 GiB"
                raise torch.OutOfMemoryError(msg)
            rows = max(rows, len(batch))
            time.sleep((0.004 if rank == workers - 1 else 0.001) * len(batch))
            optimizer.zero_grad()
            (model(batch) - target).square().mean().backward()
            optimizer.step()
        seen.append({"epoch": epoch, "rows": rows, "began": began})
        report({"epoch": epoch + 1, "loss": 0.5}, model, optimizer)
        if began and shares[-1] < BATCH // workers:
            break
    return seen


def fit(
    storage: Path, workers: int, callbacks: list[Any], *, epochs: int, fits: int = 10**6
) -> Any:
    trainer: Any = LeanTrainer
    return trainer(
        train,
        train_loop_config={"epochs": epochs, "fits": fits},
        scaling_config=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 0.5}),
        run_config=RunConfig(
            name="run",
            storage_path=str(storage),
            callbacks=callbacks,
            failure_config=FailureConfig(max_failures=3),
        ),
    ).fit()


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("shared_ray")
@pytest.mark.timeout(480)
def test_a_worker_without_memory_gets_less_and_the_run_goes_on_with_fewer(tmp_path: Path) -> None:
    callback = RebalanceCallback(plan="controller")
    on = fit(tmp_path, 3, [callback], epochs=100, fits=18)
    assert max(row["rows"] for row in on.return_value) <= 18
    assert on.return_value[0]["began"] > 0
    assert on.metrics is not None
    assert sum(on.metrics[keys.SHARES]) == BATCH
    assert on.metrics[keys.SHARES][2] < BATCH // 3
    assert len(on.metrics[keys.COMPUTE_SECONDS]) == len(on.metrics[keys.IDLE_SECONDS]) == 3
    assert on.metrics[keys.IMBALANCE] >= 1
    assert on.metrics[keys.COST] > 0
    assert on.metrics[keys.COST_UNIT] == "worker-hours"

    # The same run with fewer workers goes on from what is known of those that remain.
    done = on.return_value[-1]["epoch"] + 1
    fewer = fit(tmp_path, 2, [RebalanceCallback()], epochs=done + 1)
    assert fewer.return_value[0]["began"] == done
    assert fewer.checkpoint is not None
    with fewer.checkpoint.as_directory() as folder:
        state = json.loads((Path(folder) / STATE_FILE).read_text())
    assert sum(state["shares"]) == BATCH
    assert len(state["workers"]) == 2
