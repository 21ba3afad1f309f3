"""Trains on the digits with equal shares and with balanced ones: is accuracy the same?"""

import math
import statistics
import time
from typing import Any

import torch
from rebalance_world import Tell, World
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from raycosttune.core.rebalance import Policy
from raycosttune.train import prepare_data_loader, prepare_model, rebalance

SAMPLE_SECONDS = (0.0001, 0.0002, 0.0006)
BATCH, EPOCHS, SEEDS = 96, 12, 10
Shares = tuple[int, ...]


def train(
    tell: Tell, rank: int, policy: Policy | None, seed: int, epochs: int
) -> tuple[float, Shares]:
    """Trains a network on the digits, and returns its test accuracy and the last shares."""
    restore = None if policy is None else rebalance(policy)
    images, tests, labels, truth = _digits()
    loader = prepare_data_loader(TensorDataset(images, labels), batch_size=BATCH, seed=1000 * seed)
    torch.manual_seed(seed)
    layers = (torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    model = prepare_model(torch.nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    tell()
    for _ in range(epochs):
        for inputs, target in loader:
            time.sleep(SAMPLE_SECONDS[rank] * len(inputs))
            optimizer.zero_grad()
            cross_entropy(model(inputs), target).backward()
            optimizer.step()
        tell()
    with torch.no_grad():
        model.eval()
        hits = (model(tests).argmax(1) == truth).sum()
    if restore is not None:
        restore()
    return float(hits) / len(tests), loader.rebalancer.plan.latest


def _digits() -> list[torch.Tensor]:
    digits = load_digits()
    parts = train_test_split(
        digits.data / 16, digits.target, test_size=0.3, random_state=0, stratify=digits.target
    )
    images, tests, labels, truth = map(torch.tensor, parts)
    return [images.float(), tests.float(), labels, truth]


def run_accuracy(policy: Policy, epochs: int | None, seeds: int | None) -> dict[str, Any]:
    """Trains with each seed, once with equal shares and once with balanced ones.

    Args:
        policy: What balances.
        epochs: Epochs of a run.
        seeds: How many.
    """
    off: list[float] = []
    on: list[float] = []
    seconds = [0.0, 0.0]
    shares: Shares = ()
    with World(len(SAMPLE_SECONDS)) as world:
        for seed in range(seeds or SEEDS):
            for k, (accuracies, by) in enumerate(((off, None), (on, policy))):
                run = world.run(train, by, seed, epochs or EPOCHS)
                accuracy, shares = run.answers[0]
                accuracies.append(accuracy)
                seconds[k] += sum(run.epoch_seconds)
    differences = [one - other for one, other in zip(on, off, strict=True)]
    noise = statistics.stdev(off)
    return {
        "accuracy_off": statistics.fmean(off),
        "accuracy_on": statistics.fmean(on),
        "difference": statistics.fmean(differences),
        "largest_difference": max(map(abs, differences)),
        "seed_noise": noise,
        "seed_noise_of_mean": noise / math.sqrt(len(off)),
        "seeds": len(off),
        "saving": 1 - seconds[1] / seconds[0],
        "shares": shares,
        "each_off": off,
        "each_on": on,
    }
