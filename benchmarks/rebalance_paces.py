"""How fast workers compute, epoch by epoch: the scenarios."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

CHANCE = 0.1  # Ye et al. 2020: that an undisturbed worker is slowed from an epoch on
LASTS = (4, 20)  # for so many epochs
EXTRA_SECONDS = (5, 10)  # by so many seconds in each
EPOCH_SECONDS = 50.0  # that these are seconds of: the paper's epochs are not known
KEPT, STEP = 0.95, 0.15  # of a drifting log speed: what is left of it, what is added by chance
SHARED = (3.0, 3.0, 3.0, 1.0)  # three of four workers share a device, as in the paper's code
Numbers = np.ndarray[tuple[int, ...], np.dtype[Any]]


@dataclass(frozen=True)
class Pace:
    """Is what a step costs a worker.

    Attributes:
        sample_seconds: Seconds for each sample, if no profile is known.
        extra_seconds: Seconds for the step.
        profile: Batches and the seconds of each, between which lines are drawn.
    """

    sample_seconds: float = 0.0
    extra_seconds: float = 0.0
    profile: tuple[tuple[float, ...], tuple[float, ...]] | None = None

    @property
    def most(self) -> int | None:
        """Samples up to which the profile reaches, None where there is none."""
        return None if self.profile is None else int(self.profile[0][-1])

    def seconds(self, samples: int) -> float:
        """Returns the seconds of a step with so many samples."""
        return float(self.times(np.array(samples)))

    def times(self, samples: Numbers) -> Numbers:
        """Returns the seconds of steps with so many samples."""
        if self.profile is None:
            return self.extra_seconds + self.sample_seconds * samples
        return self.extra_seconds + np.interp(samples, *self.profile)


Workers = tuple[Pace, ...]


def hetero(workers: int, sample_seconds: float) -> Workers:
    """Returns workers of which the last takes four times as long as the others."""
    return (Pace(sample_seconds),) * (workers - 1) + (Pace(4 * sample_seconds),)


def equal(workers: int, sample_seconds: float) -> Workers:
    """Returns workers that are equally fast."""
    return (Pace(sample_seconds),) * workers


def shared(workers: int, sample_seconds: float) -> Workers:
    """Returns workers of which three of four share a device."""
    return tuple(Pace(sample_seconds * SHARED[k % len(SHARED)]) for k in range(workers))


def steady(workers: Workers, epochs: int) -> list[Workers]:
    """Returns workers whose speeds stay."""
    return [workers] * epochs


def disturbed(workers: Workers, epochs: int, step_seconds: float, seed: int) -> list[Workers]:
    """Returns workers that other tasks disturb, as in Ye et al. 2020.

    Args:
        workers: The workers without disturbance.
        epochs: How many.
        step_seconds: Seconds of a step of an epoch that the disturbance is measured by.
        seed: Of the disturbance.
    """
    rng = random.Random(seed)
    until = [-1] * len(workers)
    extra = [0.0] * len(workers)
    found = []
    for epoch in range(epochs):
        for k in range(len(workers)):
            if epoch > until[k]:
                extra[k] = 0.0
                if rng.random() < CHANCE:
                    extra[k] = step_seconds * rng.randint(*EXTRA_SECONDS) / EPOCH_SECONDS
                    until[k] = epoch + rng.randint(*LASTS) - 1
        found.append(
            tuple(
                replace(pace, extra_seconds=more) for pace, more in zip(workers, extra, strict=True)
            )
        )
    return found


def drifting(workers: Workers, epochs: int, seed: int) -> list[Workers]:
    """Returns workers whose speeds wander by about 15 % an epoch, and 50 % in the long run."""
    rng = random.Random(seed)
    logs = [0.0] * len(workers)
    found = []
    for _ in range(epochs):
        found.append(
            tuple(
                replace(pace, sample_seconds=pace.sample_seconds * float(np.exp(log)))
                for pace, log in zip(workers, logs, strict=True)
            )
        )
        logs = [KEPT * log + STEP * rng.gauss(0, 1) for log in logs]
    return found


def step_seconds(workers: Workers, shares: Sequence[int]) -> float:
    """Returns the seconds of a step: those of the slowest worker."""
    return max(pace.seconds(share) for pace, share in zip(workers, shares, strict=True))


def best_shares(workers: Workers, total: int) -> tuple[int, ...]:
    """Returns the shares with which a step takes least, each at least 1.

    Of all samples, in the order of the time by which a worker could have them, the batch takes the
    first. A worker whom more samples take less time gets these, too.
    """
    curves = [pace.times(np.arange(1, (pace.most or total) + 1)) for pace in workers]
    by_when = [np.minimum.accumulate(curve[::-1])[::-1] for curve in curves]
    latest = np.partition(np.concatenate(by_when), total - 1)[total - 1]
    shares = [max(int(np.searchsorted(times, latest, side="right")), 1) for times in by_when]
    while sum(shares) > total:
        ends = [
            times[share - 1] if share > 1 else -1.0
            for times, share in zip(by_when, shares, strict=True)
        ]
        shares[int(np.argmax(ends))] -= 1
    return tuple(shares)


def best_seconds(workers: Workers, total: int) -> float:
    """Returns the seconds of a step with the best shares."""
    return step_seconds(workers, best_shares(workers, total))
