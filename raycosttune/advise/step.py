"""A step of many workers from steps of one at several batches, and one exchange of two.

Lemma 3.1 shares all of one worker's compute among the workers. But a step costs something
whatever its batch, which no worker shares; where one worker is timed at two batches or more, this
part is known, and predictions are better for it (benchmarks/results/advise.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from raycosttune.advise.allreduce import Link, ring_seconds
from raycosttune.advise.overlap import batch_to_hide, step_seconds
from raycosttune.advise.quantity import amount, count, measured, of_kind, positive, refuse

PER_BYTE = Link(1.0)
FEWEST_BATCHES = 2


@dataclass(frozen=True)
class ComputeLine:
    """Is what a worker computes in a step.

    Attributes:
        fixed_seconds: At any batch.
        sample_seconds: Of each sample of the local batch.

    Raises:
        InvalidAdviceError: If a number is unusable.
    """

    fixed_seconds: float
    sample_seconds: float

    def __post_init__(self) -> None:
        """Checks both numbers."""
        amount("ComputeLine.fixed_seconds", self.fixed_seconds)
        amount("ComputeLine.sample_seconds", self.sample_seconds)

    def seconds(self, samples: float) -> float:
        """Returns the compute of a step of so many samples on a worker."""
        return self.fixed_seconds + self.sample_seconds * samples


def fit_compute_line(compute_seconds: Mapping[int, float]) -> ComputeLine:
    """Fits a line to one worker's steps by least squares of relative errors, neither part below 0.

    Args:
        compute_seconds: Seconds of a step of one worker by its samples; at least two.

    Raises:
        InvalidAdviceError: If there are fewer, or a number is unusable.

    >>> line = fit_compute_line({8: 0.18, 16: 0.26})
    >>> round(line.fixed_seconds, 6), round(line.sample_seconds, 6)
    (0.1, 0.01)
    """
    from scipy.optimize import nnls  # noqa: PLC0415 - takes a third of a second

    of_kind("compute_seconds", compute_seconds, Mapping)
    points = {
        count("a batch", n): measured("compute_seconds", s) for n, s in compute_seconds.items()
    }
    if len(points) < FEWEST_BATCHES:
        refuse("compute_seconds", "hold at least two batches", dict(compute_seconds))
    rows = [[1 / seconds, samples / seconds] for samples, seconds in points.items()]
    fixed, each = nnls(rows, [1.0] * len(rows))[0]
    return ComputeLine(float(fixed), float(each))


@dataclass(frozen=True)
class StepLaw:
    """Is a law of the step of any number of workers: compute beside a ring of rings.

    Attributes:
        compute: Of one worker.
        pair_seconds: What the exchange of two workers on one node takes, were it alone.
        overlap: How far it hides, as in `step_seconds`: 1 where `pair_seconds` is what the step
            was seen to grow by.
        workers_per_node: Workers that a node holds, None where one holds all.
        far_pair_seconds: As `pair_seconds`, of two workers on two nodes; None where not known.
        crowding: Compute of a worker that shares its node with others over that of one alone.

    Raises:
        InvalidAdviceError: If a number is unusable.
    """

    compute: ComputeLine
    pair_seconds: float
    overlap: float = 1.0
    workers_per_node: int | None = None
    far_pair_seconds: float | None = None
    crowding: float = 1.0

    def __post_init__(self) -> None:
        """Checks the numbers."""
        positive("StepLaw.crowding", self.crowding)
        amount("StepLaw.pair_seconds", self.pair_seconds)
        amount("StepLaw.far_pair_seconds", self.far_pair_seconds or 0.0)
        count("StepLaw.workers_per_node", self.workers_per_node or 1)
        step_seconds(0.0, 0.0, self.overlap)

    def exchange_seconds(self, workers: int) -> float:
        """Returns the exchange of so many workers, were it alone: it grows as a ring's bytes.

        Raises:
            InvalidAdviceError: If they fill several nodes and no exchange across is known.
        """
        most = self.workers_per_node or count("workers", workers)
        nodes = math.ceil(workers / most)
        within = ring_seconds(self.pair_seconds, min(workers, most), PER_BYTE)
        if nodes == 1:
            return within
        if self.far_pair_seconds is None:
            refuse("workers", f"be at most {most}: time two workers on two nodes too", workers)
        return within + ring_seconds(self.far_pair_seconds, nodes, PER_BYTE)

    def seconds(self, workers: int, batch_size: int) -> float:
        """Returns a step of a global batch, whose largest share is ceil(b / n).

        Raises:
            InvalidAdviceError: If a number is unusable.

        >>> law = StepLaw(ComputeLine(fixed_seconds=0.1, sample_seconds=0.01), pair_seconds=0.2)
        >>> round(law.seconds(4, 64), 6)
        0.56
        """
        compute = self.compute_seconds(workers, batch_size)
        return step_seconds(compute, self.exchange_seconds(workers), self.overlap)

    def compute_seconds(self, workers: int, batch_size: int) -> float:
        """Returns the compute of a step of a global batch, on crowded nodes where they are.

        Raises:
            InvalidAdviceError: If a number is unusable.
        """
        share = math.ceil(count("batch_size", batch_size) / count("workers", workers))
        is_crowded = workers > 1 and self.workers_per_node != 1
        return self.compute.seconds(share) * (self.crowding if is_crowded else 1.0)

    def speedup(self, workers: int, batch_size: int) -> float:
        """Returns one worker's seconds over those of so many at the same global batch.

        Raises:
            InvalidAdviceError: If a number is unusable.
        """
        return self.seconds(1, batch_size) / self.seconds(workers, batch_size)

    def hiding_batch(self, workers: int) -> int:
        """Returns the smallest global batch whose compute takes as long as the exchange.

        Raises:
            InvalidAdviceError: If the compute does not grow with the samples.
        """
        exchange, line = self.exchange_seconds(workers), self.compute
        return workers * batch_to_hide(exchange, line.sample_seconds, line.fixed_seconds)
