"""The gradient noise scale, from gradients that workers took over uneven parts of a batch.

With n workers, worker i having the mean gradient g_i over b_i of the B samples of a step, and g
their mean weighted by b_i, one-way analysis of variance gives without bias

    tr(Sigma) = (sum_i b_i |g_i|^2 - B |g|^2) / (n - 1),    |G|^2 = |g|^2 - tr(Sigma) / B

and the noise scale is tr(Sigma) / |G|^2. Both are averaged before they are divided, as a ratio of
averages has less bias than an average of ratios (McCandlish et al. 2018, appendix A.1).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

SMOOTHING = 0.7


@dataclass(frozen=True)
class NoiseTerms:
    """Holds what a worker sums over the steps that it looks at.

    Attributes:
        local: Sum of b_i |g_i|^2: of this worker until `pooled`, of all workers then.
        whole: Sum of B |g|^2.
        squares: Sum of |g|^2.
        inverses: Sum of 1 / B.
        freedom: Sum of n - 1, where n workers had samples.
        steps: Steps that were looked at.
    """

    local: float = 0.0
    whole: float = 0.0
    squares: float = 0.0
    inverses: float = 0.0
    freedom: float = 0.0
    steps: float = 0.0

    def __add__(self, other: "NoiseTerms") -> "NoiseTerms":
        return NoiseTerms(
            self.local + other.local,
            self.whole + other.whole,
            self.squares + other.squares,
            self.inverses + other.inverses,
            self.freedom + other.freedom,
            self.steps + other.steps,
        )

    @property
    def is_usable(self) -> bool:
        """Whether all sums are finite and there is something to divide by."""
        sums = (self.local, self.whole, self.squares, self.inverses)
        return self.freedom > 0 and self.steps > 0 and all(map(math.isfinite, sums))


def step_terms(
    batches: Sequence[float], squares: Sequence[float], whole_square: float
) -> NoiseTerms:
    """Returns the terms of one step whose parts are all known.

    Args:
        batches: b_i, samples of each part, positive.
        squares: |g_i|^2 of each part.
        whole_square: |g|^2 of their mean weighted by the samples.
    """
    total = sum(batches)
    return NoiseTerms(
        local=math.fsum(b * square for b, square in zip(batches, squares, strict=True)),
        whole=total * whole_square,
        squares=whole_square,
        inverses=1 / total,
        freedom=len(batches) - 1,
        steps=1,
    )


def pooled(parts: Sequence[NoiseTerms]) -> NoiseTerms:
    """Returns the terms of all workers: only the local sums differ between them."""
    return replace(parts[0], local=math.fsum(part.local for part in parts))


@dataclass(frozen=True)
class NoiseScale:
    """Is a running estimate.

    Attributes:
        variance: tr(Sigma), smoothed.
        square: |G|^2, smoothed.
        weight: What the smoothing has taken in, from 0 to 1.
    """

    variance: float = 0.0
    square: float = 0.0
    weight: float = 0.0

    def updated(self, terms: NoiseTerms) -> "NoiseScale":
        """Returns the estimate with further steps of all workers taken in."""
        if not terms.is_usable:
            return self
        variance = (terms.local - terms.whole) / terms.freedom
        square = (terms.squares - variance * terms.inverses) / terms.steps
        old, new = SMOOTHING, 1 - SMOOTHING
        return NoiseScale(
            old * self.variance + new * variance,
            old * self.square + new * square,
            old * self.weight + new,
        )

    @property
    def samples(self) -> float | None:
        """The noise scale in samples, None before it can be told from the noise."""
        if self.weight == 0 or self.variance <= 0 or self.square <= 0:
            return None
        scale = self.variance / self.square
        return scale if math.isfinite(scale) else None
