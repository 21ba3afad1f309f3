"""The exchange of gradients, each worker's counted by its samples."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import GradBucket  # type: ignore[attr-defined]  # public, but not typed so

from raycosttune.train.current import CURRENT
from raycosttune.train.step import Step


class Window:
    """Holds what the worker's gradient counts when it is next exchanged.

    A gradient may be accumulated over several batches of which this worker has different
    parts. It is exchanged with the weight of the first; what the others weigh otherwise is put
    right where their own gradient begins, at the model's outputs.

    Args:
        group: Process group of the model, None for one worker.

    Attributes:
        factor: Factor for the gradient of the outputs of the pass that runs.
        is_exchanged: Whether the loop wants an exchange after that pass, None between passes.
    """

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        self.group = group
        self.factor = 1.0
        self.is_exchanged: bool | None = None
        self._weight: float | None = None
        self._last: Step | None = None
        self._count = 0

    @property
    def weight(self) -> float:
        """Factor of this worker's gradient in the sum over all workers."""
        return 1 / dist.get_world_size(self.group) if self._weight is None else self._weight

    @property
    def batches(self) -> float:
        """Whole batches that went into the gradient."""
        return self._count / self._last.parts if self._last else 1.0

    def enter(self, step: Step, *, is_exchanged: bool) -> None:
        """Notes a pass through the model, and finds the factor for it.

        Args:
            step: What is passed.
            is_exchanged: Whether the gradient is exchanged in the backward pass that follows.
        """
        if step is not self._last:
            self._count += 1
        self._last = step
        if self.group is None:
            self.factor = step.weight
            return
        if self._weight is None:
            self._weight = step.weight if is_exchanged or step.weight else 1.0
        self.factor = 1.0 if step.weight == self._weight else step.weight / self._weight

    def close(self) -> None:
        """Notes that the gradient is exchanged."""
        self._weight, self._last, self._count = None, None, 0


def weighted_sum(window: Window, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Sums gradients over the workers, each weighted by its samples: a hook for DDP.

    Args:
        window: What the worker's gradient counts.
        bucket: Gradients, flat.

    Returns:
        The sum over i of b_i / B times g_i, which is the gradient of the mean over all B
        samples.
    """
    buffer, is_last = bucket.buffer(), bucket.is_last()
    step, clock, noise = CURRENT.step, CURRENT.clock, CURRENT.noise
    if is_last and clock is not None:
        clock.reduce()
        _after_exchange(clock.resume)
    meter = noise if noise is not None and step is not None and noise.looks else None
    if meter is not None:
        meter.see_local(buffer)
    if window.weight:
        buffer.mul_(window.weight)
    else:
        buffer.zero_()  # a mean over nothing may be NaN
    if is_last:
        if noise is not None and step is not None:
            noise.end(step, window.batches, window.weight)
        window.close()

    def finish(future: Any) -> torch.Tensor:  # noqa: ANN401 - torch's own future
        total: torch.Tensor = future.value()[0]
        if meter is not None:
            meter.see_whole(total)
        return total

    work = dist.all_reduce(buffer, group=window.group, async_op=True)
    summed: torch.futures.Future[torch.Tensor] = work.get_future().then(finish)
    return summed


def _after_exchange(call: Callable[[], None]) -> None:
    """Calls when the present backward pass and its exchange are over.

    The exchange is waited for in a callback of the pass that is queued after the hook was
    called; one that is queued by a callback comes after it.
    """
    engine = torch.autograd.Variable._execution_engine  # noqa: SLF001 - as FSDP does it
    engine.queue_callback(partial(engine.queue_callback, call))
