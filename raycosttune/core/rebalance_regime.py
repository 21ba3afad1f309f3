"""Which samples of a worker say how fast it is now."""

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import pairwise

Point = tuple[float, float]  # log share, log seconds
SAME = 0.1  # log shares that differ less are compared as one
RECENT = 3  # so many samples say what to expect
DEVIATIONS = 3.5
# Log seconds may rise, and fall, by so much a log share: while the law is new, and later.
WIDE, NARROW = (6.0, 1.5), (2.0, 0.75)
KNOWN = 3  # samples after which a law isn't new
NEAR, ELASTICITY = 0.3, 0.85
FIRST, LEAST = (0.1, 0.1, 0.1), 0.02  # deviations that are expected, and the least
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

    A sample that no law explains beside those before it shows another state: a neighbour's
    load came or went. A faster one may bring back an earlier state, a slower one is new,
    since two disturbances are rarely alike.

    Args:
        samples: Of one worker, oldest first.
        noise: Deviation of log seconds.
    """
    states: list[list[int]] = [[0]] if samples else [[]]
    for place, sample in enumerate(samples[1:], 1):
        surprise = _surprise([samples[k] for k in states[-1]], sample, noise)
        if surprise:
            earlier = reversed(states[:-1]) if surprise < 0 else ()
            home = next(
                (s for s in earlier if not _surprise([samples[k] for k in s], sample, noise)), []
            )
            states = [*(state for state in states if state is not home), home]
        states[-1].append(place)
    return states[-1]


def _surprise(state: Sequence[Point], sample: Point, noise: float) -> float:
    """Returns how many log seconds a sample is off any law of a state's samples, mostly 0."""
    share, seconds = sample
    nearest, _ = min(state, key=lambda point: abs(point[0] - share))
    alike = [point[1] for point in state if abs(point[0] - nearest) <= SAME][-RECENT:]
    allowed = DEVIATIONS * noise * math.sqrt(1 + 1 / len(alike))
    rise, fall = NARROW if len(state) >= KNOWN else WIDE
    up, down = (rise, fall) if share > nearest else (fall, rise)
    off, gap = seconds - statistics.fmean(alike), abs(share - nearest)
    return max(off - up * gap - allowed, 0.0) + min(off + down * gap + allowed, 0.0)
