"""Speed-up of workers that share a batch, from one ratio: overhead over one worker's compute.

A step of one worker takes T_C (1 + R_O): compute, and an overhead that more workers do not
shorten, such as their exchange of gradients. Of G workers it takes T_C / G + T_C R_O. This is
Amdahl's law with the serial part R_O / (1 + R_O).
"""

import math
from bisect import bisect_left

from raycosttune.advise.amdahl import serial_part_of_overhead
from raycosttune.advise.quantity import MOST_COUNT, amount, count, part, positive, refuse


def overhead_ratio(compute_seconds: float, overhead_seconds: float, workers: int = 1) -> float:
    """Returns R_O = T_O / (G T_C(G)), from a step that G workers shared.

    Args:
        compute_seconds: T_C(G), what each of them computed in the step.
        overhead_seconds: T_O, the rest of the step.
        workers: G. With one, nothing is exchanged, so R_O is that of the other overheads alone.

    Raises:
        InvalidAdviceError: If a number is unusable.

    >>> overhead_ratio(compute_seconds=0.5, overhead_seconds=0.1, workers=2)
    0.1
    """
    compute = positive("compute_seconds", compute_seconds) * count("workers", workers)
    return amount("overhead_seconds", overhead_seconds) / compute


def efficiency(workers: int, overhead_ratio: float) -> float:
    """Returns alpha = (1 + R_O) / (1 + G R_O), the speed-up over the number of workers.

    Args:
        workers: G.
        overhead_ratio: R_O, at least 0.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Zou et al. 2017, Lemma 3.1.

    >>> efficiency(4, 0.1)
    0.7857142857142858
    """
    ratio = amount("overhead_ratio", overhead_ratio)
    return (1 + ratio) / (1 + count("workers", workers) * ratio)


def speedup(workers: int, overhead_ratio: float) -> float:
    """Returns alpha G, one worker's seconds over those of G.

    Args:
        workers: G.
        overhead_ratio: R_O, at least 0.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Zou et al. 2017, Lemma 3.1.

    >>> round(speedup(4, 0.1), 3)
    3.143
    """
    return efficiency(workers, overhead_ratio) * workers


def speedup_limit(overhead_ratio: float) -> float:
    """Returns 1 + 1 / R_O, what no number of workers exceeds; infinity without overhead.

    Raises:
        InvalidAdviceError: If the ratio is negative or no number.

    >>> speedup_limit(0.25)
    5.0
    """
    ratio = amount("overhead_ratio", overhead_ratio)
    return 1 + 1 / ratio if ratio > 0 else math.inf


def workers_for_speedup(speedup_wanted: float, overhead_ratio: float) -> int:
    """Returns the fewest workers that reach a speed-up: G = S / (1 + R_O - S R_O), rounded up.

    Args:
        speedup_wanted: S.
        overhead_ratio: R_O, at least 0.

    Raises:
        InvalidAdviceError: If no number of workers reaches it, or a number is unusable.

    References:
        Zou et al. 2017, Lemma 3.1, solved for G.

    >>> workers_for_speedup(3, 0.1)
    4
    """
    wanted = positive("speedup_wanted", speedup_wanted)
    limit = speedup_limit(overhead_ratio)
    # Searched, as the closed form loses all its digits just below the limit.
    fewest = 1 + bisect_left(
        range(1, MOST_COUNT + 1), wanted, key=lambda workers: speedup(workers, overhead_ratio)
    )
    if wanted >= limit or fewest > MOST_COUNT:
        rule = f"be below {limit:.6g}, which no number of workers exceeds"
        refuse("speedup_wanted", rule, speedup_wanted)
    return fewest


def workers_for_efficiency(least_efficiency: float, overhead_ratio: float) -> int | None:
    """Returns the most workers that keep an efficiency: G = ((1 + R_O) / alpha - 1) / R_O.

    Args:
        least_efficiency: alpha, above 0 and at most 1.
        overhead_ratio: R_O, at least 0.

    Returns:
        The number, rounded down; None where any number keeps it.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Zou et al. 2017, Lemma 3.1, solved for G.

    >>> workers_for_efficiency(0.75, 0.1)
    4
    """
    alpha = part("least_efficiency", positive("least_efficiency", least_efficiency))
    first_below = 1 + bisect_left(
        range(1, MOST_COUNT + 1),
        x=True,
        key=lambda workers: efficiency(workers, overhead_ratio) < alpha,
    )
    return first_below - 1 if first_below <= MOST_COUNT else None


def largest_overhead_ratio(workers: int, least_efficiency: float) -> float:
    """Returns the largest R_O that leaves G workers an efficiency: (1 - alpha) / (alpha G - 1).

    Args:
        workers: G.
        least_efficiency: alpha, from 0 to 1.

    Returns:
        R_O; infinity where alpha is at most 1 / G, which every overhead allows.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Zou et al. 2017, Lemma 3.1, solved for R_O.

    >>> round(largest_overhead_ratio(4, 0.8), 6)
    0.090909
    """
    alpha = part("least_efficiency", least_efficiency)
    above = alpha * count("workers", workers) - 1
    return (1 - alpha) / above if above > 0 else math.inf


def node_hours_factor(workers: int, overhead_ratio: float) -> float:
    """Returns 1 / alpha, what G workers cost over what one does: it rises linearly in G.

    Args:
        workers: G, each of them paid for as one unit.
        overhead_ratio: R_O, at least 0.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Follows from Zou et al. 2017, Lemma 3.1: G T_G / T_1.

    >>> round(node_hours_factor(4, 0.1), 4)
    1.2727
    """
    added = count("workers", workers) - 1
    return 1 + added * serial_part_of_overhead(overhead_ratio)
