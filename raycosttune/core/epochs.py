"""Epochs to the target as runs show them: one by one, and all of a recipe at a batch."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

EARLIEST = 1e-6  # stands for epoch 0, which has no logarithm


@dataclass(frozen=True)
class Epochs:
    """Is what a run showed: the target lies in (low, high] epochs.

    Attributes:
        batch_size: Global batch.
        recipe: Key of the recipe.
        low: The last epoch that had not reached the target.
        high: The epoch that reached it; infinite for a censored run.
    """

    batch_size: int
    recipe: str
    low: float
    high: float

    @property
    def is_censored(self) -> bool:
        """Whether the run ended, or stands, before the target."""
        return math.isinf(self.high)


@dataclass(frozen=True, eq=False)
class Seen:
    """Is what the runs of one recipe at one batch show together.

    Whatever compares runs with runs needs these few figures of them, not the runs.

    Attributes:
        batch_size: Global batch.
        low: The most epochs that a run made in vain.
        log_low: Log of the greatest lower end, `EARLIEST` and less than the first epoch
            standing for the epochs before a first evaluation.
        high: The fewest epochs that reached the target, infinite where none did.
        counts: How many runs showed each pair of (low, high).
        reached: How many reached the target.
        mean: Mean of their log epochs.
        squares: Squared deviations from it, summed.
    """

    batch_size: int
    low: float = 0.0
    log_low: float = -math.inf
    high: float = math.inf
    counts: Mapping[tuple[float, float], int] = field(default_factory=dict)
    reached: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, batch_size: int, runs: Iterable[Epochs]) -> "Seen":
        """Sums up the runs of one recipe at one batch."""
        seen = cls(batch_size)
        for run in runs:
            seen = seen.plus(run)
        return seen

    def plus(self, run: Epochs) -> "Seen":
        """Returns these runs and one more."""
        key = run.low, run.high
        reached, mean, squares = self.reached, self.mean, self.squares
        if not run.is_censored:
            reached += 1
            off = math.log(max(run.high, EARLIEST)) - mean
            mean += off / reached
            squares += off * off * (reached - 1) / reached
        return Seen(
            batch_size=self.batch_size,
            low=max(self.low, run.low),
            log_low=max(self.log_low, math.log(run.low or _before_first(run))),
            high=min(self.high, run.high),
            counts={**self.counts, key: self.counts.get(key, 0) + 1},
            reached=reached,
            mean=mean,
            squares=squares,
        )

    @cached_property
    def log_high(self) -> float:
        """Log of the least upper end."""
        return math.log(self.high)

    @cached_property
    def middle(self) -> tuple[float, float]:
        """Mean log epochs of the runs that reached the target, and the deviation of one.

        Each needed somewhere between its last evaluation below the target and the next one.
        """
        ends = [(low, high, n) for (low, high), n in self.counts.items() if math.isfinite(high)]
        reached = [(span(low, high), high, n) for low, high, n in ends]
        mean = sum(n * (math.log(high) - gap / 2) for gap, high, n in reached) / self.reached
        return mean, math.sqrt(sum(n * gap**2 / 12 for gap, _, n in reached) / self.reached)

    @cached_property
    def vain(self) -> Mapping[float, int]:
        """How many runs made so many epochs in vain and did not reach the target."""
        return {low: count for (low, high), count in self.counts.items() if math.isinf(high)}

    @property
    def repeats(self) -> int:
        """How many runs in vain made as many epochs as one before, and so showed nothing new."""
        return sum(self.vain.values()) - len(self.vain)


def span(low: float, high: float) -> float:
    """Returns the width of an interval of epochs in log; one from 0 begins at half its end."""
    return math.log(high / max(low, high / 2))


def _before_first(run: Epochs) -> float:
    """Stands for the lower end of a run of which no earlier epoch is known."""
    return EARLIEST if run.is_censored else min(run.high, 1.0) / 2
