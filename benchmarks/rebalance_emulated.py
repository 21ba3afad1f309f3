"""Workers whose compute is a pause: scenarios with equal shares and with balanced ones."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import rebalance_paces as paces
import torch
from rebalance_world import Tell
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from raycosttune.core.rebalance import Policy
from raycosttune.train import prepare_data_loader, prepare_model, rebalance

SEED = 1
Figures = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    """Is a job for emulated workers.

    Attributes:
        sample_seconds: Seconds for a sample on a worker of speed 1.
        local_batch: Samples of a step on each worker where shares are equal.
        steps: Steps of an epoch.
        epochs: Epochs by default.
        repeats: Pairs of runs by default.
    """

    sample_seconds: float
    local_batch: int
    steps: int
    epochs: int
    repeats: int

    @property
    def step_seconds(self) -> float:
        """Seconds of a step on equal workers of speed 1."""
        return self.sample_seconds * self.local_batch


SCENARIOS = {
    "hetero": Scenario(0.010, 16, 4, 5, 3),
    "burst": Scenario(0.002, 64, 4, 32, 1),
    "drift": Scenario(0.002, 64, 4, 32, 1),
    "equal": Scenario(0.010, 16, 6, 12, 2),
}


@dataclass(frozen=True)
class Told:
    """Is what a worker measured: seconds of each epoch, and the shares in each."""

    seconds: list[float]
    shares: list[tuple[int, ...]]


def train(
    tell: Tell,
    rank: int,
    policy: Policy | None,
    epochs: Sequence[paces.Workers],
    local_batch: int,
    steps: int,
) -> Told:
    """Trains with a pause for each sample; runs on each worker."""
    if policy is not None:
        restore = rebalance(policy)
    total = local_batch * len(epochs[0])
    loader = prepare_data_loader(_data(total * steps), batch_size=total)
    model = prepare_model(_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seconds, shares = [], []
    tell()
    for workers in epochs:
        began = time.perf_counter()
        shares.append(loader.rebalancer.plan.latest)
        for inputs, target in loader:
            _step(workers[rank], model, optimizer, inputs, target)
        tell()
        seconds.append(time.perf_counter() - began)
    if policy is not None:
        restore()
    return Told(seconds, shares)


def train_both(
    tell: Tell,
    rank: int,
    policy: Policy,
    pairs: int,
    sample_seconds: float,
    local_batch: int,
    steps: int,
) -> list[tuple[int, ...]]:
    """Trains epochs of plain PyTorch and of ours in turn; runs on each worker.

    Ours comes first in every other pair, from the first on. A pair before them is not told.
    """
    del rank
    pace = paces.Pace(sample_seconds)
    restore = rebalance(policy)
    total = local_batch * torch.distributed.get_world_size()
    data = _data(total * steps)
    ours = prepare_data_loader(data, batch_size=total)
    sampler: DistributedSampler[Any] = DistributedSampler(data)
    plain: Any = DataLoader(data, batch_size=local_batch, sampler=sampler)
    models = {id(ours): prepare_model(_network()), id(plain): DistributedDataParallel(_network())}
    optimizers = {key: torch.optim.SGD(m.parameters(), lr=0.01) for key, m in models.items()}
    shares = []
    for pair in range(-1, pairs):
        for loader in (plain, ours) if pair % 2 else (ours, plain):
            sampler.set_epoch(pair + 1)
            for inputs, target in loader:
                _step(pace, models[id(loader)], optimizers[id(loader)], inputs, target)
            if pair >= 0 or loader is ours:
                tell()
        if pair >= 0:
            shares.append(ours.rebalancer.plan.latest)
    restore()
    return shares


def _data(samples: int) -> TensorDataset:
    inputs = torch.randn(samples, 16, generator=torch.Generator().manual_seed(SEED))
    return TensorDataset(inputs, inputs.sum(1, keepdim=True).sin())


def _network() -> torch.nn.Module:
    layers = (torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    return torch.nn.Sequential(*layers)


def _step(
    pace: paces.Pace,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    target: torch.Tensor,
) -> None:
    time.sleep(pace.seconds(len(inputs)))
    optimizer.zero_grad()
    mse_loss(model(inputs), target).backward()
    optimizer.step()
