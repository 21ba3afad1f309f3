"""Jobs that probes take steps of, in processes that import them by name."""

import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import IterableDataset, TensorDataset

from raycosttune.train.probe_job import Job

SAMPLES = 12


def loss(model: nn.Module, batch: Any) -> Tensor:
    images, labels = batch
    return cross_entropy(model(images), labels)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(4, 6, 3, stride=2),
        nn.Flatten(),
        nn.Linear(6 * 3 * 3, 5),
    )


def small() -> Job:
    images = torch.randn(SAMPLES, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    return Job(network(), TensorDataset(images, torch.arange(SAMPLES) % 5), loss)


class Wide(nn.Module):
    """Keeps 8 MB for each sample until the backward pass."""

    example_input_array = torch.zeros(1, 1)

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1_000_000))

    def forward(self, x: Tensor) -> Tensor:
        return (x[:, :1] * self.scale * self.scale).mean(1)


def wide() -> Job:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        mean: Tensor = model(batch[0]).mean()
        return mean

    return Job(Wide(), TensorDataset(torch.randn(SAMPLES, 1)), loss)


def greedy() -> Job:
    def loss(model: nn.Module, batch: Any) -> NoReturn:
        del model, batch
        torch.empty(2**60)
        raise AssertionError

    return Job(network(), small().dataset, loss)


class Endless(IterableDataset[Tensor]):
    """Has no length."""

    def __iter__(self) -> Iterator[Tensor]:
        return iter(())


def endless() -> Job:
    return Job(network(), Endless(), loss)


def empty() -> Job:
    return Job(network(), TensorDataset(torch.zeros(0, 3)), loss)


def wants(config: object) -> Job:
    del config
    return small()


def alone() -> nn.Module:
    return network()


def leaving() -> NoReturn:
    sys.exit(3)


def no_job() -> str:
    return "a job"


def broken() -> Job:
    msg = "no data here"
    raise OSError(msg)
