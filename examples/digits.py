"""Trains a small network on scikit-learn's digits with Ray Train: the job of the examples.

An ordinary Ray Train loop, with three habits that make runs on any number of workers
comparable: all workers draw the same order of samples and take their slice of each global
batch, gradients are the mean over that batch, and a restarted run goes on after its last
checkpoint.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray.train
import torch
import torch.distributed as dist
from digits_task import SHIFTS, WIDTH, Samples, load, network
from ray.train.torch import prepare_model
from torch import nn
from torch.nn.functional import cross_entropy

MAX_EPOCHS = 60


def train_loop(config: dict[str, Any]) -> None:
    """Trains until the run is stopped, its epochs are done or its own target is reached.

    Args:
        config: `batch_size` (global) and `lr` (for that batch); optionally `width` of the
            network, `seed` of its weights and of the order of samples, `epochs` to train at
            most, and `target`, an accuracy at which the loop ends by itself.
    """
    torch.set_num_threads(1)
    seed = config.get("seed", 0)
    torch.manual_seed(seed)
    training, held_out = load()
    model = prepare_model(network(config.get("width", WIDTH)))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
    for epoch in range(resume(model, optimizer) + 1, config.get("epochs", MAX_EPOCHS) + 1):
        train_epoch(model, optimizer, training, config["batch_size"], seed * 1000 + epoch)
        accuracy = evaluate(model, held_out)
        with saved(model, optimizer, epoch) as checkpoint:
            ray.train.report({"accuracy": accuracy, "epoch": epoch}, checkpoint=checkpoint)
        if accuracy >= config.get("target", 2):
            break


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    samples: Samples,
    batch_size: int,
    seed: int,
) -> None:
    """Passes once over the samples, in global batches that all workers share evenly."""
    rank, workers = place()
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(samples.labels), generator=generator)
    images = samples.shifted(torch.randint(len(SHIFTS), order.shape, generator=generator))
    for batch in torch.split(order, batch_size):
        share = batch.tensor_split(workers)[rank]
        loss = cross_entropy(model(images[share]), samples.labels[share], reduction="sum")
        optimizer.zero_grad()
        # DDP takes the mean over workers; this makes it the mean over the global batch,
        # also where the last batch of an epoch does not split evenly.
        (loss * workers / len(batch)).backward()
        optimizer.step()


def evaluate(model: nn.Module, samples: Samples) -> float:
    """Returns the accuracy; each worker judges its share of the samples."""
    rank, workers = place()
    images = samples.images.tensor_split(workers)[rank]
    labels = samples.labels.tensor_split(workers)[rank]
    with torch.no_grad():
        right = (unwrapped(model)(images).argmax(1) == labels).sum()
    if workers > 1:
        dist.all_reduce(right)
    return int(right) / len(samples.labels)


def place() -> tuple[int, int]:
    """Returns this worker's rank and the number of workers."""
    context = ray.train.get_context()
    return context.get_world_rank(), context.get_world_size()


def unwrapped(model: nn.Module) -> nn.Module:
    """Returns the network inside DDP, or the network itself where one worker trains."""
    return model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model


def resume(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Loads the run's last checkpoint and returns its epoch, 0 where there is none."""
    checkpoint = ray.train.get_checkpoint()
    if checkpoint is None:
        return 0
    with checkpoint.as_directory() as folder:
        state = torch.load(Path(folder) / "state.pt", weights_only=True)
    unwrapped(model).load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["epoch"])


@contextmanager
def saved(
    model: nn.Module, optimizer: torch.optim.Optimizer, epoch: int
) -> Iterator[ray.train.Checkpoint | None]:
    """Yields a checkpoint on the first worker, and None on the others, which hold the same."""
    if place()[0] != 0:
        yield None
        return
    state = {"model": unwrapped(model).state_dict(), "optimizer": optimizer.state_dict()}
    with tempfile.TemporaryDirectory() as folder:
        torch.save({**state, "epoch": epoch}, Path(folder) / "state.pt")
        yield ray.train.Checkpoint.from_directory(folder)
