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
JUMP = math.log(4)  # between shares far apart seconds rise with the share, and jump once
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
    since two disturbances are rarely alike. A new state of one sample was a pause where an
    earlier one explains the next sample twice as well, and so was an older sample that is slower
    than any law allows beside the newest.

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
        elif len(states) > 1 and len(states[-1]) == 1:
            here, before = ([samples[k] for k in state] for state in (states[-1], states[-2]))
            off, allowed = _distance(before, sample), DEVIATIONS * noise * math.sqrt(2)
            is_over = _distance(here, sample) - off > max(off, allowed)
            if is_over and not _surprise(before, sample, noise):
                states.pop()
        kept = [k for k in states[-1] if not _is_pause(samples[k], sample, noise)]
        states[-1] = [*kept, place]
    return states[-1]


def _distance(state: Sequence[Point], sample: Point) -> float:
    """Returns how many log seconds a sample is off what is likely by the one nearest to it."""
    share, seconds = sample
    nearest, known = min(reversed(state), key=lambda point: abs(point[0] - share))
    return abs(seconds - known - ELASTICITY * (share - nearest))


def _is_pause(older: Point, newest: Point, noise: float) -> bool:
    gap = older[0] - newest[0]
    allowed = _most_rise(WIDE[0], gap) if gap > 0 else WIDE[1] * -gap
    is_slower = older[1] - newest[1] > allowed + DEVIATIONS * noise * math.sqrt(2)
    return abs(gap) > SAME and is_slower


def _most_rise(rise: float, gap: float) -> float:
    return min(rise * gap, gap + JUMP)


def _surprise(state: Sequence[Point], sample: Point, noise: float) -> float:
    """Returns how many log seconds a sample is off any law of a state's samples, mostly 0."""
    share, seconds = sample
    nearest, _ = min(state, key=lambda point: abs(point[0] - share))
    alike = [point[1] for point in state if abs(point[0] - nearest) <= SAME][-RECENT:]
    allowed = DEVIATIONS * noise * math.sqrt(1 + 1 / len(alike))
    rise, fall = NARROW if len(state) >= KNOWN else WIDE
    off, gap = seconds - statistics.fmean(alike), abs(share - nearest)
    most, least = _most_rise(rise, gap), fall * gap
    up, down = (most, least) if share > nearest else (least, most)
    return max(off - up - allowed, 0.0) + min(off + down + allowed, 0.0)
