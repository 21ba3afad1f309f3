"""What a loop does with gradients and losses that count by samples."""

import math
from typing import Any

import torch

from raycosttune.errors import InvalidModelError
from raycosttune.train.current import CURRENT
from raycosttune.train.exchange import exchange


def clip_gradients(
    model: torch.nn.Module,
    max_norm: float,
    *,
    scaler: "torch.amp.GradScaler | None" = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> float:
    """Clips the gradient of the whole batch, after it was summed over the workers.

    Args:
        model: The model, after the backward pass.
        max_norm: Norm that the gradient is scaled down to where it is larger.
        scaler: Of a loop in mixed precision: its scale is taken out first.
        optimizer: The optimizer that the scaler steps.

    Returns:
        The norm before.

    Raises:
        InvalidModelError: If the gradient was not summed yet, as more parts of the step
            follow, or a scaler was passed without its optimizer.
    """
    step = CURRENT.step
    if step is not None and not step.is_last:
        msg = (
            f"gradients must be clipped after the last of the {step.parts} parts of a step, got "
            f"part {step.part + 1}. Clip right before the optimizer's step."
        )
        raise InvalidModelError(msg)
    if scaler is not None:
        if optimizer is None:
            msg = "optimizer must be passed with scaler, got None. Pass the one that is stepped."
            raise InvalidModelError(msg)
        scaler.unscale_(optimizer)
    return float(torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm))


class SampleMean:
    """Averages a value over the samples of all workers, such as a loss to be logged.

    The plain mean over workers is wrong where their shares differ.
    """

    def __init__(self) -> None:
        self._sum: Any = 0.0
        self._samples = 0.0

    def add(self, value: float | torch.Tensor, samples: float | None = None) -> None:
        """Takes in a mean over some samples of this worker; does not wait for its device.

        Args:
            value: The mean.
            samples: How many they are; by default those of the batch that the loader gave
                last, or what its `count` found in it.
        """
        if samples is None:
            samples = 0 if CURRENT.step is None else CURRENT.step.counted.own
        if samples:
            value = value.detach() if isinstance(value, torch.Tensor) else value
            self._sum = self._sum + value * samples
            self._samples += samples

    def read(self) -> float:
        """Returns the mean over the samples of all workers, who call it together; begins anew.

        NaN where there was none.
        """
        rows = exchange().gather([float(self._sum), self._samples])
        self._sum, self._samples = 0.0, 0.0
        samples = math.fsum(row[1] for row in rows)
        return math.fsum(row[0] for row in rows) / samples if samples else math.nan
