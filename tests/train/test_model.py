import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset

from raycosttune.errors import InvalidModelError
from raycosttune.train.current import CURRENT, Current
from raycosttune.train.data import prepare_data_loader
from raycosttune.train.gradient import SampleMean, clip_gradients
from raycosttune.train.model import prepare_model
from raycosttune.train.settings import Settings, install
from raycosttune.train.step import Step
from tests.train.jobs import Scripted
from tests.train.world import run_world


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    vars(CURRENT).update(vars(Current()))
    yield
    vars(CURRENT).update(vars(Current()))


def test_a_model_is_prepared_once() -> None:
    model = prepare_model(torch.nn.Linear(2, 1))
    with pytest.raises(InvalidModelError, match="prepared once"):
        prepare_model(model)


def test_batches_that_were_cut_on_the_way_are_refused() -> None:
    loader = prepare_data_loader(TensorDataset(torch.ones(8, 2)), batch_size=4)
    model = prepare_model(torch.nn.Linear(2, 1))
    for (batch,) in loader:
        with pytest.raises(InvalidModelError, match="the 4 samples that the loader gave"):
            model(batch[:3])
        with torch.no_grad():
            model(batch[:3])
        model(batch)
        model(torch.cat([batch, batch]))


class Masked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(2, 1)

    def forward(self, mask: torch.Tensor, inputs: torch.Tensor) -> Any:
        return self.inner(inputs) * mask


def test_tensors_beside_the_batch_have_any_length() -> None:
    loader = prepare_data_loader(TensorDataset(torch.ones(8, 2)), batch_size=4)
    model = prepare_model(Masked())
    for (batch,) in loader:
        model(torch.ones(1, 1), batch)
        with pytest.raises(InvalidModelError, match=r"got a tensor of shape \(1, 1\)"):
            model(torch.ones(1, 1), batch[:2])


class Wrapped:
    def __init__(self, loss: torch.Tensor) -> None:
        self.loss = loss


class Odd(torch.nn.Linear):
    def forward(self, inputs: torch.Tensor) -> Any:
        return Wrapped(super().forward(inputs).mean())


def test_outputs_that_can_not_be_weighted_are_refused_only_where_they_must_be() -> None:
    loader = prepare_data_loader(TensorDataset(torch.ones(5, 2)), batch_size=5, accumulate=2)
    model = prepare_model(Odd(2, 1))
    first, second = (batch for (batch,) in loader)
    CURRENT.step = Step(3, 5, 5, 1, part=0, parts=2)
    with pytest.raises(InvalidModelError, match="got Wrapped"):
        model(first)
    CURRENT.step = Step(2, 5, 5, 1, part=1, parts=2)
    with pytest.raises(InvalidModelError, match="got Wrapped"):
        model(second)
    even = prepare_data_loader(TensorDataset(torch.ones(4, 2)), batch_size=4, accumulate=2)
    assert [type(model(batch)) for (batch,) in even] == [Wrapped, Wrapped]


def test_gradients_are_clipped_when_they_are_whole() -> None:
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.grad = torch.tensor([[3.0, 4.0]])
    assert clip_gradients(model, 1.0) == pytest.approx(5)
    assert model.weight.grad.norm().item() == pytest.approx(1, abs=1e-5)
    CURRENT.step = Step(1, 4, 2, 2, part=0, parts=2)
    with pytest.raises(InvalidModelError, match="part 1"):
        clip_gradients(model, 1.0)
    CURRENT.step = None
    with pytest.raises(InvalidModelError, match="optimizer must be passed"):
        clip_gradients(model, 1.0, scaler=torch.amp.GradScaler("cpu"))


def test_a_scale_is_taken_out_before_clipping() -> None:
    model = torch.nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(model(torch.tensor([[3.0, 4.0]])).sum()).backward()
    assert clip_gradients(model, 10.0, scaler=scaler, optimizer=optimizer) == pytest.approx(5)


def test_a_mean_counts_samples() -> None:
    mean = SampleMean()
    CURRENT.step = Step(3, 4, 3, 2)
    mean.add(torch.tensor(1.0, requires_grad=True))
    CURRENT.step = Step(1, 4, 1, 2)
    mean.add(5.0)
    CURRENT.step = Step(0, 4, 0, 2)
    mean.add(float("nan"))
    assert mean.read() == 2
    CURRENT.step = None
    mean.add(7.0)
    assert str(mean.read()) == "nan"
    mean.add(7.0, samples=2)
    assert mean.read() == 7


def in_a_group() -> dict[str, Any]:
    """Tries what needs several workers; runs on each of them."""
    told: dict[str, Any] = {}
    hooked = DistributedDataParallel(torch.nn.Linear(2, 1))
    hooked.register_comm_hook(None, allreduce_hook)
    with pytest.raises(InvalidModelError, match="hook of its own"):
        prepare_model(hooked)
    with pytest.raises(InvalidModelError, match="parameter that is trained"):
        prepare_model(torch.nn.ReLU())
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("raycosttune").addHandler(handler)
    prepare_model(torch.nn.GroupNorm(1, 2))
    assert not records
    restore = install(Settings(policy=Scripted(((5, 0), (1, 4)))))
    model = prepare_model(torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1)))
    told["warning"] = records
    loader = prepare_data_loader(TensorDataset(torch.randn(12, 2)), batch_size=5)
    rows = []
    for _ in range(3):
        for (batch,) in loader:
            model(batch).mean().backward()
            rows.append(len(batch))
    told["rows"] = rows
    restore()
    vars(CURRENT).update(vars(Current()))
    model = prepare_model(torch.nn.Linear(2, 1))
    steps = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):  # an ordinary loader: a plain mean over the workers
        steps.zero_grad()
        model(torch.full((3, 2), float(loader.rebalancer.rank))).mean().backward()
    told["plain"] = [p.grad.flatten().tolist() for p in model.parameters() if p.grad is not None]
    mean = SampleMean()
    mean.add(float(loader.rebalancer.rank), samples=1 + loader.rebalancer.rank)
    told["mean"] = mean.read()
    return told


@pytest.mark.slow
def test_what_needs_several_workers(tmp_path: Path) -> None:
    for told in run_world(2, in_a_group, store=tmp_path / "store"):
        assert len(told["warning"]) == 1
        assert "GroupNorm" in told["warning"][0]
        assert min(told["rows"]) >= 2
        assert told["plain"] == [[0.5, 0.5], [1.0]]
        assert told["mean"] == pytest.approx(2 / 3)


def averaged(every: int) -> dict[str, Any]:
    """Trains a constant towards each worker's own inputs; runs on each of them."""
    restore = install(Settings(policy=Scripted(((3, 1),))))
    torch.manual_seed(CURRENT.least_rows)
    inputs = torch.arange(8, dtype=torch.float64)[:, None]
    loader = prepare_data_loader(TensorDataset(inputs), batch_size=4, shuffle=False)
    model = prepare_model(torch.nn.Linear(1, 1, bias=False).double(), average_every=every)
    with torch.no_grad():
        model.weight.zero_()  # type: ignore[operator]
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    trail = []
    for _ in range(2):
        for (batch,) in loader:
            optimizer.zero_grad()
            # Its gradient is minus the mean of the batch, whatever the weight.
            (-model(torch.ones_like(batch)) * batch).mean().backward()
            optimizer.step()
        trail.append(model.weight.item())  # type: ignore[operator]
    restore()
    vars(CURRENT).update(vars(Current()))
    return {"trail": trail, "shares": loader.rebalancer.plan.latest}


@pytest.mark.slow
def test_weights_are_averaged_by_samples(tmp_path: Path) -> None:
    for every, last in ((1, 14.0), (5, 14.0)):
        told = run_world(2, averaged, every, store=tmp_path / f"store-{every}")
        assert told[0] == told[1]
        assert told[0]["trail"][0] == pytest.approx(7.0)
        assert told[0]["trail"][1] == pytest.approx(last, rel=0.2)
        assert told[0]["shares"] == (3, 1)
