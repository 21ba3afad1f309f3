"""Real compute on two pinned workers, of which one shares its core with other tasks."""

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from rebalance_world import Tell, World
from torch.nn.functional import mse_loss
from torch.utils.data import TensorDataset

from raycosttune.core.rebalance import Policy
from raycosttune.core.share import equal_shares
from raycosttune.train import prepare_data_loader, prepare_model, rebalance

WORKERS = 2
BATCH, STEPS, INPUTS, WIDTH = 4096, 16, 128, 768
EPOCHS, CALM_EPOCHS, REPEATS, SETTLING = 10, 6, 3, 2
BURN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(100000))"


def train(tell: Tell, rank: int, policy: Policy | None, epochs: int) -> list[tuple[int, ...]]:
    """Trains a network that keeps a core busy; returns the shares of each epoch."""
    del rank
    restore = None if policy is None else rebalance(policy)
    inputs = torch.randn(BATCH * STEPS, INPUTS, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True).sin())
    loader = prepare_data_loader(data, batch_size=BATCH)
    sizes = (INPUTS, WIDTH, WIDTH, 1)
    layers: list[torch.nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    model = prepare_model(torch.nn.Sequential(*layers[:-1]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    shares = []
    tell()
    for _ in range(epochs):
        shares.append(loader.rebalancer.plan.latest)
        for batch, target in loader:
            optimizer.zero_grad()
            mse_loss(model(batch), target).backward()
            optimizer.step()
        tell()
    if restore is not None:
        restore()
    return shares


@contextmanager
def burning(core: int, burners: int) -> Iterator[None]:
    """Keeps a core busy with so many other processes, which end with this one."""
    command = [sys.executable, "-c", BURN]
    processes = [subprocess.Popen(command) for _ in range(burners)]
    try:
        for process in processes:
            os.sched_setaffinity(process.pid, {core})
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_burner(
    policy: Policy, epochs: int | None, repeats: int | None, burners: int
) -> dict[str, Any]:
    """Measures how much of the time that burners cost is recovered.

    Each repeat trains undisturbed with equal shares, then beside the burners with equal shares and
    with balanced ones; medians of the epochs after the first two count.

    Args:
        policy: What balances.
        epochs: Epochs beside the burners.
        repeats: How often all is run.
        burners: Processes on the first worker's core.
    """
    cores = sorted(os.sched_getaffinity(0))[:WORKERS]
    rows, shares = [], []
    with World(WORKERS, cores) as world:
        for _ in range(repeats or REPEATS):
            calm = world.run(train, None, CALM_EPOCHS).epoch_seconds[SETTLING:]
            with burning(cores[0], burners):
                off = world.run(train, None, epochs or EPOCHS).epoch_seconds[SETTLING:]
                run = world.run(train, policy, epochs or EPOCHS)
            seconds = (calm, off, run.epoch_seconds[SETTLING:])
            shares.append(run.answers[0][-1])
            rows.append([statistics.median(each) for each in seconds])
    recovered = [(off - on) / (off - calm) for calm, off, on in rows]
    calm, off, on = (statistics.median(column) for column in zip(*rows, strict=True))
    best = calm * WORKERS / (1 + 1 / (1 + burners))
    return {
        "epoch_seconds_calm": calm,
        "epoch_seconds_off": off,
        "epoch_seconds_on": on,
        "epoch_seconds_best": best,
        "on_over_off": statistics.median(on / off for _, off, on in rows),
        "saving": 1 - statistics.median(on / off for _, off, on in rows),
        "makespan_over_optimum": on / best,
        "recovered": statistics.median(recovered),
        "recovered_at_best": (1 + burners - best / calm) / burners,
        "each_recovered": recovered,
        "burners": burners,
        "shares": shares[-1],
        "each_shares": shares,
        "shares_off": equal_shares(BATCH, WORKERS),
    }
