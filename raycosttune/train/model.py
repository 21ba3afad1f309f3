"""Models whose gradients count by the samples that they were taken over."""

import logging
from functools import partial
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils import _pytree as pytree

from raycosttune.errors import InvalidModelError
from raycosttune.train import place
from raycosttune.train.averaging import Averaging
from raycosttune.train.comm_hook import Window, weighted_sum
from raycosttune.train.current import CURRENT
from raycosttune.train.exchange import exchange
from raycosttune.train.pair_noise import PairNoise
from raycosttune.train.step import Step

logger = logging.getLogger(__name__)
BATCH_NORMS = torch.nn.modules.batchnorm._BatchNorm  # noqa: SLF001 - the base of all of them


def prepare_model(
    model: torch.nn.Module,
    *,
    move_to_device: bool = True,
    average_every: int | None = None,
    **ddp_options: Any,  # noqa: ANN401 - DistributedDataParallel's own
) -> torch.nn.Module:
    """Prepares a model for batches from `prepare_data_loader`.

    Its gradients are summed over the workers, each counted by the samples it was taken over:
    the update is that of one process with the whole batch, whatever the shares. The loss is
    the mean over a batch, as PyTorch's losses are by default.

    Args:
        model: The model, or a `DistributedDataParallel` around it without a hook of its own.
        move_to_device: Whether it is moved to the worker's GPU, where it has one.
        average_every: None to exchange gradients in every step. Else workers train by
            themselves, and average their weights, by samples, after so many steps and at an
            epoch's end: less exchange, another result.
        **ddp_options: More for `DistributedDataParallel`.

    Returns:
        The model, wrapped where there are several workers.

    Raises:
        InvalidModelError: If it was prepared before, or has a communication hook.
    """
    if getattr(model, "_raycosttune_is_prepared", False):
        msg = "a model must be prepared once, got one that prepare_model made. Use it as it is."
        raise InvalidModelError(msg)
    joined = exchange()
    target = place.device() if move_to_device else None
    if target is not None:
        model = model.to(target)
    _heed_batch_norm(model, joined.size)
    prepared, window = model, Window(None)
    if average_every is not None:
        CURRENT.averaging = Averaging(model, average_every, joined)
    elif joined.size > 1:
        prepared = _wrapped(model, target, ddp_options)
        window = Window(prepared.process_group)
        _register(prepared, window)
    pairs = PairNoise(model.parameters()) if joined.size == 1 else None
    prepared.register_forward_pre_hook(partial(_enter, window, pairs), with_kwargs=True)
    prepared.register_forward_hook(partial(_leave, window), always_call=True)
    prepared._raycosttune_is_prepared = True  # type: ignore[assignment]  # noqa: SLF001 - ours
    return prepared


def _wrapped(
    model: torch.nn.Module, target: torch.device | None, options: dict[str, Any]
) -> DistributedDataParallel:
    if isinstance(model, DistributedDataParallel):
        return model
    if not any(parameter.requires_grad for parameter in model.parameters()):
        msg = "a model must have a parameter that is trained, got none. Unfreeze one."
        raise InvalidModelError(msg)
    devices = None if target is None else [target]
    return DistributedDataParallel(model, **{"device_ids": devices, **options})


def _register(model: DistributedDataParallel, window: Window) -> None:
    try:
        model.register_comm_hook(window, weighted_sum)
    except (RuntimeError, TypeError) as error:
        msg = (
            "a model must have no communication hook of its own, got one that has "
            f"({str(error).splitlines()[0]}). Prepare it first: gradients are exchanged by a hook "
            "that weighs them."
        )
        raise InvalidModelError(msg) from error


def _heed_batch_norm(model: torch.nn.Module, workers: int) -> None:
    local = [m for m in model.modules() if isinstance(m, BATCH_NORMS)]
    local = [m for m in local if not isinstance(m, torch.nn.SyncBatchNorm)]
    if not local or workers == 1:
        return
    CURRENT.least_rows = 2
    logger.warning(
        "%s of the model takes the mean and variance of a worker's own part of the batch, which "
        "differ with its share: training is not what one process would do. Use "
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm(model) on GPUs, or GroupNorm.",
        type(local[0]).__name__,
    )


def _enter(
    window: Window,
    pairs: PairNoise | None,
    model: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    step = CURRENT.step
    if step is None or not (model.training and torch.is_grad_enabled()):
        return
    _check_rows(step, (*args, *kwargs.values()))
    CURRENT.rebalancer = CURRENT.feeder
    if CURRENT.clock is not None:
        CURRENT.clock.train()
    if pairs is not None and CURRENT.noise is not None:
        pairs.forward(step, CURRENT.noise)
    if isinstance(model, DistributedDataParallel):
        window.is_exchanged = model.require_backward_grad_sync
        model.require_backward_grad_sync = window.is_exchanged and step.is_last
    if CURRENT.averaging is None:
        window.enter(step, is_exchanged=getattr(model, "require_backward_grad_sync", True))


def _leave(window: Window, model: torch.nn.Module, args: Any, output: Any) -> Any:  # noqa: ANN401 - a hook of PyTorch's
    del args
    if isinstance(model, DistributedDataParallel) and window.is_exchanged is not None:
        model.require_backward_grad_sync = window.is_exchanged
    factor, window.factor, window.is_exchanged = window.factor, 1.0, None
    if factor == 1.0:
        return None
    leaves = pytree.tree_leaves(output)
    if not any(torch.is_tensor(leaf) and leaf.requires_grad for leaf in leaves):
        msg = (
            "the model's outputs must be tensors, or lists, tuples or dicts of them, where parts "
            f"of a step differ in size, got {type(output).__name__}. Accumulate with "
            "prepare_data_loader(..., accumulate=k), and take a share that k divides."
        )
        raise InvalidModelError(msg)
    return pytree.tree_map(lambda leaf: scaled(leaf, factor), output)


def _check_rows(step: Step, inputs: tuple[Any, ...]) -> None:
    """Refuses a batch that is not the one that the loader gave: its weight would be wrong."""
    shapes = [tuple(each.shape) for each in inputs if torch.is_tensor(each) and each.dim() > 0]
    rows = max(step.samples, CURRENT.least_rows)
    if shapes and all(shape[0] < rows and rows not in shape[:2] for shape in shapes):
        msg = (
            f"the model must be called with the {rows} samples that the loader gave, got a "
            f"tensor of shape {shapes[0]}. Gradients count by samples: pass batches on "
            "whole, and accumulate with prepare_data_loader(..., accumulate=k)."
        )
        raise InvalidModelError(msg)


class _Scale(torch.autograd.Function):
    """Passes a tensor on, and scales its gradient."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, factor: float) -> torch.Tensor:  # noqa: ANN401 - PyTorch's context
        ctx.factor = factor
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:  # noqa: ANN401 - as above
        (gradient,) = gradients
        # A mean over nothing may be NaN.
        return gradient * ctx.factor if ctx.factor else torch.zeros_like(gradient), None


def scaled(leaf: Any, factor: float) -> Any:  # noqa: ANN401 - whatever a model returns
    """Returns a tensor whose gradient is scaled; anything else as it is."""
    if torch.is_tensor(leaf) and leaf.requires_grad:
        return _Scale.apply(leaf, factor)  # type: ignore[no-untyped-call]
    return leaf
