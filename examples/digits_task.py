"""Holds what the examples learn: scikit-learn's digits, moved about, and a small network for them.

It needs no Ray: what only measures the job starts sooner.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

Criterion = Callable[[Tensor, Tensor], Tensor]
TRAINING_SAMPLES = 1437
WIDTH = 96
# One pixel to each side: shifted digits make the task harder and the accuracy smoother.
SHIFTS = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (-1, -1), (1, -1), (-1, 1))
HELD_OUT_SHIFTS = 5


@dataclass(frozen=True)
class Samples:
    """Holds images and their labels.

    Attributes:
        images: [samples, 1, 8, 8], brightness in [0, 1].
        labels: [samples], digits from 0 to 9.
    """

    images: Tensor
    labels: Tensor

    def shifted(self, choices: Tensor) -> Tensor:
        """Returns the images, each moved by one of SHIFTS: [samples, 1, 8, 8].

        Args:
            choices: [samples], positions in SHIFTS.
        """
        moved = self.images.clone()
        for number, shift in enumerate(SHIFTS):
            chosen = choices == number
            moved[chosen] = torch.roll(self.images[chosen], shift, (2, 3))
        return moved


def load() -> tuple[Samples, Samples]:
    """Returns the training samples and the held-out ones, the latter at five places each."""
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    pixels = torch.tensor(images / 16, dtype=torch.float32).view(-1, 1, 8, 8)[order]
    digits = torch.tensor(labels)[order]
    training = Samples(pixels[:TRAINING_SAMPLES], digits[:TRAINING_SAMPLES])
    held_out = Samples(
        pixels[TRAINING_SAMPLES:].repeat(HELD_OUT_SHIFTS, 1, 1, 1),
        digits[TRAINING_SAMPLES:].repeat(HELD_OUT_SHIFTS),
    )
    places = torch.arange(HELD_OUT_SHIFTS).repeat_interleave(len(labels) - TRAINING_SAMPLES)
    return training, Samples(held_out.shifted(places), held_out.labels)


def network(width: int) -> nn.Module:
    """Returns three convolutions and a linear layer over `width` to 2 x `width` channels."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(2 * width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * width * 16, 10),
    )


def make_job() -> tuple[nn.Module, TensorDataset, Criterion]:
    """Returns what a worker trains: model, dataset and loss."""
    training, _ = load()
    dataset = TensorDataset(training.images, training.labels)
    return network(WIDTH), dataset, cross_entropy
