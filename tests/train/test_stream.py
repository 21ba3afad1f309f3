from typing import Any

import pytest

from raycosttune.errors import InvalidLoaderError
from raycosttune.train.step import StepClock
from raycosttune.train.stream import PulledBatches
from tests.train.fakes import FakeExchange


class Counts(FakeExchange):
    """Is an exchange in which the other worker pulled so many samples, step by step."""

    def gather(self, numbers: Any) -> list[list[float]]:
        return [list(numbers), [self.others.pop(0)[0]]]


def pulled(samples: range, others: list[int], **options: Any) -> PulledBatches:
    exchange = Counts(others=[[count] for count in others])
    return PulledBatches(
        samples,
        collate=list,
        batch_size=5,
        exchange=exchange,
        shares_at=options.pop("shares_at", lambda _: (3, 2)),
        clock=StepClock(),
        **options,
    )


def test_each_worker_takes_its_share_until_all_streams_have_ended() -> None:
    batches = pulled(range(7), [2, 2, 2, 1, 0])
    assert list(batches) == [[0, 1, 2], [3, 4, 5], [6], [6]]
    steps = list(batches.steps)
    assert [step.samples for step in steps] == [3, 3, 1, 0]
    assert [step.total for step in steps] == [5, 5, 3, 1]
    assert [step.workers for step in steps] == [2, 2, 2, 1]
    assert [step.is_full for step in steps] == [True, True, False, False]
    assert batches.position == 4


def test_a_worker_without_a_share_has_a_sample_that_does_not_count() -> None:
    batches = pulled(range(3), [4, 5, 0], shares_at=lambda step: (1, 4) if step < 1 else (0, 5))
    assert list(batches) == [[0], [0]]
    assert [step.samples for step in batches.steps] == [1, 0]


def test_a_model_that_needs_two_samples_gets_two() -> None:
    assert list(pulled(range(4), [2, 0, 0], least_rows=lambda: 2)) == [[0, 1, 2], [3, 3]]


@pytest.mark.parametrize(("samples", "other"), [(range(0), 2), (range(3), 0)])
def test_a_worker_whose_stream_is_empty_is_told_at_once(samples: range, other: int) -> None:
    with pytest.raises(InvalidLoaderError, match="its own part of the data"):
        list(pulled(samples, [other]))


def test_streams_that_are_all_empty_have_no_steps() -> None:
    assert list(pulled(range(0), [0])) == []


def test_nobody_knows_how_long_a_stream_is() -> None:
    with pytest.raises(TypeError, match="no length"):
        len(pulled(range(3), []))
