"""Training jobs that workers of a test run, and the single process that they must equal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset

from raycosttune.core.rebalance import WorkerLog
from raycosttune.train.batch_sampler import shuffled
from raycosttune.train.data import prepare_data_loader
from raycosttune.train.model import prepare_model
from raycosttune.train.settings import Settings, install

Shares = tuple[int, ...]


@dataclass(frozen=True)
class Scripted:
    """Is a policy that changes the shares as a script says, after each round to the next."""

    script: tuple[Shares, ...]
    name: str = "scripted"

    def plan(self, workers: Sequence[WorkerLog], shares: Shares, total: int) -> Shares:
        del total
        rounds = [sample.round for log in workers for sample in log.samples]
        return self.script[max(rounds, default=0) % len(self.script)] if rounds else shares


@dataclass(frozen=True)
class Job:
    """Is a small regression.

    Attributes:
        samples: Samples of an epoch.
        batch_size: Global batch.
        script: Shares of each epoch after the first.
        epochs: Epochs.
        optimizer: "sgd" with momentum, or "adam".
        accumulate: Parts of a step that the loader makes.
        window: Batches over which the loop accumulates by itself.
        dtype: Of everything.
        every_steps: Steps between adjustments within an epoch.
        num_workers: Processes that load.
        is_by_tokens: Whether the loss is a mean over tokens, which some samples lack.
    """

    samples: int
    batch_size: int
    script: tuple[Shares, ...]
    epochs: int = 4
    optimizer: str = "sgd"
    accumulate: int = 1
    window: int = 1
    dtype: str = "float64"
    every_steps: int | None = None
    num_workers: int = 0
    is_by_tokens: bool = False

    def loss(self, model: torch.nn.Module, inputs: torch.Tensor, target: torch.Tensor) -> Any:
        if not self.is_by_tokens:
            return mse_loss(model(inputs), target)
        mask = tokens(inputs)
        return (mask * (model(inputs) - target).square()).sum() / mask.sum()

    def data(self) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(1)
        inputs = torch.randn(self.samples, 6, generator=generator, dtype=torch.float64)
        target = inputs.sum(1, keepdim=True).sin() + 0.1 * inputs[:, :1]
        dtype = getattr(torch, self.dtype)
        return inputs.to(dtype), target.to(dtype)

    def network(self) -> torch.nn.Module:
        torch.manual_seed(0)
        layers = (torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        return torch.nn.Sequential(*layers).to(getattr(torch, self.dtype))

    def make_optimizer(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        if self.optimizer == "adam":
            return torch.optim.Adam(model.parameters(), lr=0.01)
        return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def tokens(inputs: torch.Tensor) -> torch.Tensor:
    """Returns 0 to 3 for each sample, without any pattern."""
    return (inputs[:, :1] * 1e4).long().remainder(4)


@dataclass(frozen=True)
class Trained:
    """Is what a worker ended with: weights, steps of each epoch, and its shares at their ends."""

    weights: list[float]
    steps: list[int]
    shares: list[Shares]
    noise_scale: float | None


def train(job: Job) -> Trained:
    """Trains on all workers together; runs on each of them."""
    restore = install(Settings(policy=Scripted(job.script), every_steps=job.every_steps))
    options: dict[str, Any] = {}
    if job.num_workers:
        options = {"num_workers": job.num_workers, "multiprocessing_context": "fork"}
    loader = prepare_data_loader(
        TensorDataset(*job.data()),
        batch_size=job.batch_size,
        accumulate=job.accumulate,
        count=(lambda batch: tokens(batch[0]).sum()) if job.is_by_tokens else None,
        **options,
    )
    model = prepare_model(job.network())
    optimizer = job.make_optimizer(model)
    window = job.window * job.accumulate
    steps, shares = [], []
    for _ in range(job.epochs):
        count = 0
        for k, (inputs, target) in enumerate(loader, 1):
            is_last = k % window == 0 or k == len(loader)
            if job.window > 1:
                exchange_gradients(model, wanted=is_last)
            (job.loss(model, inputs, target) / window).backward()
            if is_last:
                optimizer.step()
                optimizer.zero_grad()
            count += 1
        steps.append(count)
        shares.append(loader.rebalancer.plan.latest)
    restore()
    return Trained(flat(model), steps, shares, loader.rebalancer.noise.samples)


def exchange_gradients(model: torch.nn.Module, *, wanted: bool) -> None:
    """Does what DistributedDataParallel.no_sync does, for one pass."""
    if isinstance(model, DistributedDataParallel):
        model.require_backward_grad_sync = wanted


def train_alone(job: Job) -> list[float]:
    """Trains in plain PyTorch on the same global batches, and returns the weights."""
    inputs, target = job.data()
    model = job.network()
    optimizer = job.make_optimizer(model)
    order = shuffled(job.samples, 0, shuffle=True)
    for epoch in range(job.epochs):
        permuted = list(order(epoch))
        blocks = [permuted[k : k + job.batch_size] for k in range(0, job.samples, job.batch_size)]
        for k, block in enumerate(blocks, 1):
            (job.loss(model, inputs[block], target[block]) / job.window).backward()
            if k % job.window == 0 or k == len(blocks):
                optimizer.step()
                optimizer.zero_grad()
    return flat(model)


def flat(model: torch.nn.Module) -> list[float]:
    """Returns all weights in a row."""
    weights = torch.cat([p.detach().flatten().double().cpu() for p in model.parameters()])
    listed: list[float] = weights.tolist()
    return listed


TRUE_NOISE_SCALE = 8.0


class Product(torch.nn.Module):
    """Is a model whose gradient over a batch is the mean of its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(16, dtype=torch.float64))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs @ self.weight


def measure_noise(script: tuple[Shares, ...], accumulate: int, window: int) -> float | None:
    """Measures the noise scale of inputs whose noise is known; runs on each worker."""
    restore = install(Settings(policy=Scripted(script)))
    generator = torch.Generator().manual_seed(2)
    mean = torch.full((16,), 0.5, dtype=torch.float64)  # its square is 4
    spread = (TRUE_NOISE_SCALE * 4 / 16) ** 0.5
    inputs = mean + spread * torch.randn(9_600, 16, generator=generator, dtype=torch.float64)
    loader = prepare_data_loader(TensorDataset(inputs), batch_size=24, accumulate=accumulate)
    model = prepare_model(Product())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    window *= accumulate
    for _ in range(2):
        for k, (batch,) in enumerate(loader, 1):
            if window > accumulate:
                exchange_gradients(model, wanted=k % window == 0)
            (model(batch).mean() / window).backward()
            if k % window == 0:
                optimizer.step()
                optimizer.zero_grad()
    restore()
    return loader.rebalancer.noise.samples
