"""Holds trials back while the cluster has no workers for them."""

import time
from collections.abc import Mapping

from raycosttune.core.decision import Answer, Finished, Wait
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

    def ask(self, session: Session, trial_id: str, per_worker: Mapping[str, float]) -> Answer:
        """Asks the session for a trial where there is room for one.

        Returns:
            The answer; Finished only where nothing runs any more.

        Raises:
            RayCostTuneError: As the session.
        """
        free = self.free_workers(session, per_worker)
        runs = _running(session)
        if self._max_concurrent is not None and runs >= self._max_concurrent:
            return Wait(f"{runs} trials run")
        if runs and self._closed_at == _signature(session, free):
            return Wait("nothing has changed")
        answer = session.ask(trial_id, free_workers=free)
        if isinstance(answer, Wait) or (isinstance(answer, Finished) and runs):
            self._closed_at = _signature(session, free)
            return Wait(answer.why)
        return answer

    def free_workers(self, session: Session, per_worker: Mapping[str, float]) -> int | None:
        """Returns how many more workers the cluster holds, None where Ray isn't running."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_EVERY_SECONDS:
            nodes = cluster_nodes()
            self._most = None if nodes is None else most_workers(nodes, per_worker)
            self._looked_at = now
        if self._most is None:
            return None
        return max(self._most - session.committed_workers, 0)


def _running(session: Session) -> int:
    return len(session.live) + len(session.live_profiles)


def _signature(session: Session, free_workers: int | None) -> tuple[object, ...]:
    heard = sum(len(record.reports) for record in session.records.values())
    known = len(session.records), len(session.profiles)
    return known, _running(session), heard, free_workers
