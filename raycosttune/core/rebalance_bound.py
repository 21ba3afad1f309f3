"""Shares with which no worker can be slower than the slowest one at equal shares."""

import itertools
import math
import statistics
from collections.abc import Sequence

# So many samples, at most and at least, that a worker is trusted to keep to the rule: at
# first, as it is likely, and again when it has kept to it for long.
FREE, PROVEN = 2, 4
# log seconds may rise, and fall, by so much a log share where a worker isn't trusted
RISE, FALL = 6.0, 1.5
FASTER = 1.03  # seconds for each sample that rise by less may be rounding
NOISY, DEVIATIONS = 0.01, 2.0
UNLIKELY = 0.05

Points = Sequence[tuple[int, float]]
Bounds = list[tuple[int, int]]


def safe_bounds(
    points: Sequence[Points], equal: Sequence[int], bounds: Bounds, total: int, noise: float
) -> Bounds:
    """Narrows the bounds to shares that are no slower than equal shares were.

    By the rule seconds don't fall with the share, and don't rise faster than it: then a
    share b takes at most t * max(1, b / b') where b' took t, and what the first adjustments
    try can't be slower than equal shares. A worker that broke the rule, and one that has not
    kept to it for long, stays between shares that were fast enough, and goes beyond them only
    so far as a law much steeper would allow; never towards a share that was too slow.

    Args:
        points: Shares and seconds that each worker measured.
        equal: Equal shares.
        bounds: Least and most samples of each worker.
        total: Samples of the global batch.
        noise: Deviation of log seconds, as far as it is certain; cut off at `most_noise`.

    Returns:
        The bounds, unchanged where equal shares weren't measured.
    """
    at_equal = [
        max((seconds for share, seconds in own if share == even), default=math.inf)
        for own, even in zip(points, equal, strict=True)
    ]
    slowest = max(at_equal)
    if math.isinf(slowest):
        return bounds
    noise = min(noise, most_noise([math.log(seconds) for seconds in at_equal]))
    doubt = math.exp(DEVIATIONS * noise) if noise > NOISY else 1.0
    limit = slowest * doubt
    narrow = [
        _narrow(sorted(own), even, ends, limit, doubt)
        for own, even, ends in zip(points, equal, bounds, strict=True)
    ]
    least, most = (sum(ends) for ends in zip(*narrow, strict=True))
    return narrow if least <= total <= most else bounds


def most_noise(log_seconds: Sequence[float]) -> float:
    """Bounds the noise of samples by how closely some of them agree.

    Under noise of deviation s two samples are within g of one another with chance at most
    g / (s sqrt(pi)), the more rarely the less alike their workers are. That half of m samples
    have another one so near, which takes m / 4 such pairs, is then no likelier than
    2 (m - 1) g / (s sqrt(pi)) by Markov's inequality.

    Args:
        log_seconds: Of one sample of each worker.

    Returns:
        The deviation above which that is unlikely, infinite for a single sample.
    """
    ordered = sorted(log_seconds)
    gaps = [math.inf, *(after - before for before, after in itertools.pairwise(ordered)), math.inf]
    near = statistics.median_low([min(pair) for pair in itertools.pairwise(gaps)])
    return 2 * max(len(ordered) - 1, 1) * near / (UNLIKELY * math.sqrt(math.pi))


def _narrow(
    own: Points, even: int, ends: tuple[int, int], limit: float, doubt: float
) -> tuple[int, int]:
    """Returns the bounds of one worker, whose points are in order."""
    fast = [seconds <= limit for _, seconds in own]
    at = next(k for k, (share, _) in enumerate(own) if share == even)
    first = last = at
    while first > 0 and fast[first - 1]:
        first -= 1
    while last + 1 < len(own) and fast[last + 1]:
        last += 1
    is_trusted = not FREE < len(own) < PROVEN and not _breaks(own, doubt)
    (low, low_seconds), (high, high_seconds) = own[first], own[last]
    least, most = low, high
    if first == 0:
        least = 0 if is_trusted else math.ceil(low * (low_seconds / limit) ** (1 / FALL) - 1e-9)
    if last == len(own) - 1:
        rise = 1.0 if is_trusted else RISE
        most = math.floor(high * (limit / high_seconds) ** (1 / rise) + 1e-9)
    return min(max(least, ends[0]), ends[1]), max(min(most, ends[1]), ends[0])


def _breaks(own: Points, doubt: float) -> bool:
    """Says whether seconds fell with the share, or rose faster than it."""
    return any(
        before > after * doubt or after * share > before * more * FASTER * doubt
        for (share, before), (more, after) in itertools.pairwise(own)
        if more > share
    )
