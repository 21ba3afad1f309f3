"""Measures the gradient noise scale where one worker trains, by two gradients in a row."""

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from raycosttune.core.noise_scale import step_terms
from raycosttune.train.noise import EVERY, NoiseMeter
from raycosttune.train.step import Step


class PairNoise:
    """Compares the gradients of two backward passes, and keeps a copy of one meanwhile.

    Two parts of one step are compared where the loop accumulates, else two steps in a row.

    Args:
        parameters: Those that are trained.
        every: Backward passes from one look to the next.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], every: int = EVERY) -> None:
        self._parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self._every = every
        self._passes = 0
        self._updates = 0
        self._updates_at_pass = -1
        self._steps: list[Step] = []
        self._hooks: list[Any] = []
        self._kept: dict[int, torch.Tensor] = {}
        self._squares = torch.zeros(3, dtype=torch.float64)
        self._latest: Step | None = None
        self._is_fresh = True
        self._is_odd = False
        me = weakref.ref(self)

        def count(*_: object) -> None:
            pair = me()
            if pair is not None:
                pair._updates += 1  # noqa: SLF001 - its own

        self._counting = register_optimizer_step_post_hook(count)
        weakref.finalize(self, self._counting.remove)

    def forward(self, step: Step, meter: NoiseMeter) -> None:
        """Notes that the model is called with gradients: a backward pass follows.

        Args:
            step: What it is called with.
            meter: Where the terms go.
        """
        if step is self._latest:  # as a model that is called twice for one batch
            return
        self._latest = step
        was_updated = self._updates != self._updates_at_pass
        self._updates_at_pass = self._updates
        if len(self._steps) == 2:  # noqa: PLR2004 - a pair
            self._end(meter)
        elif self._steps:
            self._is_fresh = was_updated
            self._steps.append(step)
        elif self._passes % self._every == 0 and was_updated and step.is_full:
            self._steps.append(step)
            self._hooks = [
                parameter.register_post_accumulate_grad_hook(self._see)
                for parameter in self._parameters
            ]
        self._passes += 1

    def _see(self, parameter: torch.Tensor) -> None:
        gradient = parameter.grad
        if gradient is None or not self._steps:
            return
        if len(self._steps) == 1:
            # One that is here twice has the gradients of two losses, as in adversarial training.
            self._is_odd |= id(parameter) in self._kept
            self._kept[id(parameter)] = gradient.detach().clone()
            return
        seen = self._kept.pop(id(parameter), None)
        if seen is None:
            self._is_odd = True
            return
        second = gradient.detach() if self._is_fresh else gradient.detach() - seen
        weights = [step.weight or 1.0 for step in self._steps]
        first, second = seen / weights[0], second / weights[1]
        one, two = map(_samples, self._steps)
        whole = (one * first + two * second) / (one + two)
        squares = [torch.linalg.vector_norm(each).square() for each in (first, second, whole)]
        self._squares = self._squares.to(gradient.device) + torch.stack(squares)

    def _end(self, meter: NoiseMeter) -> None:
        one, two, whole = self._squares.tolist()
        batches = [_samples(step) for step in self._steps]
        is_whole = not (self._kept or self._is_odd)
        if min(batches) > 0 and self._steps[1].is_full and is_whole:
            meter.add(step_terms(batches, [one, two], whole))
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._steps, self._kept = [], [], {}
        self._squares, self._is_odd = torch.zeros(3, dtype=torch.float64), False


def _samples(step: Step) -> float:
    """Returns the samples of a part by what it counts in the loss."""
    return step.total * step.weight / step.parts
