"""Measures cells on the workers of one start; runs on each of them."""

import copy
import gc
import itertools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypedDict

import torch

from raycosttune.core.memory import is_out_of_memory
from raycosttune.errors import RayCostTuneError
from raycosttune.train.profile_group import Failure, Subgroup
from raycosttune.train.profile_steps import CellEnd, StepWatch, Timing

TOO_LARGE = Failure(
    "left out: a worker's share no larger than this one's ran out of memory", out_of_memory=True
)
Config = dict[str, Any]


class InvalidProfileError(RayCostTuneError, ValueError):
    """Says that a profile can't be made as asked, or that there is none to be read."""


class Cell(TypedDict):
    """Is a cell, and the seconds that trying it took."""

    workers: int
    batch_size: int
    nodes: int
    seconds: float


class MeasuredCell(Cell, Timing):
    """Is what a cell showed."""


class FailedCell(Cell):
    """Is why a cell was not measured."""

    reason: str
    out_of_memory: bool


class ProfileResult(TypedDict):
    """Is what a profile showed, as plain JSON.

    `workers` were started. `startup_seconds` passed from the making of the loop until it ran;
    `seconds` is everything so far, that included.
    """

    workers: int
    cells: list[MeasuredCell]
    failed: list[FailedCell]
    startup_seconds: float
    seconds: float


@dataclass(frozen=True)
class Settings:
    """Is what to measure, and how: see `profile_loop`."""

    train_loop: Callable[[Config], object]
    cells: tuple[tuple[int, int], ...]
    steps: int
    least_steps: int
    warmup: int
    samples: int | None
    timeout_seconds: float
    workers_key: str
    batch_key: str

    def __post_init__(self) -> None:
        counts = [self.steps, self.least_steps, self.warmup, *itertools.chain(*self.cells)]
        if self.samples is not None:
            counts.append(self.samples)
        if not self.cells or min(counts) < 1 or not self.timeout_seconds > 0:
            msg = (
                "a profile must have cells (workers, batch), and at least 1 for these, steps, "
                f"least_steps, warmup and samples, and a timeout above 0, got {self}. "
                "Write cells=[(2, 64), (1, 64)]."
            )
            raise InvalidProfileError(msg)

    def steps_at(self, batch_size: int) -> int:
        """Returns the steps timed at a batch: fewer at a large one, whose steps take longer."""
        smallest = min(batch for _, batch in self.cells)
        fewer = math.ceil(self.steps * smallest / batch_size)
        return min(self.steps, max(self.least_steps, fewer))


class Profiler:
    """Measures cells on the workers of one start; each worker has one.

    Args:
        settings: What to measure, and how.
        group: The workers.
        show: Makes a loop see only the first workers, and hands its reports to a watch.
        made_at: When the start was asked for, in seconds since 1970.
    """

    def __init__(
        self,
        settings: Settings,
        group: Subgroup,
        show: Callable[[int, StepWatch], AbstractContextManager[None]],
        made_at: float,
    ) -> None:
        self._settings = settings
        self._group = group
        self._show = show
        self._began = time.perf_counter()
        self._startup_seconds = max(0.0, time.time() - made_at)
        self._measured: list[MeasuredCell] = []
        self._failed: list[FailedCell] = []

    def results(self, config: Config) -> Iterator[ProfileResult]:
        """Measures the cells of one worker count after another, most workers first.

        Then the group is whole again.

        Yields:
            What was measured so far; only the first worker has all of it.

        Raises:
            InvalidProfileError: If a cell has more workers than were started.
            ProfileLostError: If a worker no longer answers.
        """
        group, cells = self._group, self._settings.cells
        if cells[0][0] > group.size:
            msg = (
                f"a profile's cells must have at most the {group.size} workers that were "
                f"started, got {cells[0][0]}. Start as many as the largest cell has."
            )
            raise InvalidProfileError(msg)
        for workers, stage in itertools.groupby(cells, key=lambda cell: cell[0]):
            batches = [batch for _, batch in stage]
            if group.rank < workers:
                for batch in batches:
                    self._measure(workers, batch, config)
            group.meet(f"{workers}", 3 * self._settings.timeout_seconds * len(batches))
            yield self._result()
        group.use("whole", group.size)

    def _measure(self, workers: int, batch_size: int, config: Config) -> None:
        group, began = self._group, time.perf_counter()
        timing: Timing | None = None
        failure: Failure | None = TOO_LARGE
        if not self._is_too_large(batch_size / workers):
            name = f"{workers}/{batch_size}"
            group.use(name, workers)
            timing, failure = self._time(workers, batch_size, config)
            if failure is not None:
                group.leave()  # those who wait for this worker within the group learn of it
            failure = group.first_to_fail(name, workers, failure)
        cell = Cell(
            workers=workers,
            batch_size=batch_size,
            nodes=len(set(group.nodes[:workers])),
            seconds=time.perf_counter() - began,
        )
        if failure is not None:
            self._failed.append(
                FailedCell(**cell, reason=failure.reason, out_of_memory=failure.out_of_memory)
            )
        elif timing is not None:
            self._measured.append(MeasuredCell(**cell, **timing))

    def _time(
        self, workers: int, batch_size: int, config: Config
    ) -> tuple[Timing | None, Failure | None]:
        """Runs the loop in one cell; returns what its steps showed, or why they did not."""
        settings = self._settings
        own = copy.deepcopy(config)
        _put(own, settings.workers_key, workers)
        _put(own, settings.batch_key, batch_size)
        watch = StepWatch(settings.warmup, settings.steps_at(batch_size), settings.timeout_seconds)
        failure: Failure | None = None
        try:
            with self._show(workers, watch), watch.installed():
                settings.train_loop(own)
        except CellEnd:
            pass
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one cell must not lose the others
            failure = None if watch.is_done else _failure(error)
        gc.collect()  # a network and its wrapper hold one another
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
        timing = watch.timing(batch_size, settings.samples)
        if watch.is_overdue:
            failure = Failure(f"took longer than timeout_seconds={settings.timeout_seconds:g}")
        elif failure is None and timing is None:
            failure = Failure(f"ended after {watch.count} steps, none of them timed")
        return timing, failure

    def _is_too_large(self, share: float) -> bool:
        return any(
            failed["out_of_memory"] and share >= failed["batch_size"] / failed["workers"]
            for failed in self._failed
        )

    def _result(self) -> ProfileResult:
        return ProfileResult(
            workers=self._group.size,
            cells=list(self._measured),
            failed=list(self._failed),
            startup_seconds=self._startup_seconds,
            seconds=self._startup_seconds + time.perf_counter() - self._began,
        )


def _put(config: Config, key: str, value: int) -> None:
    """Sets a key, nested with "/"; one that is written with "/" itself comes first."""
    *parents, last = [key] if key in config else key.split("/")
    for parent in parents:
        config = config.setdefault(parent, {})
    config[last] = value


def _failure(error: BaseException) -> Failure:
    reason = f"{type(error).__name__}: {error}"
    return Failure(reason[:1000], is_out_of_memory(error))
