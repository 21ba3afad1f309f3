"""The job that is probed: a model, its data and its loss, and one real step of it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import Dataset, default_collate

from raycosttune.errors import InvalidAdviceError

Loss = Callable[[nn.Module, Any], Tensor]


def sgd_with_momentum(parameters: Iterable[nn.Parameter]) -> Optimizer:
    """Returns an optimizer that keeps one number beside each parameter."""
    return torch.optim.SGD(parameters, lr=0.01, momentum=0.9)


@dataclass(frozen=True)
class Job:
    """Is what a worker trains.

    Attributes:
        model: On the CPU; a probe moves it to its device.
        dataset: Has a length, and samples by number.
        loss: Takes the model and a collated batch of samples, returns the loss of their mean.
        optimizer: Makes the optimizer of the parameters.
        loader: Options of the PyTorch DataLoader, such as `num_workers` and `collate_fn`.
    """

    model: nn.Module
    dataset: Dataset[Any]
    loss: Loss
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer] = sgd_with_momentum
    loader: Mapping[str, Any] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        """Samples of an epoch."""
        return len(self.dataset)  # type: ignore[arg-type]  # checked where a job is loaded

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the gradients that workers exchange."""
        trained = (p for p in self.model.parameters() if p.requires_grad)
        return sum(p.numel() * p.element_size() for p in trained)

    def batch(self, size: int, first: int = 0) -> Any:  # noqa: ANN401 - as the dataset has it
        """Returns a batch of samples from one on, from the start again after the last."""
        numbers = range(first, first + size)
        collate = self.loader.get("collate_fn") or default_collate
        return collate([self.dataset[number % self.samples] for number in numbers])


class Stepper:
    """Takes real steps of a job on one device.

    Args:
        job: The job.
        device: "cpu", "cuda" or one of several.
        wrap: Wraps the model once it is on its device, as `DistributedDataParallel` does.
    """

    def __init__(
        self, job: Job, device: str, wrap: Callable[[nn.Module], nn.Module] | None = None
    ) -> None:
        self.device = torch.device(device)
        model = job.model.to(self.device).train()
        self.model = model if wrap is None else wrap(model)
        self._loss = job.loss
        self._optimizer = job.optimizer(self.model.parameters())

    def step(self, batch: Any) -> None:  # noqa: ANN401 - as the dataset has it
        """Trains on a batch; the device may still be busy when this returns."""
        self.backward(batch)
        self._optimizer.step()

    def backward(self, batch: Any) -> None:  # noqa: ANN401 - as above
        """Computes the gradients alone."""
        self._optimizer.zero_grad()
        loss: object = self._loss(self.model, moved(batch, self.device))
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or not loss.requires_grad:
            told = f"shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else repr(loss)
            msg = f"the loss must be a tensor of one number with a gradient, got {told[:200]}"
            raise InvalidAdviceError(msg)
        loss.backward()

    def wait(self) -> None:
        """Waits until the device is idle."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def moved(batch: Any, device: torch.device) -> Any:  # noqa: ANN401 - as the dataset has it
    """Returns a batch with its tensors on a device, in lists, tuples and mappings too."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: moved(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple | list):
        return [moved(value, device) for value in batch]
    return batch
