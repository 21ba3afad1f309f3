"""Seconds of an all-reduce by the alpha-beta model: a message takes latency + bytes / bandwidth."""

import math
from dataclasses import dataclass

from raycosttune.advise.quantity import amount, count, of_kind, positive, refuse


@dataclass(frozen=True)
class Link:
    """Is what joins two workers.

    Attributes:
        bytes_per_second: Bandwidth in one direction.
        latency_seconds: What a message takes however short it is.

    Raises:
        InvalidAdviceError: If the bandwidth is not above 0, or the latency is below 0.
    """

    bytes_per_second: float
    latency_seconds: float = 0.0

    def __post_init__(self) -> None:
        """Checks both numbers."""
        positive("Link.bytes_per_second", self.bytes_per_second)
        amount("Link.latency_seconds", self.latency_seconds)

    def seconds(self, message_bytes: float) -> float:
        """Returns what a message takes."""
        return self.latency_seconds + message_bytes / self.bytes_per_second


def ring_seconds(parameter_bytes: float, workers: int, link: Link) -> float:
    """Returns 2 (G - 1) (latency + S / (G B)): reduce-scatter, then all-gather, on a ring.

    Args:
        parameter_bytes: S, bytes of the gradients.
        workers: G.
        link: Between neighbours; all send at the same time.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Thakur, Rabenseifner & Gropp 2005; Patarasuk & Yuan 2009 (the least bytes possible).

    >>> ring_seconds(180e6, 4, Link(125e6))
    2.16
    """
    of_kind("link", link, Link)
    number = count("workers", workers)
    return 2 * (number - 1) * link.seconds(amount("parameter_bytes", parameter_bytes) / number)


def tree_seconds(parameter_bytes: float, workers: int, link: Link) -> float:
    """Returns 2 ceil(log2 G) (latency + S / B): a reduction down a binomial tree, then back up.

    Args:
        parameter_bytes: S, bytes of the gradients.
        workers: G.
        link: Between any two.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Thakur, Rabenseifner & Gropp 2005.

    >>> tree_seconds(180e6, 4, Link(125e6))
    5.76
    """
    of_kind("link", link, Link)
    rounds = (count("workers", workers) - 1).bit_length()
    return 2 * rounds * link.seconds(amount("parameter_bytes", parameter_bytes))


def hierarchical_seconds(
    parameter_bytes: float, workers_per_node: int, nodes: int, near: Link, far: Link
) -> float:
    """Returns a ring within each node and one over the nodes, one after the other.

    Each node passes the sum of its workers on over one network card, so the second ring has
    a node in place of a worker, and all bytes.

    Args:
        parameter_bytes: S, bytes of the gradients.
        workers_per_node: Workers on each node.
        nodes: Nodes.
        near: Between workers of a node.
        far: Between nodes.

    Raises:
        InvalidAdviceError: If a number is unusable.

    References:
        Follows from the ring within and across.

    >>> hierarchical_seconds(180e6, 4, 2, Link(12e9), Link(125e6))
    1.4625
    """
    within = ring_seconds(parameter_bytes, workers_per_node, near)
    return within + ring_seconds(parameter_bytes, nodes, far)


def ring_bandwidth(
    parameter_bytes: float, workers: int, compute_seconds: float, latency_seconds: float = 0.0
) -> float:
    """Returns the bytes a second with which a ring takes as long as the compute beside it.

    Args:
        parameter_bytes: S, bytes of the gradients.
        workers: G.
        compute_seconds: T_C, what a worker computes meanwhile.
        latency_seconds: Of a message.

    Raises:
        InvalidAdviceError: If the latency alone takes longer, or a number is unusable.

    References:
        The ring's seconds, solved for the bandwidth.

    >>> ring_bandwidth(180e6, 4, 1.0)
    270000000.0
    """
    number = count("workers", workers)
    waits = 2 * (number - 1) * amount("latency_seconds", latency_seconds)
    left = positive("compute_seconds", compute_seconds) - waits
    if left <= 0:
        rule = f"exceed the {waits:.3g} s that latency alone takes on a ring of {number}"
        refuse("compute_seconds", rule, compute_seconds)
    return 2 * (number - 1) / number * amount("parameter_bytes", parameter_bytes) / left


def servers_like_ring(workers: int) -> float:
    """Returns how many parameter servers are as fast as a ring: G^2 / (G - 1).

    Args:
        workers: G, at least 2.

    Raises:
        InvalidAdviceError: If there are fewer.

    References:
        2 S G / (N B) = 2 (G - 1) S / (G B), solved for N.

    >>> round(servers_like_ring(4), 3)
    5.333
    """
    number = count("workers", workers)
    if number == 1:
        refuse("workers", "be at least 2, as one has nothing to exchange", workers)
    return number**2 / (number - 1)


def ring_power(workers: int) -> float:
    """Returns the power of G / 2 at which a ring's exchange grows from 2 workers to G.

    Args:
        workers: G, at least 3.

    Raises:
        InvalidAdviceError: If there are fewer.

    References:
        log(2 (G - 1) / G) / log(G / 2), from the ring's seconds without latency.

    >>> round(ring_power(16), 3)
    0.302
    """
    number = count("workers", workers)
    if number <= 2:  # noqa: PLR2004 - a pair
        refuse("workers", "be at least 3, as growth is counted from 2", workers)
    return math.log(2 * (number - 1) / number) / math.log(number / 2)
