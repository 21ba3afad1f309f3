"""What differs when the same run is made again."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.isotonic import isotonic
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.workload import Curve, Workload

NEIGHBOURS = 2


@dataclass(frozen=True)
class Evaluation:
    """Is one report of a simulated run.

    Attributes:
        epoch: Passes over the data done.
        value: The metric.
        seconds: Training seconds since the evaluation before.
        noise_scale: Gradient noise scale as measured by then, None where unknown.
    """

    epoch: float
    value: float
    seconds: float
    noise_scale: float | None = None


@dataclass(frozen=True)
class Noise:
    """Perturbs simulated runs; the same seed, cell and repetition give the same run.

    Attributes:
        time_sd: Standard deviation of log seconds, drawn anew for every evaluation.
        curves: Whether the evaluation noise of a curve is drawn anew for every run.
        value_sd: Standard deviation of what is added to every value; for curves that have no
            noise of their own.

    Raises:
        InvalidWorkloadError: If a deviation is none, or that of times is above 1.
    """

    time_sd: float = 0.0
    curves: bool = False
    value_sd: float = 0.0

    def __post_init__(self) -> None:
        """Checks both deviations."""
        if not 0 <= self.time_sd <= 1:
            msg = f"Noise.time_sd must lie in [0, 1], got {self.time_sd!r}."
            raise InvalidWorkloadError(msg)
        if not 0 <= self.value_sd < math.inf:
            msg = f"Noise.value_sd must be a finite number of at least 0, got {self.value_sd!r}"
            raise InvalidWorkloadError(msg)

    def run(
        self, workload: Workload, cell: Allocation, *, seed: int, repetition: int
    ) -> Iterator[Evaluation]:
        """Yields what a run in a cell reports, until its curve ends."""
        rng = np.random.default_rng([*_words(cell, seed, repetition)])
        curve = workload.curve(cell.batch_size)
        values = resampled(curve, rng) if self.curves else curve.values
        before, epoch_seconds = 0.0, workload.epoch_seconds(cell)
        scales = curve.noise_scales or (None,) * len(values)
        for epoch, shown, scale in zip(curve.epochs, values, scales, strict=True):
            seconds = epoch_seconds * (epoch - before) * self._factor(rng)
            value = shown + self.value_sd * rng.standard_normal()
            yield Evaluation(epoch, value, seconds, scale)
            before = epoch

    def profile(self, cell: Allocation, *, seed: int, repetition: int) -> float:
        """Draws what the times of a profiled cell are multiplied with, 1 on average."""
        # The last word keeps profiles apart from the runs of the same number.
        words = [*_words(cell, seed, repetition), 1]
        return self._factor(np.random.default_rng(words))

    def _factor(self, rng: np.random.Generator) -> float:
        return float(np.exp(self.time_sd * rng.standard_normal() - self.time_sd**2 / 2))


def _words(cell: Allocation, seed: int, repetition: int) -> list[int]:
    """Returns what tells the runs of one world apart."""
    words = [seed, cell.workers, cell.batch_size, repetition]
    return [*words, crc32(cell.node_type.encode())] if cell.node_type else words


def resampled(curve: Curve, rng: np.random.Generator) -> tuple[float, ...]:
    """Draws a curve's evaluation noise anew.

    The trend is the closest monotone sequence; every evaluation gets the deviation of one
    of its neighbours, itself included, so that noise stays as large as it was at that stage.
    """
    trend = _trend(curve)
    shift = rng.integers(-NEIGHBOURS, NEIGHBOURS + 1, len(trend))
    donor = np.clip(np.arange(len(trend)) + shift, 0, len(trend) - 1)
    return tuple((trend + (np.array(curve.values) - trend)[donor]).tolist())


@lru_cache(maxsize=256)
def _trend(curve: Curve) -> Floats:
    values = np.array(curve.values)
    ones = np.ones(len(values))
    fits = [isotonic(values, ones, increasing=rising) for rising in (True, False)]
    return min(fits, key=lambda fit: float(((fit - values) ** 2).sum()))
