"""Memory of a step against the samples of a worker, and the most samples that fit.

Both ways to know it, the paper's terms and a measurement, give a line: bytes that are there at
any batch, and bytes of each sample.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from raycosttune.advise.quantity import (
    MOST_COUNT,
    amount,
    count,
    measured,
    of_kind,
    positive,
    refuse,
)

SAMPLES_OF_A_LINE = 2


@dataclass(frozen=True)
class MemoryLine:
    """Is how many bytes a step takes.

    Attributes:
        fixed_bytes: At any batch: the program, parameters, gradients, the optimizer's state.
        sample_bytes: Of each sample of the local batch, above 0: inputs and feature maps.

    Raises:
        InvalidAdviceError: If a number is unusable.
    """

    fixed_bytes: float
    sample_bytes: float

    def __post_init__(self) -> None:
        """Checks both numbers."""
        amount("MemoryLine.fixed_bytes", self.fixed_bytes)
        positive("MemoryLine.sample_bytes", self.sample_bytes)

    def bytes_at(self, batch_size: int) -> float:
        """Returns the bytes of a step of so many samples on a worker."""
        return self.fixed_bytes + self.sample_bytes * batch_size


def memory_terms(
    feature_elements: Sequence[int],
    parameters: int,
    *,
    other_bytes: float = 0.0,
    copies: int = 3,
    element_bytes: int = 4,
) -> MemoryLine:
    """Returns the line by the paper's terms: M_FM = X sum(elements) 4, M_MP = 3 x parameters x 4.

    It leaves out what a library keeps beside them, so a measured line is safer.

    Args:
        feature_elements: Elements of each layer's output for one sample.
        parameters: How many.
        other_bytes: M_C, of a classifier that is counted apart, and all else.
        copies: Of each parameter: itself, its gradient, its momentum.
        element_bytes: Of a number.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Zou et al. 2017, the memory bound of a mini-batch.

    >>> memory_terms([4096, 1024], 10_000)
    MemoryLine(fixed_bytes=120000.0, sample_bytes=20480.0)
    """
    of_kind("feature_elements", feature_elements, Iterable)
    elements = sum(count("feature_elements", each) for each in feature_elements)
    held = count("copies", copies) * count("parameters", parameters)
    size = count("element_bytes", element_bytes)
    return MemoryLine(
        amount("other_bytes", other_bytes) + float(held * size), float(elements * size)
    )


def fit_memory_line(peak_bytes: Mapping[int, float]) -> MemoryLine:
    """Fits a line to measured peaks, so that none lies above it.

    Its slope is the least-squares one, or that between the two largest batches where this is
    steeper: what bends upwards must not be underestimated beyond them.

    Args:
        peak_bytes: Peak of a step by the samples of a worker; at least two.

    Raises:
        InvalidAdviceError: If there are fewer, the peaks do not rise, or a number is unusable.

    >>> fit_memory_line({8: 180.0, 16: 260.0})
    MemoryLine(fixed_bytes=100.0, sample_bytes=10.0)
    """
    of_kind("peak_bytes", peak_bytes, Mapping)
    points = sorted(
        (count("a batch", n), measured("peak_bytes", b, 0)) for n, b in peak_bytes.items()
    )
    if len(points) < SAMPLES_OF_A_LINE:
        refuse("peak_bytes", "hold at least two batches", dict(peak_bytes))
    mean_n = math.fsum(n for n, _ in points) / len(points)
    mean_b = math.fsum(b for _, b in points) / len(points)
    spread = math.fsum((n - mean_n) ** 2 for n, _ in points)
    slope = math.fsum((n - mean_n) * (b - mean_b) for n, b in points) / spread
    (before, low), (last, high) = points[-2:]
    slope = max(slope, (high - low) / (last - before))
    if slope <= 0:
        refuse("peak_bytes", "rise with the batch: measure larger batches", dict(peak_bytes))
    fixed = max(b - slope * n for n, b in points)
    return MemoryLine(max(fixed, 0.0), slope)


def largest_batch(memory_bytes: float, line: MemoryLine, failed_batch: int | None = None) -> int:
    """Returns the most samples of a worker whose step fits: (M - fixed) / sample, rounded down.

    No count here exceeds 10**12.

    Args:
        memory_bytes: M, what a worker may use.
        line: What a step takes.
        failed_batch: Samples with which memory ran out; what is returned is fewer.

    Raises:
        InvalidAdviceError: If not even one sample fits, or a number is unusable.

    References:
        Zou et al. 2017: M_bound = M_GPU - M_FM - M_MP - M_C may not fall below 0.

    >>> largest_batch(1000.0, MemoryLine(fixed_bytes=100.0, sample_bytes=10.0))
    90
    """
    of_kind("line", line, MemoryLine)
    left = positive("memory_bytes", memory_bytes) - line.fixed_bytes
    most = math.floor(min(left / line.sample_bytes, MOST_COUNT)) + 1
    while most > 0 and line.bytes_at(most) > memory_bytes:  # once, or twice after rounding
        most -= 1
    most = min(most, MOST_COUNT)
    if failed_batch is not None:
        most = min(most, count("failed_batch", failed_batch) - 1)
    if most < 1:
        rule = f"hold a step of one sample, {line.bytes_at(1):.4g} bytes"
        rule += "" if failed_batch is None else f", and {failed_batch} samples ran out of it"
        refuse("memory_bytes", rule, memory_bytes)
    return most


def workspace_bytes(memory_bytes: float, line: MemoryLine, batch_size: int) -> float:
    """Returns M_bound, what a step of so many samples leaves for the layers' algorithms.

    Args:
        memory_bytes: M, what a worker may use.
        line: What a step takes beside them.
        batch_size: Samples of a worker.

    Raises:
        InvalidAdviceError: If the step itself does not fit, or a number is unusable.

    References:
        Zou et al. 2017: M_bound = M_GPU - M_FM - M_MP - M_C.

    >>> workspace_bytes(1000.0, MemoryLine(100.0, 10.0), 80)
    100.0
    """
    of_kind("line", line, MemoryLine)
    left = positive("memory_bytes", memory_bytes) - line.bytes_at(count("batch_size", batch_size))
    if left < 0:
        rule = f"hold a step of {batch_size} samples, {line.bytes_at(batch_size):.4g} bytes"
        refuse("memory_bytes", rule, memory_bytes)
    return left
