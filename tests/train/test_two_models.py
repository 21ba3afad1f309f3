"""Two models that are trained in one step, each by its own loss, as in adversarial training."""

import time
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from raycosttune.train.batch_sampler import shuffled
from raycosttune.train.data import prepare_data_loader
from raycosttune.train.model import prepare_model
from raycosttune.train.settings import Settings, install
from tests.train.jobs import Scripted, flat
from tests.train.world import run_world

SAMPLES, BATCH, EPOCHS = 46, 9, 4
SCRIPT = ((5, 3, 1), (1, 1, 7), (0, 4, 5), (9, 0, 0))


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    real = torch.randn(SAMPLES, 3, generator=generator, dtype=torch.float64)
    return real.cumsum(1), torch.randn(SAMPLES, 2, generator=generator, dtype=torch.float64)


def networks() -> list[torch.nn.Module]:
    torch.manual_seed(0)
    return [torch.nn.Linear(2, 3).double(), torch.nn.Linear(3, 1).double()]


def fit(models: Sequence[torch.nn.Module], batches: Iterator[Any]) -> None:
    """Trains a judge to tell real samples from made ones, and a maker to deceive it."""
    softplus = torch.nn.functional.softplus
    steps = [torch.optim.SGD(model.parameters(), 0.05, momentum=0.9) for model in models]
    maker, judge = models
    for real, seed in batches:
        made = maker(seed)
        steps[1].zero_grad()
        (softplus(-judge(real)) + softplus(judge(made.detach()))).mean().backward()
        steps[1].step()
        steps[0].zero_grad()
        softplus(-judge(made)).mean().backward()
        steps[0].step()


def train_two() -> list[float]:
    """Trains on all workers; runs on each of them."""
    restore = install(Settings(policy=Scripted(SCRIPT)))
    loader = prepare_data_loader(TensorDataset(*data()), batch_size=BATCH)
    models = [prepare_model(model) for model in networks()]
    fit(models, (batch for _ in range(EPOCHS) for batch in loader))
    restore()
    noise = loader.rebalancer.noise.samples
    assert noise is None or noise >= 0
    return [*flat(models[0]), *flat(models[1])]


def train_two_alone() -> list[float]:
    real, seed = data()
    order = shuffled(SAMPLES, 0, shuffle=True)
    blocks = [
        list(order(epoch))[k : k + BATCH]
        for epoch in range(EPOCHS)
        for k in range(0, SAMPLES, BATCH)
    ]
    models = networks()
    fit(models, ((real[block], seed[block]) for block in blocks))
    return [*flat(models[0]), *flat(models[1])]


@pytest.mark.slow
def test_both_learn_what_they_would_in_one_process(tmp_path: Path) -> None:
    alone = np.array(train_two_alone())
    for told in run_world(3, train_two, store=tmp_path / "store"):
        assert np.abs(np.array(told) - alone).max() < 1e-12
    assert np.abs(np.array(train_two()) - alone).max() < 1e-12


class Slow(torch.autograd.Function):
    """Passes a tensor on, and pauses in the backward pass."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, seconds: float) -> torch.Tensor:
        ctx.seconds = seconds
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        time.sleep(ctx.seconds)
        return gradients[0], None


class Pausing(torch.nn.Linear):
    seconds = 0.0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return Slow.apply(super().forward(inputs), self.seconds)  # type: ignore[no-any-return,no-untyped-call]


def time_two() -> list[list[float]]:
    """Has each worker slow in another of two models; runs on each of two workers.

    Returns:
        Seconds of a step on each worker in the epoch that the machine held up least, where one
        backward pass goes through both models, and where each has its own.
    """
    told = []
    for is_joint in (True, False):
        loader = prepare_data_loader(TensorDataset(torch.ones(8, 2)), batch_size=4)
        models: list[Any] = [prepare_model(Pausing(2, 2)) for _ in range(2)]
        rank = loader.rebalancer.rank
        models[0].module.seconds, models[1].module.seconds = ((0.1, 0.0), (0.0, 0.25))[rank]
        for (batch,) in chain.from_iterable(repeat(loader, 4)):
            if is_joint:
                models[1](models[0](batch)).sum().backward()
            else:
                losses = [model(batch).sum() for model in models]
                for loss in losses:
                    loss.backward()
        logs = loader.rebalancer.logs
        told.append([min(sample.seconds for sample in log.samples) for log in logs])
    return told


@pytest.mark.slow
def test_compute_is_timed_to_the_last_of_two_models(tmp_path: Path) -> None:
    for first, second in run_world(2, time_two, store=tmp_path / "store")[0]:
        assert 0.1 <= first < 0.2
        assert 0.25 <= second < 0.33
