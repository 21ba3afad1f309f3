import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from raycosttune.errors import InvalidAdviceError
from raycosttune.train.probe_layer import DEFAULT, algorithms, apply_algorithms, layers, use
from tests.train.probe_jobs import network

CPU = torch.device("cpu")


def told(layer: nn.Module, x: Tensor) -> list[Tensor]:
    """Returns output and gradients."""
    own = x.clone().requires_grad_()
    out = layer(own)
    out.backward(torch.linspace(-1, 1, out.numel()).view(out.shape))
    found = [out.detach(), own.grad, *(p.grad for p in layer.parameters())]
    layer.zero_grad()
    return [tensor for tensor in found if tensor is not None]


@settings(max_examples=15)
@given(
    channels=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 2),
    padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
    bias=st.booleans(),
)
def test_every_algorithm_gives_the_same_results(
    channels: tuple[int, int], kernel: int, stride: int, padding: int, dilation: int, *, bias: bool
) -> None:
    torch.manual_seed(0)
    layer = nn.Conv2d(*channels, kernel, stride, padding, dilation, bias=bias)
    x = torch.randn(3, channels[0], 7, 9)
    expected = told(layer, x)
    names = list(algorithms(layer, CPU, exact=True))
    assert names == [DEFAULT, "channels_last", "without_mkldnn", "im2col"]
    for name in names:
        use(layer, name)
        for found, wanted in zip(told(layer, x), expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    use(layer, DEFAULT)
    for found, wanted in zip(told(layer, x), expected, strict=True):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(4, 4, 3, groups=2),
        nn.Conv2d(4, 4, 3, padding="same"),
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="circular"),
    ],
)
def test_unusual_convolutions_are_offered_what_holds_for_them(layer: nn.Conv2d) -> None:
    x = torch.randn(2, 4, 6, 6)
    expected = told(layer, x)
    offered = algorithms(layer, CPU, exact=True)
    assert "im2col" not in offered
    for name in offered:
        use(layer, name)
        for found, wanted in zip(told(layer, x), expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_half_precision_is_offered_only_where_asked_for_and_is_near() -> None:
    layer = nn.Linear(16, 4)
    x = torch.randn(8, 16)
    assert "bf16" not in algorithms(layer, CPU, exact=True)
    assert list(algorithms(nn.ReLU(), CPU, exact=False)) == [DEFAULT]
    expected = told(layer, x)
    use(layer, "bf16", exact=False)
    for found, wanted in zip(told(layer, x), expected, strict=True):
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, wanted, rtol=0.1, atol=0.1)


def test_a_first_layer_needs_no_gradient_of_its_input() -> None:
    layer = nn.Conv2d(1, 2, 3)
    x = torch.randn(2, 1, 5, 5)
    layer(x).sum().backward()
    assert layer.weight.grad is not None
    expected = layer.weight.grad.clone()
    layer.zero_grad()
    use(layer, "without_mkldnn")
    layer(x).sum().backward()
    assert layer.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad, expected)
    assert torch._C._get_mkldnn_enabled()


def test_parameters_and_their_names_stay() -> None:
    model = nn.Sequential(*network().children())
    before, names = copy.deepcopy(model.state_dict()), [name for name, _ in layers(model)]
    assert names == ["0", "2", "4"]
    own = {name: id(p) for name, p in model.named_parameters()}
    apply_algorithms(model, {"0": "channels_last", "2": "im2col"})
    assert {name: id(p) for name, p in model.named_parameters()} == own
    torch.testing.assert_close(dict(model.state_dict()), dict(before))
    first = dict(model.named_parameters())["0.weight"]
    assert first.is_contiguous(memory_format=torch.channels_last)
    assert "forward" in vars(model[2])
    apply_algorithms(model, {})
    assert first.is_contiguous()
    assert not any("forward" in vars(layer) for layer in model)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InvalidAdviceError, match=r"layers must be some of .* got \['conv'\]"):
        apply_algorithms(network(), {"conv": DEFAULT})
    with pytest.raises(InvalidAdviceError, match=r"must be one of .* got 'fft'"):
        apply_algorithms(network(), {"0": "fft"})
