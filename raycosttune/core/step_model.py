"""Seconds of an epoch by formula: Pollux' step time, every term positive by construction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raycosttune.advise import log_step_seconds, ring_power
from raycosttune.core.array import Floats, Ints
from raycosttune.core.space import Allocation


class Free(NamedTuple):
    """Names the numbers of the law, all of them free of sign.

    Attributes:
        scale: Log seconds that a worker computes for one data set.
        step: Log cost of a step at any batch, in typical local batches.
        sync: Log of what two workers' exchange takes, over the compute of a typical step.
        more: Power at which an exchange grows with the workers.
        jump: Log of what an exchange takes across nodes, over the same on one.
        farther: Power at which that grows with the nodes.
        overlap: Log of gamma - 1: how far exchange hides behind compute.
        epoch: Log cost of an epoch at any batch, in data sets.
    """

    scale: float
    step: float
    sync: float
    more: float
    jump: float
    farther: float
    overlap: float
    epoch: float


RING = ring_power(16)
# What holds of a job that nobody has seen. People choose batches around those that fill a
# device: a step's fixed cost is that of half a typical local batch, within a factor of 7. An
# exchange takes a third of the compute, within 4; it grows with the workers as a ring's does;
# networks are 2 to 3 times slower than what joins the workers of a node. Gamma lies about 2
# (Pollux: 1 to 10). Evaluation and loading add a hundredth. The scale is read off the data.
PRIOR_MEAN = np.array(
    Free(
        scale=0.0,
        step=np.log(0.5),
        sync=np.log(0.3),
        more=RING,
        jump=0.9,
        farther=RING,
        overlap=0.0,
        epoch=np.log(0.01),
    )
)
PRIOR_SD = np.array(
    Free(
        scale=3.0,
        step=2.0,
        sync=1.5,
        more=0.35,
        jump=0.8,
        farther=0.35,
        overlap=1.0,
        epoch=1.5,
    )
)
Bools = NDArray[np.bool_]
NO_SYNC = -1e3


class Law(NamedTuple):
    """Is the law at one place of its numbers.

    Attributes:
        values: Log seconds of an epoch, shape (cells,).
        slopes: Their derivatives by the numbers of `Free`, shape (cells, 8).
    """

    values: Floats
    slopes: Floats

    @property
    def sync(self) -> Floats:
        """The share of the exchange in the time, shape (cells,)."""
        return self.slopes[:, Free._fields.index("sync")]


@dataclass(frozen=True)
class StepModel:
    """Computes the law over some cells.

    With local batches in units of the typical one and all else in its compute,

        T = scale (step / b + epoch),  step = (compute^gamma + sync^gamma)^(1 / gamma),
        compute = step cost + local batch,
        sync = (1 + step cost) sync (n / 2)^more, 0 for one worker,
            on several nodes times jump (nodes / 2)^farther.

    Attributes:
        local: Local batch over the typical one, shape (cells,), as all that follows.
        batch: Global batch over the typical local one.
        is_single: Whether there is one worker.
        pairs: Log of half the workers.
        is_far: 1 on several nodes, else 0.
        far_pairs: Log of half the nodes, 0 on one.

    References:
        Qiao et al. 2021, Pollux, section 3.2. Its exchange grows linearly; a power also
        holds what stays level, as the bandwidth of a ring does.
    """

    local: Floats
    batch: Floats
    is_single: Bools
    pairs: Floats
    is_far: Floats
    far_pairs: Floats

    @classmethod
    def of(cls, cells: Sequence[Allocation]) -> "StepModel":
        """Returns the model over some cells, whose local batches' geometric mean is typical."""
        workers = np.array([cell.workers for cell in cells], dtype=np.float64)
        nodes = np.array([cell.nodes for cell in cells], dtype=np.float64)
        local = np.array([cell.local_batch for cell in cells], dtype=np.float64)
        batch = np.array([cell.batch_size for cell in cells], dtype=np.float64)
        typical = np.exp(np.log(local).mean())
        return cls(
            local / typical,
            batch / typical,
            workers == 1,
            np.log(np.maximum(workers, 2) / 2),
            np.where(nodes > 1, 1.0, 0.0),
            np.log(np.maximum(nodes, 2) / 2),
        )

    def at(self, places: Ints) -> "StepModel":
        """Returns the model over some of the cells."""
        return StepModel(
            self.local[places],
            self.batch[places],
            self.is_single[places],
            self.pairs[places],
            self.is_far[places],
            self.far_pairs[places],
        )

    def law(self, free: Floats) -> Law:
        """Returns log seconds and slopes at the numbers of `Free`, shape (8,)."""
        scale, step, sync, more, jump, farther, overlap, epoch = free
        fixed, gamma = np.exp(step), 1 + np.exp(overlap)
        compute = np.log(fixed + self.local)
        exchange = sync + np.log1p(fixed) + more * self.pairs
        exchange = exchange + jump * self.is_far + farther * self.far_pairs
        exchange = np.where(self.is_single, NO_SYNC, exchange)
        log_step = log_step_seconds(compute, exchange, gamma)
        computing = np.exp(gamma * (compute - log_step))
        exchanging = np.exp(gamma * (exchange - log_step))
        steps = np.exp(log_step) / self.batch
        whole = steps + np.exp(epoch)
        stepping = steps / whole
        synced = stepping * exchanging
        mixed = computing * compute + exchanging * exchange
        slopes = [
            np.ones_like(whole),
            stepping * computing * fixed / (fixed + self.local) + synced * fixed / (1 + fixed),
            synced,
            synced * self.pairs,
            synced * self.is_far,
            synced * self.far_pairs,
            stepping * (gamma - 1) / gamma * (mixed - log_step),
            1 - stepping,
        ]
        return Law(scale + np.log(whole), np.stack(slopes, axis=1))
