"""Holds trials back while the cluster has no workers for them."""

import time
from collections.abc import Mapping

from raycosttune.core.session import Session
from raycosttune.tune.capacity import cluster_nodes, most_workers

LOOK_EVERY_SECONDS = 2.0


class Admission:
    """Counts free workers, and spares the session questions whose answer is known.

    Tune sees the driver of a trial but not its workers, so that it would start more than
    the cluster can hold and wait for ever. It also asks ten times a second; the session is
    asked again only after something has changed.
    """

    def __init__(self) -> None:
        """Is open, with no limit beside the cluster's."""
        self._max_concurrent: int | None = None
        self._closed_at: tuple[object, ...] | None = None
        self._looked_at = -LOOK_EVERY_SECONDS
        self._most: int | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leaves this process's clock and cluster out of a pickle."""
        return self.renewed().__dict__

    def renewed(self) -> "Admission":
        """Returns one with the same limit that looks at the cluster anew."""
        fresh = Admission()
        fresh.limit(self._max_concurrent)
        return fresh

    def limit(self, max_concurrent: int | None) -> None:
        """Sets the most trials that may run at once; 0 or None is no limit."""
        self._max_concurrent = max_concurrent or None

    def is_full(self, session: Session) -> bool:
        """Tells whether as many trials run as may."""
        return self._max_concurrent is not None and len(session.live) >= self._max_concurrent

    def free_workers(self, session: Session, per_worker: Mapping[str, float]) -> int | None:
        """Returns how many more workers the cluster holds, None where Ray isn't running."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY_SECONDS:
            nodes = cluster_nodes()
            self._most = None if nodes is None else most_workers(nodes, per_worker)
            self._looked_at = now
        if self._most is None:
            return None
        return max(self._most - sum(record.allocation.workers for record in session.live), 0)

    def is_closed(self, session: Session, free_workers: int | None) -> bool:
        """Tells whether nothing has changed since the session last said to wait."""
        return bool(session.live) and self._closed_at == _signature(session, free_workers)

    def close(self, session: Session, free_workers: int | None) -> None:
        """Notes that the session said to wait."""
        self._closed_at = _signature(session, free_workers)


def _signature(session: Session, free_workers: int | None) -> tuple[object, ...]:
    heard = sum(len(record.reports) for record in session.records.values())
    return len(session.records), len(session.live), heard, free_workers
