"""What a user's function may return in place of a job: a model, with its data or without."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import DataLoader, Dataset

from raycosttune.errors import InvalidAdviceError
from raycosttune.train.probe_job import Job

Criterion = Callable[[Any, Any], Tensor]
ASK = "return (model, sample), (model, dataset), (model, dataset, loss) or a raycosttune.train.Job"
TOKENS = 128
SIDES = (32, 28, 224, 64, 96, 128, 256, 299, 16, 8)  # of an image, the commonest first
DRAWN = 64


def job_of(found: object) -> Job:
    """Returns the job that a user's function means.

    Args:
        found: A `Job`, or a model, alone or as a tuple with more:
            (model, dataset, loss): a dataset of pairs of inputs and targets, or a DataLoader of
            one; the loss takes outputs and targets;
            (model, dataset): with cross-entropy where targets are whole numbers, else the mean
            square error;
            (model, sample): made-up samples like this tensor, and no loss but their mean square;
            model: the same, with samples as its first layer takes them.

    Raises:
        InvalidAdviceError: If it is something else, or of a model alone no sample can be told.
    """
    match found:
        case Job():
            return found
        case nn.Module():
            return _made_up(found, _sample(found))
        case (nn.Module() as model, Tensor() as sample):
            return _made_up(model, sample)
        case (nn.Module() as model, data):
            return _with_data(model, data, _usual)
        case (nn.Module() as model, data, loss) if callable(loss):
            return _with_data(model, data, loss)
    msg = f"it must {ASK}, or a model alone, got {_shown(found)}"
    raise InvalidAdviceError(msg)


class MadeUp(Dataset[Tensor]):
    """Holds a few drawn samples of one shape, shown again and again."""

    def __init__(self, sample: Tensor) -> None:
        random = torch.Generator().manual_seed(0)
        self.shape = tuple(sample.shape)
        if sample.is_floating_point():
            self._samples = torch.randn(DRAWN, *self.shape, generator=random).to(sample.dtype)
        else:
            most = max(1, int(sample.max())) if sample.numel() else 1
            drawn = torch.randint(most + 1, (DRAWN, *self.shape), generator=random)
            self._samples = drawn.to(sample.dtype)

    def __len__(self) -> int:
        return DRAWN

    def __getitem__(self, number: int) -> Tensor:
        return self._samples[number]


def _made_up(model: nn.Module, sample: Tensor) -> Job:
    return Job(model, MadeUp(sample), _mean_square)


def _with_data(model: nn.Module, data: object, criterion: Criterion) -> Job:
    options: dict[str, Any] = {}
    if isinstance(data, DataLoader):
        options = {"num_workers": data.num_workers, "collate_fn": data.collate_fn}
        data = data.dataset

    def loss(model: nn.Module, batch: Any) -> Tensor:  # noqa: ANN401 - as the dataset has it
        if not isinstance(batch, Sequence) or len(batch) != 2:  # noqa: PLR2004 - a pair
            msg = f"samples must be pairs of inputs and targets, got {_shown(batch)}. Return a Job"
            raise InvalidAdviceError(msg)
        inputs, targets = batch
        return criterion(model(inputs), targets)

    return Job(model, data, loss, loader=options)  # type: ignore[arg-type]  # checked where it is loaded


def _usual(outputs: object, targets: object) -> Tensor:
    if not isinstance(outputs, Tensor) or not isinstance(targets, Tensor):
        kinds = f"{_shown(outputs)} and {_shown(targets)}"
        msg = f"without a loss, outputs and targets must be tensors, got {kinds}: {ASK}"
        raise InvalidAdviceError(msg)
    if targets.is_floating_point():
        return mse_loss(outputs.reshape(targets.shape), targets)
    return cross_entropy(outputs, targets)


def _mean_square(model: nn.Module, batch: Tensor) -> Tensor:
    squares = [found.float().square().mean() for found in _tensors(model(batch))]
    if not squares:
        msg = f"the output of a model without a loss must have a gradient: {ASK}"
        raise InvalidAdviceError(msg)
    return torch.stack(squares).sum()


def _tensors(found: object) -> Iterator[Tensor]:
    """Yields the tensors of a model's output that have gradients."""
    if isinstance(found, Tensor):
        if found.requires_grad:
            yield found
    elif isinstance(found, Mapping):
        for value in found.values():
            yield from _tensors(value)
    elif isinstance(found, tuple | list):
        for value in found:
            yield from _tensors(value)


def _sample(model: nn.Module) -> Tensor:
    """Returns a sample as the model's first layer takes it."""
    example = getattr(model, "example_input_array", None)  # as Lightning has it: a batch
    if isinstance(example, Tensor) and example.ndim > 1:
        return example[0]
    layers = (
        layer for layer in model.modules() if any(True for _ in layer.parameters(recurse=False))
    )
    first = next(layers, model)
    for sample in _samples(first):
        if _runs(model, sample):
            return sample
    name = type(first).__name__
    msg = f"of a model alone, whose first layer is {name}, no sample can be told: {ASK}"
    raise InvalidAdviceError(msg)


def _samples(first: nn.Module) -> Iterator[Tensor]:
    match first:
        case nn.Linear():
            yield torch.zeros(first.in_features)
        case nn.Conv2d():
            for side in SIDES:
                yield torch.zeros(first.in_channels, side, side)
        case nn.Embedding():
            yield torch.full((TOKENS,), first.num_embeddings - 1)


def _runs(model: nn.Module, sample: Tensor) -> bool:
    was_training = model.training
    try:
        with torch.no_grad():
            model.eval()(sample[None])
    except Exception:  # noqa: BLE001 - a user's model may raise anything
        return False
    finally:
        model.train(was_training)
    return True


def _shown(found: object) -> str:
    """Names the types of what was returned: a model's own text fills pages."""
    if isinstance(found, tuple | list):
        return f"({', '.join(type(each).__name__ for each in found)})"
    return type(found).__name__
