"""What a worker is asked by the controller of its run, and what it is told."""

from collections.abc import Sequence

from raycosttune.core.rebalance import WorkerLog
from raycosttune.train.current import CURRENT

Shares = tuple[int, ...]
_told: list[Shares] = []


class Received:
    """Is the policy of a worker whose shares the controller plans."""

    name = "controller"

    def plan(self, workers: Sequence[WorkerLog], shares: Shares, total: int) -> Shares:
        """Returns what the controller told last, if it fits."""
        told = _told[-1] if _told else shares
        return told if len(told) == len(workers) and sum(told) == total else shares


def receive(shares: Shares) -> None:
    """Takes what the controller planned."""
    _told[:] = [shares]


def measured() -> tuple[tuple[WorkerLog, ...], Shares, int] | None:
    """Returns what was measured of the workers, the shares in force, and the batch."""
    rebalancer = CURRENT.rebalancer
    if rebalancer is None:
        return None
    return rebalancer.logs, rebalancer.plan.latest, rebalancer.batch_size


def own_share() -> tuple[str, int] | None:
    """Returns this worker's name and its share, None before its first batch."""
    rebalancer = CURRENT.rebalancer
    if rebalancer is None:
        return None
    return rebalancer.logs[rebalancer.rank].name, rebalancer.share
