import math
from typing import Any

import pytest
import torch
from torch.utils.data import TensorDataset

from raycosttune.errors import InvalidLoaderError
from raycosttune.train.counting import counted
from raycosttune.train.data import prepare_data_loader
from raycosttune.train.step import Count, Step, StepClock
from tests.train.fakes import FakeExchange

ROWS = torch.tensor([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]])


def told(steps: list[Step], others: float, count: Any = torch.sum, least: int = 1) -> list[Step]:
    exchange = FakeExchange(others=[[others]])
    pairs = [(ROWS[: max(step.samples, least)], step) for step in steps]
    kept = list(counted(pairs, count, exchange, StepClock(), lambda: least))
    assert [batch.tolist() for batch, _ in kept] == [batch.tolist() for batch, _ in pairs]
    return [step for _, step in kept]


def test_parts_count_what_is_counted_in_them() -> None:
    parts = [Step(2, 8, 3, 2, part=0, parts=2), Step(1, 8, 3, 2, part=1, parts=2)]
    first, second = told(parts, 5.0)
    assert first.count == Count(3.0, 5.0, 10.0)
    assert second.count == Count(2.0, 5.0, 10.0)
    assert (first.weight, second.weight, first.fraction) == (0.6, 0.4, 0.5)


def test_a_worker_without_samples_counts_nothing() -> None:
    (step,) = told([Step(0, 8, 0, 1)], 5.0)
    assert (step.count, step.workers) == (Count(0.0, 0.0, 5.0), 1)


def test_where_nothing_counts_samples_do() -> None:
    (step,) = told([Step(3, 4, 3, 2)], 0.0, count=lambda _: 0)
    assert step.weight == 3 / 4


def test_samples_that_were_repeated_for_the_model_count_once() -> None:
    (step,) = told([Step(1, 4, 1, 2)], 7.0, least=2)
    assert step.count == Count(1.5, 1.5, 8.5)


@pytest.mark.parametrize("amount", [-1, math.nan, None, "many", torch.ones(2)])
def test_what_is_no_amount_ends_the_run_on_every_worker(amount: Any) -> None:
    with pytest.raises(InvalidLoaderError, match=r"on workers \[0\]"):
        told([Step(1, 4, 1, 2)], 7.0, count=lambda _: amount)
    with pytest.raises(InvalidLoaderError, match=r"on workers \[1\]"):
        told([Step(1, 4, 1, 2)], math.nan)


def test_a_loader_counts_what_it_loads() -> None:
    data = TensorDataset(ROWS)
    loader = prepare_data_loader(data, batch_size=2, count=lambda batch: batch[0].sum())
    assert [len(batch) for (batch,) in loader] == [2, 2]
    with pytest.raises(InvalidLoaderError, match="must be a function of a batch, got 'tokens'"):
        prepare_data_loader(data, batch_size=2, count="tokens")  # type: ignore[arg-type]
