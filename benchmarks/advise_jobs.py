"""Jobs that advice is checked on."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import Dataset

from raycosttune.train.probe_job import Job

DRAWN = 64


class Noise(Dataset[tuple[Tensor, int]]):
    """Holds a few random inputs, shown again and again."""

    def __init__(self, shape: tuple[int, ...], samples: int = 50_000) -> None:
        self._inputs = torch.randn(DRAWN, *shape, generator=torch.Generator().manual_seed(0))
        self._samples = samples

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, number: int) -> tuple[Tensor, int]:
        return self._inputs[number % DRAWN], number % 10


def loss(model: nn.Module, batch: Any) -> Tensor:
    """Returns the mean loss of a batch."""
    inputs, labels = batch
    return cross_entropy(model(inputs), labels)


def cnn() -> Job:
    """Returns a small convolutional network with few parameters and much compute."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = (
        nn.Conv2d(3, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    return Job(nn.Sequential(*layers), Noise((3, 32, 32)), loss)


def mlp() -> Job:
    """Returns a network whose parameters are many for its compute."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = (
        nn.Linear(512, 1024),
        nn.ReLU(),
        nn.Linear(1024, 1024),
        nn.ReLU(),
        nn.Linear(1024, 1024),
        nn.ReLU(),
        nn.Linear(1024, 10),
    )
    return Job(nn.Sequential(*layers), Noise((512,)), loss)


def images() -> Job:
    """Returns a network whose feature maps take most of its memory."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = (
        nn.Conv2d(3, 24, 3, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.Conv2d(24, 24, 1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.MaxPool2d(4),
        nn.Conv2d(24, 48, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, 10),
    )
    return Job(nn.Sequential(*layers), Noise((3, 64, 64)), loss)


class Wide(nn.Module):
    """Keeps a few large pieces for each sample, of which glibc keeps those of small batches."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(200_000))

    def forward(self, inputs: Tensor) -> Tensor:
        """Returns a number for each sample."""
        mean: Tensor = (inputs * self.scale * self.scale).mean(1)
        return mean


def wide() -> Job:
    """Returns a job whose small batches take more memory than larger ones."""
    torch.set_num_threads(1)

    def mean(model: nn.Module, batch: Any) -> Tensor:
        value: Tensor = model(batch[0]).mean()
        return value

    return Job(Wide(), Noise((1,)), mean)
