"""A small cluster of real processes on this machine, made to lose some of them."""

import contextlib
import ctypes
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ray.cluster_utils import Cluster

Left = TypeVar("Left", list[str], dict[int, str])
WORKER_NODES = 2
CPUS = 2
MEMORY = 80_000_000
REMOVED = "REMOVED"
ZOMBIE = "Z"
PR_SET_CHILD_SUBREAPER = 36
# Ray's own: two for each node, and one for the cluster that outlives every job by design.
AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent", "ray::_AutoscalingCoordinatorActor")
TRIALS = ("ray::ImplicitFunc", "ray::run_", "ray::RayTrainWorker", "ray::TrainController")


class ChaosCluster:
    """Is a head without CPUs and two nodes of two, without a dashboard.

    Only processes that this one has started are ever killed: they are all its descendants.
    """

    def __init__(self, rng: random.Random) -> None:
        """Starts the cluster."""
        self._rng = rng
        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "object_store_memory": MEMORY,
                "include_dashboard": False,
            },
        )
        for _ in range(WORKER_NODES):
            self.add_node()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # in place of Ray's

    @property
    def address(self) -> str:
        """Where drivers connect."""
        return str(self._cluster.address)

    def add_node(self) -> None:
        """Adds a node."""
        self._cluster.add_node(num_cpus=CPUS, object_store_memory=MEMORY)

    def kill_node(self) -> None:
        """Kills a node at random, with all its processes."""
        nodes = sorted(self._cluster.worker_nodes, key=lambda node: str(node.unique_id))
        self._cluster.remove_node(self._rng.choice(nodes), allow_graceful=False)

    def kill_worker(self) -> bool:
        """Kills a process at random in which a trial or a worker runs; tells if there was one."""
        running = [pid for pid, name in descendants().items() if name.startswith(TRIALS)]
        if not running:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._rng.choice(sorted(running)), signal.SIGKILL)
        return True

    def stop(self, but: int = 0) -> dict[int, str]:
        """Kills every node, the head's too, and returns the processes that outlived that.

        Ray's own agents, which linger after such a kill, are killed without being counted.

        Args:
            but: A process that is none of the cluster's.
        """
        for node in reversed(self._cluster.list_all_nodes()):  # the head is the first
            self._cluster.remove_node(node, allow_graceful=False)
        left = settled(lambda: {pid: line for pid, line in working().items() if pid != but}, 60.0)
        for pid in descendants().keys() - {but}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left

    def groups(self) -> list[str]:
        """Lists the placement groups that still hold or ask for resources."""
        table: dict[str, dict[str, Any]] = self._cluster.global_state.placement_group_table()
        return [name for name, group in table.items() if group["state"] != REMOVED]


def busy() -> dict[int, str]:
    """Returns the command lines of the processes that still run an actor or a task."""
    return {
        pid: line
        for pid, line in working().items()
        if line.startswith("ray::") and not line.startswith("ray::IDLE")
    }


def working() -> dict[int, str]:
    """Returns the command lines of all living descendants but Ray's own agents."""
    return {pid: line for pid, line in descendants().items() if not line.startswith(AGENTS)}


def settled(left: Callable[[], Left], seconds: float = 20.0) -> Left:
    """Waits until nothing is left, and returns what is left after so many seconds."""
    deadline = time.monotonic() + seconds
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def adopt_orphans() -> None:
    """Makes this process the parent of all orphans below it, so that it can find them."""
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("this kernel lets no process adopt the orphans below it")


def descendants() -> dict[int, str]:
    """Returns the command lines of all living processes that this one started, or they did."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it ended just now
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                parents[int(folder.name)] = int(parent), state
    ours, found = {os.getpid()}, {}
    while new := {pid for pid, (parent, _) in parents.items() if parent in ours} - ours:
        ours |= new
    for pid in ours - {os.getpid()}:
        with contextlib.suppress(OSError):
            if parents[pid][1] != ZOMBIE:
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                found[pid] = line.replace(b"\0", b" ").decode(errors="replace").strip()
    return found
