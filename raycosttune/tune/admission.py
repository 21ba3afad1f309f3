"""Holds trials back while the cluster has no workers for them."""

import logging
import time
from collections.abc import Callable, Mapping

from raycosttune.core.decision import Answer, Finished, Run, Wait
from raycosttune.core.figure import counted, of_type
from raycosttune.core.node_type import Free, free_of
from raycosttune.core.profile import Profile
from raycosttune.core.session import Session
from raycosttune.tune.capacity import most_workers, nodes_left

LOOK_EVERY_SECONDS = 2.0
Needs = Callable[[str], Mapping[str, float]]
logger = logging.getLogger(__name__)


class Admission:
    """Counts free workers, and spares the session questions whose answer is known.

    Tune sees the driver of a trial but not its workers, so that it would start more than
    the cluster can hold and wait for ever. It also asks ten times a second; the session is
    asked again only after something has changed. Workers that other jobs use aren't free;
    those of nodes that the cluster may still add are.
    """

    def __init__(self) -> None:
        """Is open, with no limit beside the cluster's."""
        self._max_concurrent: int | None = None
        self._closed_at: tuple[object, ...] | None = None
        self._looked_at = -LOOK_EVERY_SECONDS
        self._seen: list[dict[str, int]] = []
        self._is_told = False

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

    def ask(self, session: Session, trial_id: str, needs: Needs) -> Answer:
        """Asks the session for a trial where there is room for one.

        Args:
            session: The session.
            trial_id: Name of the trial.
            needs: Returns what a worker needs on a type of machine.

        Returns:
            The answer; Finished only where nothing runs any more.

        Raises:
            RayCostTuneError: As the session.
        """
        free = self.free_workers(session, needs)
        runs = _running(session)
        if self._max_concurrent is not None and runs >= self._max_concurrent:
            return Wait(f"{runs} trials run")
        if runs and self._closed_at == _signature(session, free):
            return Wait("nothing has changed")
        answer = session.ask(trial_id, free_workers=free)
        if isinstance(answer, Wait) or (isinstance(answer, Finished) and runs):
            self._closed_at = _signature(session, free)
            return Wait(answer.why)
        if not isinstance(answer, Finished):
            self._say_waiting(answer, free)
        return answer

    def _say_waiting(self, answer: Run | Profile, free: Free) -> None:
        asked = answer.held if isinstance(answer, Profile) else answer.allocation
        room = free_of(free, asked.node_type)
        if asked.workers > room and not self._is_told:
            logger.warning(
                "a trial asks for %s%s and waits: other jobs leave %d of the cluster.",
                counted(asked.workers, "worker"),
                of_type(asked.node_type),
                room,
            )
            self._is_told = True

    def free_workers(self, session: Session, needs: Needs) -> Free:
        """Returns how many more workers the cluster has room for, None where Ray isn't running.

        It is a number for each type of machine where there are several. Ray's figures of what is
        used lag, so that a trial that has just ended seems to be another job's: of the last two
        looks the one with more room counts.
        """
        now, types = time.monotonic(), [kind.name for kind in session.space.types]
        if now - self._looked_at >= LOOK_EVERY_SECONDS:
            nodes = nodes_left()
            look = None if nodes is None else {n: most_workers(nodes, needs(n)) for n in types}
            seen = [] if look is None else [*self._seen, look]
            self._seen, self._looked_at = seen[-2:], now
        if not self._seen:
            return None
        held = session.committed_by_type
        free = {n: max(max(seen.get(n, 0) for seen in self._seen) - held[n], 0) for n in types}
        return free if session.space.node_types else free[""]


def _running(session: Session) -> int:
    return len(session.live) + len(session.live_profiles)


def _signature(session: Session, free_workers: Free) -> tuple[object, ...]:
    heard = sum(len(record.reports) for record in session.records.values())
    known = len(session.records), len(session.profiles)
    return known, _running(session), heard, free_workers
