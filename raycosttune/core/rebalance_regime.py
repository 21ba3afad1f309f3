"""Which samples of a worker say how fast it is now."""

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

Point = tuple[float, float]  # log share, log seconds
SAME = 0.1  # log shares that differ less are compared as one
RECENT = 3  # so many samples say what to expect
DEVIATIONS = 3.5
WIDE, NARROW = (6.0, 1.5), (2.0, 0.75)  # log seconds may rise, and fall, by so much a log share
KNOWN = 3  # samples from which on a state is known well
NEAR, ELASTICITY = 0.3, 0.85
FIRST, LEAST = (0.05, 0.05, 0.05), 0.02  # deviations that are expected, and the least
MEDIAN = 0.6745 * math.sqrt(2)  # of the difference of two samples, in deviations of one


def steadiness(workers: Iterable[Sequence[Point]]) -> float:
    """Estimates the noise of log seconds from one sample to the next, robust to jumps.

    Args:
        workers: Samples of each worker, oldest first.
    """
    changes = [
        abs(after[1] - before[1] - ELASTICITY * (after[0] - before[0])) / MEDIAN
        for samples in workers
        for before, after in pairwise(samples)
        if abs(after[0] - before[0]) <= NEAR
    ]
    return max(statistics.median([*changes, *FIRST]), LEAST)


def current(samples: Sequence[Point], noise: float) -> list[int]:
    """Returns the places of the samples that were measured in the worker's present state.

    A sample that no law explains beside those before it begins a new state, or brings back
    an earlier one: a neighbour's load came or went.

    Args:
        samples: Of one worker, oldest first.
        noise: Deviation of log seconds.
    """
    states: list[list[int]] = [[]]
    for place, sample in enumerate(samples):
        homes = (s for s in reversed(states) if _fits([samples[k] for k in s], sample, noise))
        home = next(homes, [])
        states = [*(state for state in states if state is not home), home]
        home.append(place)
    return states[-1]


def _fits(state: Sequence[Point], sample: Point, noise: float) -> bool:
    """Says whether a law may take the seconds of a state's samples and of another one."""
    if not state:
        return False
    share, seconds = sample
    nearest = min(state, key=lambda point: abs(point[0] - share))
    alike = [s for x, s in state if abs(x - nearest[0]) <= SAME][-RECENT:]
    gap = share - nearest[0]
    expected = statistics.fmean(alike)
    allowed = DEVIATIONS * noise * math.sqrt(1 + 1 / len(alike))
    rise, fall = NARROW if len(state) >= KNOWN else WIDE
    up, down = (rise, fall) if gap > 0 else (fall, rise)
    return -down * abs(gap) - allowed <= seconds - expected <= up * abs(gap) + allowed
