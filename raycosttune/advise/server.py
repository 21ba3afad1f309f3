"""Parameter servers: how many hide their exchange behind the workers' compute.

In a step every worker pulls all parameters and pushes all gradients: 2 S_p N_w bytes pass
through N_ps servers of bandwidth B_ps each. They hide behind T_C seconds of compute where

    N_ps >= 2 S_p N_w / (B_ps T_C).
"""

import sys
from collections.abc import Iterable, Sequence
from heapq import heapify, heapreplace

from raycosttune.advise.quantity import (
    MOST_COUNT,
    ROUNDING,
    amount,
    count,
    of_kind,
    positive,
    refuse,
    rounded_up,
)

MOST_SERVERS = 10**6


def parameter_servers(
    parameter_bytes: float,
    workers: int,
    bandwidth_bytes_per_second: float,
    compute_seconds: float,
    shard_bytes: Sequence[float] | None = None,
) -> int:
    """Returns the fewest servers that hide their exchange: N_ps >= 2 S_p N_w / (B_ps T_C).

    Args:
        parameter_bytes: S_p, bytes of all parameters.
        workers: N_w.
        bandwidth_bytes_per_second: B_ps, of each server, shared by all that it sends and gets.
        compute_seconds: T_C of a step on a worker.
        shard_bytes: Measured sizes of pieces that are not split, such as tensors. Servers then
            carry uneven loads, the fullest of which counts, and more may be needed. They
            need not add up to the parameters; their proportions count.

    Raises:
        InvalidAdviceError: If no number of servers is enough as one piece is too large, or a
            number is unusable.

    References:
        Zou et al. 2017, Lemma 3.2, which also advises more servers where the load is uneven.

    >>> parameter_servers(180e6, 4, 125e6, 1.0)
    12
    >>> parameter_servers(180e6, 4, 125e6, 1.0, shard_bytes=[15e6] * 4 + [10e6] * 12)
    16
    """
    traffic = 2 * positive("parameter_bytes", parameter_bytes) * count("workers", workers)
    capacity = positive("bandwidth_bytes_per_second", bandwidth_bytes_per_second)
    # One after the other, as the product of two extremes is 0 or infinite.
    needed = traffic / capacity / positive("compute_seconds", compute_seconds)
    needed = max(needed, sys.float_info.min)
    if needed > MOST_COUNT:
        refuse("bandwidth_bytes_per_second", "let 10**12 servers do", bandwidth_bytes_per_second)
    servers = rounded_up(needed)
    if shard_bytes is None:
        return servers
    of_kind("shard_bytes", shard_bytes, Iterable)
    shards = sorted((positive("shard_bytes", size) for size in shard_bytes), reverse=True)
    most = sum(shards) / needed * (1 + ROUNDING)  # what a server can carry
    if not shards or shards[0] > most:
        rule = f"hold pieces of at most {most:.4g} bytes, what one server exchanges in time"
        refuse("shard_bytes", rule, max(shards, default=None))
    while max(server_loads(shards, servers)) > most:
        servers += 1
    return servers


def server_loads(shard_bytes: Sequence[float], servers: int) -> tuple[float, ...]:
    """Spreads pieces over servers, the largest first, each to the least loaded.

    Args:
        shard_bytes: Sizes of the pieces.
        servers: N_ps.

    Returns:
        Bytes on each server, falling.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Graham 1969: at most 4/3 of the best.

    >>> server_loads([7, 5, 4, 3, 1], 2)
    (10.0, 10.0)
    """
    of_kind("shard_bytes", shard_bytes, Iterable)
    if count("servers", servers) > MOST_SERVERS:
        refuse("servers", f"be at most {MOST_SERVERS}, as each is listed", servers)
    loads = [0.0] * servers
    heapify(loads)
    for size in sorted((amount("shard_bytes", size) for size in shard_bytes), reverse=True):
        heapreplace(loads, loads[0] + size)
    return tuple(sorted(loads, reverse=True))


def server_seconds(
    parameter_bytes: float, workers: int, servers: int, bandwidth_bytes_per_second: float
) -> float:
    """Returns 2 S_p N_w / (N_ps B_ps), seconds of the exchange with evenly loaded servers.

    Args:
        parameter_bytes: S_p, bytes of all parameters.
        workers: N_w.
        servers: N_ps.
        bandwidth_bytes_per_second: B_ps, of each.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Zou et al. 2017, Lemma 3.2.

    >>> server_seconds(180e6, 4, 12, 125e6)
    0.96
    """
    capacity = positive("bandwidth_bytes_per_second", bandwidth_bytes_per_second)
    traffic = 2 * amount("parameter_bytes", parameter_bytes) * count("workers", workers)
    return traffic / (count("servers", servers) * capacity)


def server_bandwidth(
    parameter_bytes: float, workers: int, servers: int, compute_seconds: float
) -> float:
    """Returns the bytes a second that each server needs: 2 S_p N_w / (N_ps T_C).

    Args:
        parameter_bytes: S_p, bytes of all parameters.
        workers: N_w.
        servers: N_ps.
        compute_seconds: T_C of a step on a worker.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Zou et al. 2017, Lemma 3.2, solved for B_ps.

    >>> server_bandwidth(180e6, 4, 12, 1.0)
    120000000.0
    """
    traffic = 2 * amount("parameter_bytes", parameter_bytes) * count("workers", workers)
    return traffic / (count("servers", servers) * positive("compute_seconds", compute_seconds))
