"""A loader whose batches are shared by all workers, each taking the part that suits it."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import torch

from raycosttune.train.counting import Pair
from raycosttune.train.current import CURRENT
from raycosttune.train.noise import NoiseMeter
from raycosttune.train.rebalancer import Measured, Rebalancer
from raycosttune.train.settings import heed_idle_policy, installed
from raycosttune.train.step import Step, StepClock


class Parts(Protocol):
    """Says what the batches are that a loader hands out.

    Attributes:
        epoch: Number of the epoch that is next drawn, from 0.
        position: Steps drawn so far, over all epochs.
        steps: What the batches that were drawn, but not handed out yet, are.
    """

    epoch: int
    position: int
    steps: deque[Step]

    def __len__(self) -> int:
        """Returns the batches of an epoch."""


class SharedLoader:
    """Yields this worker's part of each batch, and adjusts the shares between epochs.

    Made by `prepare_data_loader`. All workers iterate over it together; each call of `iter`
    is an epoch.

    Args:
        batches: What is loaded, this worker's parts only.
        parts: Says what these are.
        rebalancer: Knows the shares.
        clock: Times the steps.
        place: Where tensors go, None to leave them.
        counted: Adds to what each batch is what counts in the loss, where that isn't samples.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        parts: Parts,
        rebalancer: Rebalancer,
        clock: StepClock,
        place: torch.device | None,
        counted: Callable[[Iterable[Pair]], Iterator[Pair]] = iter,
    ) -> None:
        self.rebalancer = rebalancer
        self._batches = batches
        self._parts = parts
        self._clock = clock
        self._place = place
        self._counted = counted
        self._noise = NoiseMeter()
        self._epoch = 0
        self._since = 0

    def __len__(self) -> int:
        """Returns the batches of an epoch, which are as many on every worker."""
        return len(self._parts)

    @property
    def shares(self) -> tuple[int, ...]:
        """Samples of a step on each worker, as the last adjustment left them."""
        return self.rebalancer.plan.latest

    @property
    def measured(self) -> Measured | None:
        """What the workers did up to the last adjustment, None before the first."""
        return self.rebalancer.latest

    def set_epoch(self, epoch: int) -> None:
        """Says which epoch comes next, from 0: its number decides its order."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        """Yields batches as PyTorch's DataLoader does, on this worker's device."""
        self._adjust()
        self._parts.epoch, self._epoch = self._epoch, self._epoch + 1
        pairs = self._counted((batch, self._parts.steps.popleft()) for batch in self._batches)
        while True:
            self._fetch()
            try:
                batch, step = next(pairs)
            except StopIteration:
                break
            self._since += step.is_last
            self._clock.start(step)
            CURRENT.step, CURRENT.clock, CURRENT.noise = step, self._clock, self._noise
            CURRENT.feeder = self.rebalancer
            yield batch if self._place is None else moved(batch, self._place)
        CURRENT.step = None
        if CURRENT.averaging is not None:
            CURRENT.averaging.average()
        self._adjust()
        if CURRENT.rebalancer is None:
            heed_idle_policy()

    def _fetch(self) -> None:
        self._clock.fetch()
        self._noise.settle()
        step, averaging = CURRENT.step, CURRENT.averaging
        waited = averaging is not None and step is not None and averaging.count(step)
        every = installed().every_steps
        if every is not None and self._since >= every:
            self._adjust()
            waited = True
        if waited:
            self._clock.fetch()

    def _adjust(self) -> None:
        """Takes in what was trained since the last time, if anything was."""
        timing, terms, self._since = self._clock.read(), self._noise.read(), 0
        if timing.steps:
            self.rebalancer.adjust(timing, terms, self._parts.position)


def moved(batch: Any, place: torch.device) -> Any:  # noqa: ANN401 - whatever a loader yields
    """Returns a batch with its tensors on a device, in the containers that it had."""
    if hasattr(batch, "to"):
        return batch.to(place, non_blocking=True) if torch.is_tensor(batch) else batch.to(place)
    if isinstance(batch, Mapping):
        return {key: moved(value, place) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(moved(value, place) for value in batch))
    if isinstance(batch, list | tuple):
        return type(batch)(moved(value, place) for value in batch)
    return batch
