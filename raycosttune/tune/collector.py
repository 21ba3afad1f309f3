"""Frees the workers of stopped runs.

A run of Ray Train that Tune stops leaves its placement group behind where there is no
dashboard, and always where the group was still pending; the leaked group holds the workers'
resources until the job ends. A group is orphaned when the actor that made it is dead.
"""

import logging
import threading
import time
from typing import Any

import ray
from ray.util.placement_group import PlacementGroup

from raycosttune.tune.placement import job_group_tables

logger = logging.getLogger(__name__)
EVERY_SECONDS = 2.0
AFTER_STOP_EVERY_SECONDS = 0.5
AFTER_STOP_SECONDS = 10.0
NO_CREATOR = 0xFF


class Collector:
    """Sweeps orphaned placement groups, at most every two seconds.

    Ray offers no public way to ask who made a group; where its tables can't be read the
    sweep gives up, once and in the log.
    """

    def __init__(self) -> None:
        """Starts with a sweep due at once."""
        self._swept_at = -EVERY_SECONDS
        self._sweep_until = 0.0
        self._thread: threading.Thread | None = None
        self._is_broken = False
        self._is_watching = False

    def __getstate__(self) -> dict[str, Any]:
        """Leaves this process's clock and thread out of a pickle."""
        return dict(Collector().__dict__)

    def sweep_if_due(self) -> None:
        """Removes orphaned groups unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._swept_at >= EVERY_SECONDS and not self._is_broken:
            self._swept_at = now
            self.sweep()

    def sweep(self) -> int:
        """Removes orphaned groups and returns how many; never raises."""
        if not ray.is_initialized():
            return 0
        try:
            groups = job_groups()
            orphans = [group for group, is_orphaned in groups if is_orphaned]
            for group in orphans:
                ray.util.remove_placement_group(group)
        except Exception as error:  # noqa: BLE001 - private tables of Ray, any release may change
            if not self._is_broken:
                logger.warning(
                    "placement groups of stopped runs can't be swept (%s: %s); if workers stay "
                    "busy after a stop, run Ray with its dashboard.",
                    type(error).__name__,
                    error,
                )
            self._is_broken = True
            return 0
        if self._is_watching and groups:
            self._sweep_until = time.monotonic() + AFTER_STOP_SECONDS
        return len(orphans)

    def sweep_after_stop(self) -> None:
        """Sweeps often for a while, in the background, as the stopped actors die.

        The next trial waits for these workers, and after the last trial nobody else sweeps.
        """
        self._sweep_until = time.monotonic() + AFTER_STOP_SECONDS
        if self._is_broken or (self._thread is not None and self._thread.is_alive()):
            return
        self._thread = threading.Thread(target=self._sweep_for_a_while, daemon=True)
        self._thread.start()

    def watch(self) -> None:
        """Sweeps in the background until this job has had no group for a while.

        Where Tune itself stops a trial nobody hears of it, and a group may outlive the sweep.
        """
        self._is_watching = True
        self.sweep_after_stop()

    def _sweep_for_a_while(self) -> None:
        pause = EVERY_SECONDS if self._is_watching else AFTER_STOP_EVERY_SECONDS
        while time.monotonic() < self._sweep_until and ray.is_initialized():
            time.sleep(pause)
            if not self._is_broken:
                self.sweep()


WATCH = Collector()


def can_sweep() -> bool:
    """Tells whether this process can read which groups its job has."""
    try:
        job_groups()
    except Exception:  # noqa: BLE001 - private tables of Ray, any release may change
        return False
    return True


def job_groups() -> list[tuple[PlacementGroup, bool]]:
    """Lists this job's placement groups, and whether the actor that made one is dead."""
    from ray._raylet import PlacementGroupID  # noqa: PLC0415 - private, so read only when used
    from ray.core.generated import gcs_pb2  # noqa: PLC0415 - as above

    tables: Any = gcs_pb2  # generated, so untyped
    actors = tables.ActorTableData
    groups = []
    for group, accessor in job_group_tables():
        creator, is_dead = group.creator_actor_id, False
        if creator and set(creator) != {NO_CREATOR}:
            info = accessor.get_actor_info(ray.ActorID(creator))
            is_dead = group.creator_actor_dead or info is None
            is_dead = is_dead or actors.FromString(info).state == actors.DEAD
        groups.append((PlacementGroup(PlacementGroupID(group.placement_group_id)), is_dead))
    return groups
