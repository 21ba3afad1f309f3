import math
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import ray.train
import torch
import torch.distributed as dist
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import prepare_data_loader, prepare_model
from torch.utils.data import DataLoader, TensorDataset

from raycosttune.train.keys import PROFILE
from raycosttune.train.profile import profile_loop, read_profile
from raycosttune.train.profile_cells import Config, InvalidProfileError, ProfileResult
from tests.train.lean import LeanTrainer

ROOT = Path(__file__).parents[2]
SAMPLES = 600
RESULT = ProfileResult(workers=2, cells=[], failed=[], startup_seconds=12.0, seconds=20.0)


def train(config: Config) -> None:
    """Trains as an ordinary loop does, and sees to it that it can't tell a profile from a run."""
    context = ray.train.get_context()
    workers, rank = context.get_world_size(), context.get_world_rank()
    assert workers == dist.get_world_size() == context.get_local_world_size()
    assert workers == config["num_workers"] == int(os.environ["WORLD_SIZE"])
    assert rank == dist.get_rank()
    if config["batch_size"] == 100:
        msg = "no batch of 100, please"
        raise ValueError(msg)
    assert ray.train.get_checkpoint() is None
    data = TensorDataset(torch.randn(SAMPLES, 4))
    loader = prepare_data_loader(DataLoader(data, config["batch_size"] // workers, shuffle=True))
    model = prepare_model(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(1, 1000):
        if workers > 1:
            loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]  # Ray has put in its own
        for (rows,) in loader:
            optimizer.zero_grad()
            model(rows).square().mean().backward()
            optimizer.step()
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "state").write_text(str(epoch))
            last = Checkpoint.from_directory(folder) if rank == 0 else None
            ray.train.report({"loss": 1.0, "epoch": epoch}, checkpoint=last)


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.usefixtures("shared_ray")
def test_one_start_of_ray_train_measures_many_cells(tmp_path: Path) -> None:
    cells = [(1, 60), (2, 200), (2, 60), (2, 100), (1, 200)]
    trainer = LeanTrainer(
        profile_loop(train, cells, steps=5, timeout_seconds=30),
        train_loop_config={"num_workers": 2, "batch_size": 1},
        scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(name="profile", storage_path=str(tmp_path)),
    )
    told = trainer.fit()
    result = read_profile(told)
    measured = {(cell["workers"], cell["batch_size"]): cell for cell in result["cells"]}
    assert list(measured) == [(2, 60), (2, 200), (1, 60), (1, 200)]
    for (_, batch), cell in measured.items():
        assert cell["steps_per_epoch"] == math.ceil(SAMPLES / batch)
        assert cell["epoch_seconds"] == cell["steps_per_epoch"] * cell["step_seconds"]
        assert (cell["whole_epoch_seconds"] is not None) == (batch == 200)
        assert 0 < cell["step_seconds"] < cell["seconds"]
    (failed,) = result["failed"]
    assert (failed["workers"], failed["batch_size"]) == (2, 100)
    assert failed["reason"] == "ValueError: no batch of 100, please"
    assert 0 < result["startup_seconds"] < result["seconds"]
    assert told.checkpoint is None


@pytest.mark.parametrize(
    "told",
    [
        SimpleNamespace(return_value=RESULT, metrics=None),
        SimpleNamespace(metrics={PROFILE: RESULT}),
        {PROFILE: RESULT, "epoch": 1},
    ],
)
def test_a_profile_is_read_from_a_result_or_a_report(told: object) -> None:
    assert read_profile(told) == RESULT


@pytest.mark.parametrize(
    "told", [None, {}, {PROFILE: {"workers": 2}}, SimpleNamespace(return_value=[1.0], metrics={})]
)
def test_a_run_that_was_no_profile_has_none(told: object) -> None:
    with pytest.raises(InvalidProfileError, match="Pass what TorchTrainer"):
        read_profile(told)


@pytest.mark.parametrize(
    ("cells", "settings"),
    [
        ([], {}),
        ([(0, 32)], {}),
        ([(1, 0)], {}),
        ([(1, 32)], {"steps": 0}),
        ([(1, 32)], {"least_steps": 0}),
        ([(1, 32)], {"warmup": 0}),
        ([(1, 32)], {"samples": 0}),
        ([(1, 32)], {"timeout_seconds": 0.0}),
    ],
)
def test_a_profile_needs_cells_steps_and_time(
    cells: list[tuple[int, int]], settings: dict[str, Any]
) -> None:
    with pytest.raises(InvalidProfileError, match="a profile must have cells"):
        profile_loop(train, cells, **settings)
