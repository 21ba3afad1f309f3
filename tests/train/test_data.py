from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset

from raycosttune.core.share import InvalidShareError
from raycosttune.errors import InvalidLoaderError
from raycosttune.train.data import prepare_data_loader
from raycosttune.train.loader import moved
from tests.train.fakes import FakeExchange

DATA = TensorDataset(torch.arange(10.0))


class Shard:
    def iter_torch_batches(self) -> None:
        """Is what a shard of Ray Data has."""


class Endless:
    def __getitem__(self, index: int) -> int:
        return index


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(5))


@pytest.mark.parametrize(
    ("dataset", "options", "words"),
    [
        (DataLoader(DATA), {}, "prepare_data_loader\\(loader.dataset"),
        (Shard(), {}, "shard of Ray Data"),
        (Endless(), {}, "must have a length"),
        (iter([1]), {}, "got list_iterator"),
        ([], {}, "length 0"),
        (DATA, {"batch_size": 0}, "batch_size must be a whole number"),
        (DATA, {"batch_size": 2.5}, "got 2.5"),
        (DATA, {"accumulate": 0}, "accumulate must be"),
        (DATA, {"batch_sampler": [[1]]}, "batch_sampler can't be passed on"),
        (DATA, {"sampler": iter([1])}, "sampler must have a length"),
        (DATA, {"sampler": DistributedSampler(DATA, 2, 0)}, "got a DistributedSampler"),
        (DATA, {"batch_size": 11, "drop_last": True}, "got 10 samples for a batch of 11"),
        (Stream(), {"accumulate": 2}, "need a data set with a length"),
        (Stream(), {"sampler": [1]}, "need a data set with a length"),
    ],
)
def test_what_can_not_be_shared_is_refused(dataset: Any, options: Any, words: str) -> None:
    with pytest.raises(InvalidLoaderError, match=words):
        prepare_data_loader(dataset, **{"batch_size": 4, **options})


@pytest.mark.parametrize(
    ("other", "words"), [([9, 4, 0], r"samples \[10, 9\]"), ([10, 4, 1], r"seed \[0, 1\]")]
)
def test_loaders_that_differ_between_workers_are_refused(
    monkeypatch: pytest.MonkeyPatch, other: list[float], words: str
) -> None:
    exchange = FakeExchange(others=[[*other, 1.0, 0.0, 1.0, 0.0]])
    monkeypatch.setattr("raycosttune.train.data.exchange", lambda: exchange)
    with pytest.raises(InvalidLoaderError, match=words):
        prepare_data_loader(DATA, batch_size=4)


def test_a_loader_is_prepared_once() -> None:
    with pytest.raises(InvalidLoaderError, match="prepared once"):
        prepare_data_loader(prepare_data_loader(DATA, batch_size=4), batch_size=4)


def test_an_error_of_shares_is_one_of_this_package() -> None:
    assert issubclass(InvalidShareError, ValueError)


def values(loader: Any) -> list[list[float]]:
    return [batch.tolist() for (batch,) in loader]


def test_one_worker_gets_whole_batches() -> None:
    loader = prepare_data_loader(DATA, batch_size=4, shuffle=False)
    assert len(loader) == 3
    assert values(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(prepare_data_loader(DATA, batch_size=4, drop_last=True)) == 2


def test_each_epoch_has_its_order_also_after_a_break() -> None:
    loader = prepare_data_loader(DATA, batch_size=4)
    first = values(loader)
    for _ in loader:
        break
    third = values(loader)
    assert first != third
    loader.set_epoch(0)
    assert values(loader) == first
    loader.set_epoch(2)
    assert values(loader) == third


def test_a_sampler_decides_on_the_order() -> None:
    loader = prepare_data_loader(DATA, batch_size=3, sampler=[9, 8, 7, 1])
    assert values(loader) == [[9, 8, 7], [1]]
    assert len(loader) == 2


def test_a_stream_is_pulled() -> None:
    loader = prepare_data_loader(Stream(), batch_size=2)
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4]]
    own = prepare_data_loader(Stream(), batch_size=2, collate_fn=tuple)
    assert [len(batch) for batch in own] == [2, 2, 1]


class Pair(NamedTuple):
    one: torch.Tensor
    other: str


def test_a_batch_keeps_its_containers_when_it_is_moved() -> None:
    place = torch.device("meta")
    batch = {"a": [torch.ones(2), 3], "b": Pair(torch.ones(1), "x"), "c": (torch.ones(1),)}
    told = moved(batch, place)
    assert told["a"][0].device == told["b"].one.device == told["c"][0].device == place
    assert (told["a"][1], told["b"].other) == (3, "x")
    assert isinstance(told["b"], Pair)
