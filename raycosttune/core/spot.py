"""What a run takes on machines that may be taken back."""

import math

from raycosttune.core.cost import SECONDS_PER_HOUR

MOST_EXPONENT = 300.0  # beyond e^300 seconds a run never ends; more would be no number
LARGE = 30.0  # e^x - 1 is e^x from here on


def expected_seconds(
    work_seconds: float,
    *,
    interruptions_per_hour: float,
    checkpoint_seconds: float | None,
    restart_seconds: float,
) -> float:
    """Returns the expected time of a run that goes on from its last checkpoint when interrupted.

    Interruptions come at random, at a constant rate lambda, during work and restarts alike.
    Each loses the work since the last checkpoint, and is followed by a restart of R seconds.
    A segment of s seconds between checkpoints then takes, a renewal argument,

        E[T(s)] = (e^(lambda s) - 1) e^(lambda R) / lambda,

    and a run the sum over its segments, the last of which may be shorter.

    Args:
        work_seconds: What the run takes uninterrupted, its own start and the writing of its
            checkpoints included.
        interruptions_per_hour: Of the whole run: the rate of one machine times the machines.
        checkpoint_seconds: Work between checkpoints; None where a run starts anew.
        restart_seconds: From an interruption until work goes on.

    Returns:
        Seconds, at least `work_seconds`; never falling as any argument grows, but for
        `checkpoint_seconds` of at least a hundredth of a second.

    References:
        Daly 2006, A higher order estimate of the optimum checkpoint interval for restart
        dumps (total wall time with exponential interruptions, for each segment).
    """
    rate = interruptions_per_hour / SECONDS_PER_HOUR
    if rate <= 0 or work_seconds <= 0:
        return max(work_seconds, 0.0)
    segment = work_seconds if checkpoint_seconds is None else checkpoint_seconds
    whole = math.floor(work_seconds / segment)
    rest = max(work_seconds - whole * segment, 0.0)
    segments = (whole, segment), (1, rest)
    taken = (count * _segment(seconds, rate, restart_seconds) for count, seconds in segments)
    return max(min(math.fsum(taken), math.exp(MOST_EXPONENT)), work_seconds)


def _segment(seconds: float, rate: float, restart_seconds: float) -> float:
    if seconds <= 0:
        return 0.0
    log_taken = math.log(seconds) + _log_growth(rate * seconds) + rate * restart_seconds
    return math.exp(min(log_taken, 2 * MOST_EXPONENT))


def _log_growth(x: float) -> float:
    """Returns log((e^x - 1) / x)."""
    if x <= 0:
        return 0.0
    return x - math.log(x) if x > LARGE else math.log(math.expm1(x) / x)
