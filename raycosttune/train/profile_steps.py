"""Times the optimizer steps of a training loop that knows nothing of it, and ends the loop."""

import math
import statistics
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.data import DataLoader

from raycosttune.core.value import read_number


class CellEnd(BaseException):
    """Ends a training loop from within; no `Exception`, so that the loop does not catch it."""


class Timing(TypedDict):
    """Holds what the steps of a loop showed.

    `step_seconds` is the median over `steps` steps. `epoch_seconds` is their part of an
    epoch; `whole_epoch_seconds` is what an epoch took from report to report, evaluation
    included. None where it can't be known.
    """

    step_seconds: float
    steps: int
    steps_per_epoch: int | None
    epoch_seconds: float | None
    whole_epoch_seconds: float | None


@dataclass(frozen=True)
class Step:
    """Is one timed step.

    Attributes:
        seconds: From the step before, or from the report or the start of a loader since then.
        opens_epoch: Whether there was a report or the start of a loader since then.
        drawn: Batches drawn for it, by the length of the loader that they came from.
    """

    seconds: float
    opens_epoch: bool
    drawn: Mapping[int, int]


class StepWatch:
    """Counts and times the steps of the first optimizer that steps.

    Args:
        warmup: Steps at the start that are not timed, at least 1.
        steps: Steps timed.
        limit_seconds: After this long the loop is ended, timed or not.
        clock: Returns seconds that never fall.
    """

    def __init__(
        self,
        warmup: int,
        steps: int,
        limit_seconds: float,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._warmup = warmup
        self._wanted = warmup + steps
        self._clock = clock
        self._ends_at = clock() + limit_seconds
        self._mark = clock()
        self._opens_epoch = True
        self._first: weakref.ref[Optimizer] | None = None
        self._drawn: dict[int, int] = {}
        self._timed: list[Step] = []
        self._reports: list[tuple[float, int]] = []
        self._epoch_began: float | None = None
        self._epoch_seconds: list[float] = []
        self.count = 0
        self.is_overdue = False

    @property
    def is_done(self) -> bool:
        """Whether all steps were timed."""
        return self.count >= self._wanted

    def step(self, optimizer: Optimizer, *_: object) -> None:
        """Takes in that an optimizer has stepped.

        Raises:
            CellEnd: If that was the last step, or the time is over.
        """
        first = self._first and self._first()
        if first is None:
            self._first, first = weakref.ref(optimizer), optimizer
        if optimizer is not first:
            return
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        now = self._clock()
        if self.count >= self._warmup:
            self._timed.append(Step(now - self._mark, self._opens_epoch, self._drawn))
        self.count += 1
        self._mark, self._opens_epoch, self._drawn = now, False, {}
        self.is_overdue = not self.is_done and now > self._ends_at
        self._end_if_over()

    def report(self, metrics: Mapping[str, Any]) -> None:
        """Takes in what the loop reports.

        Raises:
            CellEnd: If the loop has gone on after its last step.
        """
        self._end_if_over()
        now = self._clock()
        last_epoch, last_count = self._reports[-1] if self._reports else (0.0, 0)
        if self.count > last_count:
            reported = read_number(metrics.get("epoch"))
            epoch = last_epoch + 1 if reported is None else reported
            if self._epoch_began is not None and epoch > last_epoch:
                self._epoch_seconds.append((now - self._epoch_began) / (epoch - last_epoch))
            self._reports.append((epoch, self.count))
            self._epoch_began = now
        self._open()

    def timing(self, batch_size: int, samples: int | None) -> Timing | None:
        """Returns what the steps showed, None where none was timed.

        Args:
            batch_size: Global batch.
            samples: Samples of an epoch, where the loop may not show its steps per epoch.
        """
        if not self._timed:
            return None
        # The first step of an epoch holds the loader's start, so it speaks only if alone.
        chosen = [step for step in self._timed if not step.opens_epoch] or self._timed
        seconds = statistics.median(step.seconds for step in chosen)
        per_epoch = self._reported_steps() or _loader_steps(chosen)
        if per_epoch is None and samples is not None:
            per_epoch = math.ceil(samples / batch_size)
        whole = statistics.median(self._epoch_seconds) if self._epoch_seconds else None
        return Timing(
            step_seconds=seconds,
            steps=len(chosen),
            steps_per_epoch=per_epoch,
            epoch_seconds=None if per_epoch is None else per_epoch * seconds,
            whole_epoch_seconds=whole,
        )

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Watches every optimizer and every PyTorch DataLoader of this process."""
        original = DataLoader.__iter__

        def iterate(loader: DataLoader[Any]) -> Any:  # noqa: ANN401 - PyTorch's own is private
            self._open()
            return _Drawn(original(loader), lambda: self._draw(loader))

        hook = register_optimizer_step_post_hook(self.step)
        DataLoader.__iter__ = iterate  # type: ignore[method-assign]  # it has no hooks
        try:
            yield
        finally:
            DataLoader.__iter__ = original  # type: ignore[method-assign]  # as above
            hook.remove()

    def _open(self) -> None:
        self._mark, self._opens_epoch = self._clock(), True

    def _draw(self, loader: DataLoader[Any]) -> None:
        try:
            length = len(loader)
        except TypeError:  # a stream has no length
            return
        self._drawn[length] = self._drawn.get(length, 0) + 1

    def _end_if_over(self) -> None:
        if self.is_done or self.is_overdue:
            raise CellEnd

    def _reported_steps(self) -> int | None:
        """Returns the steps between two reports an epoch apart, or before the first one."""
        if not self._reports:
            return None
        last_epoch, last_count = self._reports[-1]
        first_epoch, first_count = self._reports[0] if len(self._reports) > 1 else (0.0, 0)
        epochs = last_epoch - first_epoch
        return round((last_count - first_count) / epochs) or None if epochs > 0 else None


class _Drawn:
    """Iterates like a loader's iterator, and tells of each batch."""

    def __init__(self, batches: Any, note: Callable[[], None]) -> None:  # noqa: ANN401 - as above
        self._batches = batches
        self._note = note

    def __iter__(self) -> "_Drawn":
        return self

    def __next__(self) -> Any:  # noqa: ANN401 - whatever the loader yields
        batch = next(self._batches)
        self._note()
        return batch

    def __len__(self) -> int:
        return len(self._batches)


def _loader_steps(steps: list[Step]) -> int | None:
    """Returns how many steps the loader that ends first is good for."""
    found = []
    for length in {length for step in steps for length in step.drawn}:
        # The last step of an epoch may draw fewer.
        batches = statistics.median_high(step.drawn.get(length, 0) for step in steps)
        if batches:
            found.append(math.ceil(length / batches))
    return min(found, default=None)
