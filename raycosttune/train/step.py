"""What a worker's part of a training step is, and how long it takes to compute."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch


@dataclass(frozen=True)
class Count:
    """Is how much a part counts in the loss, which is a mean over tokens, say.

    Attributes:
        own: Of this part.
        share: Of this worker in the whole step.
        total: Of the whole step over all workers.
    """

    own: float
    share: float
    total: float


@dataclass(frozen=True)
class Step:
    """Is this worker's part of a batch that all workers share.

    Attributes:
        samples: Samples of this worker that count, b_i of the paper's batch.
        total: Samples of the whole step over all workers.
        share: Samples of this worker in the whole step, where it comes in parts.
        workers: Workers that have samples in the step.
        is_full: Whether the step has as many samples as a batch shall have.
        part: Which part of the step this is, from 0.
        parts: Parts that the loop accumulates before it updates the weights.
        count: What counts in the loss, None for samples.
    """

    samples: int
    total: int
    share: int
    workers: int
    is_full: bool = True
    part: int = 0
    parts: int = 1
    count: Count | None = None

    @property
    def counted(self) -> Count:
        """What counts in the loss; samples where nothing of the batch counts otherwise."""
        if self.count is not None and self.count.total > 0:
            return self.count
        return Count(self.samples, self.share, self.total)

    @property
    def weight(self) -> float:
        """What this part's mean gradient counts in the update, times the parts.

        The loop divides its loss by the parts, as it is done for equal ones.
        """
        return self.parts * self.counted.own / self.counted.total

    @property
    def fraction(self) -> float:
        """What this worker's mean gradient of the whole step counts in the update."""
        return self.counted.share / self.counted.total

    @property
    def is_last(self) -> bool:
        """Whether the weights are updated after this part."""
        return self.part == self.parts - 1


@dataclass(frozen=True)
class Timing:
    """Is what a worker did over some steps.

    Attributes:
        step_seconds: Median compute seconds of a full step, NaN where there was none.
        full_steps: Full steps that were timed for it.
        full_share: Samples of this worker in each of these.
        steps: All steps.
        samples: Samples of this worker that counted.
        compute_seconds: Seconds of compute, from the call for a batch to the last gradient.
        wall_seconds: Seconds in all, the wait for other workers included.
    """

    step_seconds: float = math.nan
    full_steps: int = 0
    full_share: int = 0
    steps: int = 0
    samples: int = 0
    compute_seconds: float = 0.0
    wall_seconds: float = 0.0


@dataclass(frozen=True)
class Span:
    """Is a while in which a worker computed.

    Attributes:
        step: For which step.
        began: The moment when it began.
        ended: The moment when it ended.
        excluded: Seconds of it in which the worker waited for others.
        is_first: Whether the step begins with it.
    """

    step: Step
    began: Any
    ended: Any
    excluded: float
    is_first: bool


class StepClock:
    """Times what a worker computes, apart from its wait for other workers.

    A step's compute begins when its first batch is called for and ends when the gradient of
    the last bucket is there; where none is exchanged, when the next batch is called for. Where
    several backward passes exchange gradients, as of two models, it goes on from the end of
    one exchange to the beginning of the next. On a GPU these moments are taken on the device,
    by events.

    Args:
        on_device: Whether to take the moments on the current CUDA device.
        clock: Returns seconds that never fall.
    """

    def __init__(
        self,
        *,
        on_device: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._on_device = on_device
        self._clock = clock
        self._reset()

    def _reset(self) -> None:
        self._began: Any = None
        self._resumed: Any = None
        self._step: Step | None = None
        self._spans: list[Span] = []
        self._opened: float | None = None
        self._closed: float | None = None
        self._excluded = 0.0
        self._is_trained = False

    def fetch(self) -> None:
        """Notes that the loop asks for a batch, after what it did with the one before."""
        now = self._clock()
        if self._opened is None:
            self._opened = now
        self._closed = now
        if self._began is not None and self._is_trained and self._step and self._step.is_last:
            self.reduce()
        if self._step is None or self._step.is_last:
            self._began, self._resumed = self._mark(), None
            self._excluded = 0.0
            self._is_trained = False

    def exclude(self, seconds: float) -> None:
        """Leaves a wait for other workers out of the compute of the present step."""
        self._excluded += seconds

    def start(self, step: Step) -> None:
        """Notes that the loop gets its part of a step."""
        self._step = step

    def train(self) -> None:
        """Notes that a gradient will be taken of the present step."""
        self._is_trained = True

    def reduce(self) -> None:
        """Notes that the last gradient of a model is there: from here on it is exchanged."""
        if self._step is None:
            return
        is_first = self._began is not None
        began = self._began if is_first else self._resumed
        if began is not None:
            self._spans.append(Span(self._step, began, self._mark(), self._excluded, is_first))
            self._began, self._resumed, self._excluded = None, None, 0.0
        elif self._spans:  # another model in the same backward pass
            self._spans[-1] = replace(self._spans[-1], ended=self._mark())

    def resume(self) -> None:
        """Notes that a backward pass is over, and what it exchanged is there."""
        if self._began is None:
            self._resumed = self._mark()

    def read(self) -> Timing:
        """Returns what was timed since the last reading, and begins anew."""
        spans: list[tuple[Step, float]] = []
        for span in self._spans:
            before = spans.pop()[1] if spans and not span.is_first else 0.0
            seconds = self._seconds(span.began, span.ended) - span.excluded
            spans.append((span.step, before + max(seconds, 0.0)))
        share = next((step.share for step, _ in reversed(spans) if step.is_full), 0)
        full = [seconds for step, seconds in spans if step.is_full and step.share == share]
        wall = 0.0 if self._opened is None or self._closed is None else self._closed - self._opened
        self._reset()
        return Timing(
            step_seconds=statistics.median(full) if full else math.nan,
            full_steps=len(full),
            full_share=share,
            steps=len(spans),
            samples=sum(step.share for step, _ in spans),
            compute_seconds=math.fsum(seconds for _, seconds in spans),
            wall_seconds=wall,
        )

    def _mark(self) -> Any:  # noqa: ANN401 - a moment of this clock or of the device
        if not self._on_device:
            return self._clock()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _seconds(self, began: Any, ended: Any) -> float:  # noqa: ANN401 - see _mark
        if not self._on_device:
            return float(ended - began)
        ended.synchronize()
        return float(began.elapsed_time(ended)) / 1000
