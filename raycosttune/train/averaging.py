"""Averages the weights of workers that train by themselves for some steps."""

from collections.abc import Iterator

import torch
import torch.distributed as dist

from raycosttune.core.value import read_count
from raycosttune.errors import InvalidModelError
from raycosttune.train.exchange import Exchange
from raycosttune.train.step import Step


class Averaging:
    """Replaces each worker's weights by their mean over the workers, weighted by samples.

    Buffers of real numbers are averaged too; what an optimizer keeps is not. This is the
    second mode of Ye et al. 2020 (DBS), section 3.

    Args:
        model: The model; its weights become those of the first worker.
        every: Steps from one average to the next.
        exchange: Joins the workers.

    Raises:
        InvalidModelError: If `every` is no count.
    """

    def __init__(self, model: torch.nn.Module, every: int, exchange: Exchange) -> None:
        if read_count(every) is None:
            msg = (
                f"average_every must be a whole number of at least 1, got {every!r}. "
                "Leave it out to exchange gradients in every step."
            )
            raise InvalidModelError(msg)
        self._model = model
        self._every = every
        self._exchange = exchange
        self._samples = 0.0
        self._steps = 0
        if exchange.size > 1:
            for tensor in self._tensors():
                dist.broadcast(tensor, src=0)

    def count(self, step: Step) -> bool:
        """Takes in that a part was trained; averages where it is time.

        Returns:
            Whether it averaged.
        """
        self._samples += step.counted.own
        self._steps += step.is_last
        if self._steps < self._every:
            return False
        self.average()
        return True

    def average(self) -> None:
        """Averages, where anything was trained since the last time; all workers do it together."""
        samples, self._samples, self._steps = self._samples, 0.0, 0
        total = sum(row[0] for row in self._exchange.gather([samples]))
        if total == 0 or self._exchange.size == 1:
            return
        for tensor in self._tensors():
            tensor.mul_(samples / total)
            dist.all_reduce(tensor)

    def _tensors(self) -> Iterator[torch.Tensor]:
        for tensor in (*self._model.parameters(), *self._model.buffers()):
            if tensor.is_floating_point():
                yield tensor.data
