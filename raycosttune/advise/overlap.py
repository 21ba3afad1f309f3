"""How far an exchange hides behind the compute of the same step."""

import math

import numpy as np
from numpy.typing import NDArray

from raycosttune.advise.quantity import (
    MOST_COUNT,
    amount,
    count,
    overlap_power,
    positive,
    refuse,
    rounded_up,
)

Floats = NDArray[np.float64]


def step_seconds(compute_seconds: float, exchange_seconds: float, overlap: float = 1.0) -> float:
    """Returns (compute^g + exchange^g)^(1 / g).

    Args:
        compute_seconds: Of the step.
        exchange_seconds: Of the step, were it alone.
        overlap: g, from 1, one after the other, to infinity, all at once: the longer of both.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Qiao et al. 2021, Pollux, section 3.2.

    >>> step_seconds(3, 4), step_seconds(3, 4, overlap=2), step_seconds(3, 4, overlap=math.inf)
    (7.0, 5.0, 4.0)
    """
    compute = amount("compute_seconds", compute_seconds)
    exchange = amount("exchange_seconds", exchange_seconds)
    power = overlap_power(overlap)
    longer, shorter = max(compute, exchange), min(compute, exchange)
    if longer == 0 or math.isinf(power):
        return longer
    return longer * math.pow(1 + math.pow(shorter / longer, power), 1 / power)


def log_step_seconds(log_compute: Floats, log_exchange: Floats, overlap: float) -> Floats:
    """Returns the logs of `step_seconds` from the logs of both, as the search's own law needs them.

    Args:
        log_compute: Log seconds of the steps' compute, of any shape.
        log_exchange: Log seconds of their exchange, likewise; minus infinity, or far below the
            other, where there is none.
        overlap: As in `step_seconds`, finite.

    >>> log_step_seconds(np.log([3.0]), np.log([4.0]), 2.0).round(6) == np.log([5.0]).round(6)
    array([ True])
    """
    both = np.logaddexp(overlap * log_compute, overlap * log_exchange)
    return np.asarray(both / overlap, dtype=np.float64)


def exposed_seconds(compute_seconds: float, exchange_seconds: float, overlap: float = 1.0) -> float:
    """Returns what an exchange adds to a step: `step_seconds` less the compute.

    Args:
        compute_seconds: Of the step.
        exchange_seconds: Of the step, were it alone.
        overlap: As in `step_seconds`.

    Raises:
        InvalidAdviceError: If a number is unusable.

    >>> exposed_seconds(3, 4, overlap=2)
    2.0
    """
    return step_seconds(compute_seconds, exchange_seconds, overlap) - compute_seconds


def bucketed_exposed_seconds(
    backward_seconds: float, exchange_seconds: float, buckets: int
) -> float:
    """Returns what an exchange in buckets adds: max(E / k, E - W (1 - 1 / k)).

    A bucket leaves when its gradients are there, evenly over the backward pass, and waits until
    the link is free. The last one leaves at the end, so it never hides.

    Args:
        backward_seconds: W, of the backward pass.
        exchange_seconds: E, of all buckets one after the other.
        buckets: k, all of one size, as `DistributedDataParallel` makes them of 25 MB.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Li et al. 2020, PyTorch Distributed, section 3.2 (buckets); follows for equal ones.

    >>> bucketed_exposed_seconds(2.0, 1.0, buckets=4), bucketed_exposed_seconds(2.0, 4.0, buckets=4)
    (0.25, 2.5)
    """
    backward = amount("backward_seconds", backward_seconds)
    exchange = amount("exchange_seconds", exchange_seconds)
    number = count("buckets", buckets)
    return max(exchange / number, exchange - backward * (1 - 1 / number))


def batch_to_hide(
    exchange_seconds: float, sample_seconds: float, fixed_seconds: float = 0.0
) -> int:
    """Returns the smallest local batch whose compute takes as long as the exchange.

    From there on the exchange can hide, where both run at once.

    Args:
        exchange_seconds: Of a step.
        sample_seconds: What a worker computes for a sample.
        fixed_seconds: What it computes in a step of any batch.

    Raises:
        InvalidAdviceError: If a number is unusable, or the batch would exceed 10**12.

    References:
        Zou et al. 2017, Lemma 3.2: compute and exchange balance.

    >>> batch_to_hide(exchange_seconds=0.5, sample_seconds=0.01, fixed_seconds=0.1)
    40
    """
    exposed = amount("exchange_seconds", exchange_seconds)
    exposed -= amount("fixed_seconds", fixed_seconds)
    samples = exposed / positive("sample_seconds", sample_seconds)
    if samples > MOST_COUNT:
        refuse("sample_seconds", "be so large that a batch of 10**12 hides it", sample_seconds)
    return rounded_up(max(samples, 1.0))
