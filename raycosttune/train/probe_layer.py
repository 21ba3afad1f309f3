"""The algorithms that PyTorch offers for a layer on the machine at hand."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, unfold

from raycosttune.errors import InvalidAdviceError

Forward = Callable[[Tensor], Tensor]
Flags = Callable[[], AbstractContextManager[None]]
DEFAULT = "default"
CONVERTED = "channels_last"


class FlaggedConvolution(torch.autograd.Function):
    """Convolves, forward and backward, under backend flags that hold for the whole process."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401 - PyTorch's
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        layer: nn.Conv2d,
        flags: Flags,
    ) -> Tensor:
        """Returns the convolution of x."""
        ctx.save_for_backward(x, weight)
        ctx.layer, ctx.flags = layer, flags
        with flags():
            shape = layer.stride, cast("tuple[int, int]", layer.padding), layer.dilation
            return conv2d(x, weight, bias, *shape, layer.groups)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401 - as PyTorch's
        """Returns the gradients of x, weight and bias."""
        x, weight = ctx.saved_tensors
        layer = ctx.layer
        sizes = None if layer.bias is None else list(layer.bias.shape)
        with ctx.flags():
            found = torch.ops.aten.convolution_backward(
                grad.contiguous(),
                x,
                weight,
                sizes,
                layer.stride,
                layer.padding,
                layer.dilation,
                False,  # noqa: FBT003 - not transposed
                [0, 0],
                layer.groups,
                list(ctx.needs_input_grad[:3]),
            )
        return *found, None, None


def _flagged(flags: Flags, layer: nn.Conv2d, x: Tensor) -> Tensor:
    return cast("Tensor", FlaggedConvolution.apply(x, layer.weight, layer.bias, layer, flags))  # type: ignore[no-untyped-call]


def _without_mkldnn() -> AbstractContextManager[None]:
    return cast("AbstractContextManager[None]", torch.backends.mkldnn.flags(enabled=False))


def _benchmarked() -> AbstractContextManager[None]:
    return cast(
        "AbstractContextManager[None]", torch.backends.cudnn.flags(enabled=True, benchmark=True)
    )


def _channels_last(layer: nn.Conv2d, x: Tensor) -> Tensor:
    moved = x.contiguous(memory_format=torch.channels_last)
    return type(layer).forward(layer, moved)


def _im2col(layer: nn.Conv2d, x: Tensor) -> Tensor:
    padding = cast("tuple[int, int]", layer.padding)
    columns = unfold(x, layer.kernel_size, layer.dilation, padding, layer.stride)
    out: Tensor = layer.weight.flatten(1) @ columns
    out = out if layer.bias is None else out + layer.bias[:, None]
    high, pad = x.shape[2], padding[0]
    reach = layer.dilation[0] * (layer.kernel_size[0] - 1)
    rows = (high + 2 * pad - reach - 1) // layer.stride[0] + 1
    return cast("Tensor", out.unflatten(2, (rows, -1)))


def _bf16(layer: nn.Module, x: Tensor) -> Tensor:
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        return cast("Tensor", type(layer).forward(layer, x)).to(x.dtype)


def algorithms(layer: nn.Module, device: torch.device, *, exact: bool) -> dict[str, Forward | None]:
    """Returns the algorithms of a layer by name; None for PyTorch's own choice.

    Args:
        layer: A `Conv2d` or `Linear`; of others only PyTorch's own is known.
        device: Where it is.
        exact: Whether results must be those of full precision, but for rounding.
    """
    found: dict[str, Forward | None] = {DEFAULT: None}
    if type(layer) is nn.Conv2d:
        found[CONVERTED] = partial(_channels_last, layer)
        if layer.padding_mode == "zeros" and not isinstance(layer.padding, str):
            if device.type == "cuda":
                found["cudnn_benchmark"] = partial(_flagged, _benchmarked, layer)
            else:
                found["without_mkldnn"] = partial(_flagged, _without_mkldnn, layer)
            if layer.groups == 1:
                found["im2col"] = partial(_im2col, layer)
    if type(layer) in (nn.Conv2d, nn.Linear) and not exact:
        found["bf16"] = partial(_bf16, layer)
    return found


def layers(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yields the layers that have more than one algorithm, by name."""
    for name, layer in model.named_modules():
        if type(layer) in (nn.Conv2d, nn.Linear):
            yield name, layer


def apply_algorithms(model: nn.Module, chosen: Mapping[str, str], *, exact: bool = True) -> None:
    """Has each named layer of a model use an algorithm; parameters and their names stay.

    Args:
        model: On its device.
        chosen: Name of the algorithm by the layer's name; layers that are left out use
            PyTorch's own.
        exact: Whether results must be those of full precision, but for rounding.

    Raises:
        InvalidAdviceError: If there is no such layer, or it has no such algorithm.
    """
    known = dict(layers(model))
    if unknown := sorted(chosen.keys() - known.keys()):
        msg = f"layers must be some of {sorted(known)}, got {unknown}"
        raise InvalidAdviceError(msg)
    for name, layer in known.items():
        use(layer, chosen.get(name, DEFAULT), exact=exact)


def use(layer: nn.Module, name: str, *, exact: bool = True) -> None:
    """Has one layer use an algorithm.

    Raises:
        InvalidAdviceError: If it has no such algorithm.
    """
    device = next(layer.parameters()).device
    offered = algorithms(layer, device, exact=exact)
    if name not in offered:
        msg = f"an algorithm of {layer} must be one of {list(offered)}, got {name!r}"
        raise InvalidAdviceError(msg)
    vars(layer).pop("forward", None)
    if isinstance(layer, nn.Conv2d):
        form = torch.channels_last if name == CONVERTED else torch.contiguous_format
        layer.weight.data = layer.weight.data.contiguous(memory_format=form)
    forward = offered[name]
    if forward is not None:
        layer.forward = forward  # an instance's own comes first
