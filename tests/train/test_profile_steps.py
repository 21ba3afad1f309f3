import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, IterableDataset

from raycosttune.train.profile_steps import CellEnd, StepWatch, Timing

EVALUATION = 5.0


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        yield from range(100)


def optimizer() -> torch.optim.Optimizer:
    parameter = torch.nn.Parameter(torch.zeros(1))
    parameter.grad = torch.ones(1)
    return torch.optim.SGD([parameter], lr=0.1)


def loader(batches: int) -> DataLoader[Any]:
    return DataLoader(range(batches), batch_size=1)  # type: ignore[arg-type]  # a dataset by its shape


def watched(
    loop: Callable[[StepWatch, Clock], object], *, steps: int = 10, limit: float = 1e6
) -> StepWatch:
    clock = Clock()
    watch = StepWatch(3, steps, limit, clock)
    with contextlib.suppress(CellEnd), watch.installed():
        loop(watch, clock)
    return watch


def timing(watch: StepWatch, samples: int | None = None) -> Timing:
    told = watch.timing(32, samples)
    assert told is not None
    return told


def test_a_loop_ends_within_its_last_step_and_the_first_ones_are_not_timed() -> None:
    stopped = []

    def loop(_: StepWatch, clock: Clock) -> None:
        chosen = optimizer()
        try:
            for number in range(100):
                with contextlib.suppress(Exception):
                    clock.now += 100 if number < 3 else 2
                    chosen.step()
        finally:
            stopped.append(clock.now)

    watch = watched(loop)
    assert (watch.count, watch.is_done, stopped) == (13, True, [320])
    expected = Timing(
        step_seconds=2,
        steps=10,
        steps_per_epoch=None,
        epoch_seconds=None,
        whole_epoch_seconds=None,
    )
    assert timing(watch) == expected
    assert timing(watch, samples=100)["steps_per_epoch"] == 4
    assert timing(watch, samples=100)["epoch_seconds"] == 8


@given(batches=st.integers(2, 40), accumulated=st.integers(1, 3), evaluated=st.integers(0, 5))
def test_a_loader_shows_the_steps_of_an_epoch(
    batches: int, accumulated: int, evaluated: int
) -> None:
    per_epoch = math.ceil(batches / accumulated)

    def loop(_: StepWatch, clock: Clock) -> None:
        chosen, data, held_out = optimizer(), loader(batches), loader(evaluated)
        while True:
            for number, _batch in enumerate(data, 1):
                clock.now += 1 / accumulated
                if number % accumulated == 0 or number == batches:
                    chosen.step()
            for _batch in held_out:
                clock.now += EVALUATION

    told = timing(watched(loop, steps=4 * per_epoch))
    if per_epoch > 2 or batches % accumulated == 0:  # else only the last step, a short one
        assert told["steps_per_epoch"] == per_epoch
    if accumulated == 1 and evaluated:
        assert told["step_seconds"] == 1


@given(per_epoch=st.integers(1, 8), counted=st.booleans(), first=st.sampled_from([0, 1]))
def test_reports_show_the_steps_and_the_seconds_of_an_epoch(
    per_epoch: int, *, counted: bool, first: int
) -> None:
    def loop(watch: StepWatch, clock: Clock) -> None:
        chosen = optimizer()
        watch.report({"loss": 1.0})  # before any step
        for epoch in range(100):
            for _ in range(per_epoch):
                clock.now += 1
                chosen.step()
            clock.now += EVALUATION
            watch.report({"epoch": epoch + first} if counted else {"loss": 0.5})
            watch.report({"loss": 0.5})  # a second one with no step in between

    told = timing(watched(loop, steps=20))
    assert told["step_seconds"] == 1
    assert told["steps_per_epoch"] == per_epoch
    assert told["epoch_seconds"] == per_epoch
    assert told["whole_epoch_seconds"] == per_epoch + EVALUATION


def test_steps_are_those_of_the_first_optimizer() -> None:
    def loop(_: StepWatch, clock: Clock) -> None:
        critic, generator = optimizer(), optimizer()
        for number in range(100):
            clock.now += 1
            critic.step()
            if number % 5 == 4:
                clock.now += 1
                generator.step()

    watch = watched(loop)
    assert watch.count == 13
    assert timing(watch)["step_seconds"] == 1


def test_the_shorter_of_two_loaders_ends_the_epoch() -> None:
    def loop(_: StepWatch, clock: Clock) -> None:
        chosen = optimizer()
        while True:
            for _pair in zip(loader(9), loader(6), strict=False):
                clock.now += 1
                chosen.step()

    assert timing(watched(loop, steps=12))["steps_per_epoch"] == 6


def test_a_stream_has_no_known_epoch() -> None:
    def loop(_: StepWatch, clock: Clock) -> None:
        chosen = optimizer()
        for _batch in DataLoader(Stream(), batch_size=2):
            clock.now += 1
            chosen.step()

    assert timing(watched(loop))["steps_per_epoch"] is None


def test_a_loop_that_swallows_everything_is_told_at_every_step_and_report() -> None:
    told = []

    def loop(watch: StepWatch, _: Clock) -> None:
        chosen = optimizer()
        for _step in range(15):
            try:
                chosen.step()
            except BaseException as end:  # noqa: BLE001 - what a loop should not do
                told.append(end)
        watch.report({})

    watch = watched(loop)
    assert len(told) == 3
    assert watch.is_done


def test_a_loop_that_ends_sooner_tells_what_it_has() -> None:
    def loop(steps: int) -> Callable[[StepWatch, Clock], None]:
        def train(_: StepWatch, clock: Clock) -> None:
            chosen = optimizer()
            for _step in range(steps):
                clock.now += 1
                chosen.step()

        return train

    assert timing(watched(loop(5)))["steps"] == 2
    assert watched(loop(3)).timing(32, None) is None


def test_a_loop_over_its_time_is_ended() -> None:
    def loop(_: StepWatch, clock: Clock) -> None:
        chosen = optimizer()
        while True:
            clock.now += 1
            chosen.step()

    watch = watched(loop, limit=4.5)
    assert (watch.count, watch.is_overdue) == (5, True)
    assert not watched(loop, limit=12.5).is_overdue  # the last step came in time enough


def test_nothing_is_left_behind_a_loop() -> None:
    original = DataLoader.__iter__

    def loop(_: StepWatch, __: Clock) -> None:
        assert DataLoader.__iter__ is not original
        assert len(iter(loader(4))) == 4
        msg = "a bug"
        raise RuntimeError(msg)

    with pytest.raises(RuntimeError, match="a bug"):
        watched(loop)
    assert DataLoader.__iter__ is original
    optimizer().step()
