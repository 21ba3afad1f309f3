import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import TensorDataset

from raycosttune.errors import InvalidStateError
from raycosttune.train import place
from raycosttune.train.checkpoint import WEIGHTS_FILE, _agreed, bare, report, resume
from raycosttune.train.current import CURRENT, Current
from raycosttune.train.data import prepare_data_loader
from tests.train.fakes import FakeExchange


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    vars(CURRENT).update(vars(Current()))
    yield
    vars(CURRENT).update(vars(Current()))


def make() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Linear(2, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def trained(folder: Path) -> torch.nn.Module:
    model, optimizer = make()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    report({"epoch": 3}, model, optimizer, directory=folder)
    return model


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    before = trained(tmp_path)
    model, optimizer = make()
    loader = prepare_data_loader(TensorDataset(torch.ones(4, 2)), batch_size=2)
    assert resume(model, optimizer, loader=loader, directory=tmp_path) == 3
    assert torch.equal(model.weight, before.weight)  # type: ignore[arg-type]
    assert optimizer.state_dict()["state"][0]["momentum_buffer"] is not None
    assert loader._epoch == 3


def test_without_a_checkpoint_a_run_begins(tmp_path: Path) -> None:
    model, optimizer = make()
    assert resume(model, optimizer) == 0
    assert resume(model, optimizer, directory=tmp_path / "none") == 0


@pytest.mark.parametrize("epoch", [None, 1.5, "2", -1])
def test_a_report_without_an_epoch_is_refused(epoch: Any) -> None:
    with pytest.raises(InvalidStateError, match="`epoch`, the number of epochs done"):
        report({"epoch": epoch}, torch.nn.Linear(1, 1))


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    trained(tmp_path)
    path = tmp_path / WEIGHTS_FILE
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InvalidStateError, match=f"@ {path}"):
        resume(*make(), directory=tmp_path)


def test_what_was_saved_must_be_resumed(tmp_path: Path) -> None:
    trained(tmp_path)
    with pytest.raises(InvalidStateError, match="got 0 for 1"):
        resume(make()[0], directory=tmp_path)


def test_a_checkpoint_of_code_is_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"epoch": 1, "model": Evil(), "others": []}, tmp_path / WEIGHTS_FILE)
    with pytest.raises(InvalidStateError, match="can't be read"):
        resume(make()[0], directory=tmp_path)
    assert not (tmp_path / "ran").exists()


def test_the_shares_are_beside_the_weights(tmp_path: Path) -> None:
    loader = prepare_data_loader(TensorDataset(torch.ones(4, 2)), batch_size=2)
    CURRENT.rebalancer = loader.rebalancer
    trained(tmp_path)
    state = json.loads((tmp_path / place.STATE_FILE).read_text())
    assert state["shares"] == [2]
    assert not list(tmp_path.glob(".*"))


def test_shares_that_can_not_be_read_begin_equal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state"
    assert place.read_state(path) == {}
    for text in ("{", "[1]"):
        path.write_text(text)
        with caplog.at_level(logging.WARNING):
            assert place.read_state(path) == {}
    assert len(caplog.records) == 1


def test_ray_trains_checkpoint_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / place.STATE_FILE).write_text('{"round": 2}')

    class Found:
        @contextmanager
        def as_directory(self) -> Iterator[str]:
            yield str(tmp_path)

    assert place.earlier_state() == {}
    monkeypatch.setattr(place, "checkpoint", Found)
    assert place.earlier_state() == {"round": 2}


def test_a_checkpoint_that_only_some_workers_see_is_refused() -> None:
    with pytest.raises(InvalidStateError, match=r"none on workers \[1\]"):
        _agreed(FakeExchange(others=[[0.0]]), found=True)


def test_a_checkpoint_fits_any_number_of_workers() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(1, 1))
    model.module = torch.nn.Linear(1, 1)
    assert bare(model) is model
