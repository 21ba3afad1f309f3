"""How many workers the cluster can hold, and how many it has room for."""

import logging
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ray

from raycosttune.tune.once import Once
from raycosttune.tune.placement import own_use

Resources = Mapping[str, float]
TINY = 1e-6
MOST_NODES = 1000  # of a group without a limit
ROUGH = ("memory", "object_store_memory")  # a machine has less of them than its kind promises
logger = logging.getLogger(__name__)
_once = Once(logger)


@dataclass(frozen=True)
class NodeGroup:
    """Is a kind of node that a cluster which scales itself may add.

    Attributes:
        resources: What each of them has.
        most: How many there may be.
    """

    resources: Resources
    most: int


def node_capacity(node: Resources, per_worker: Resources) -> int:
    """Returns how many workers one node of these resources holds."""
    needs = {name: amount for name, amount in per_worker.items() if amount > 0}
    if not needs:
        return 0
    return min(math.floor(node.get(name, 0.0) / amount + TINY) for name, amount in needs.items())


def cluster_nodes() -> list[Resources] | None:
    """Returns the total resources of every node, None where Ray isn't running.

    Nodes that a cluster which scales itself may still add are among them.
    """
    if not ray.is_initialized():
        return None
    live = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return [*live, *coming_nodes(live, node_groups())]


def nodes_left() -> list[Resources] | None:
    """Returns what other jobs leave of every node; None where Ray isn't running.

    What this job's own placement groups hold counts as left. A node that is about to be taken
    away, as a spot machine after its warning, has nothing left.
    """
    if not ray.is_initialized():
        return None
    try:
        from ray._private.state import state  # noqa: PLC0415 - private, so read only when used

        available, ours = state.available_resources_per_node(), own_use()
        draining = state.get_draining_nodes()
    except Exception as error:  # noqa: BLE001 - private tables of Ray, any release may change
        _once.warning("use", "what other jobs use can't be read: %s", error)
        return cluster_nodes()
    live = [node for node in ray.nodes() if node["Alive"] and node["NodeID"] not in draining]
    left = [
        left_of(node["Resources"], available.get(node["NodeID"]), ours.get(node["NodeID"], {}))
        for node in live
    ]
    return [*left, *coming_nodes([node["Resources"] for node in live], node_groups())]


def left_of(total: Resources, available: Resources | None, ours: Resources) -> Resources:
    """Returns what other jobs leave of a node.

    Args:
        total: What it has.
        available: What nobody uses; None of a node so new that nobody can.
        ours: What this job holds of it.
    """
    if available is None:
        return total
    return {
        name: min(amount, available.get(name, 0.0) + ours.get(name, 0.0))
        for name, amount in total.items()
    }


def coming_nodes(live: Sequence[Resources], groups: Iterable[NodeGroup]) -> list[Resources]:
    """Returns the nodes that a cluster may still add to its living ones."""
    rest, coming = list(live), []
    for group in sorted(groups, key=lambda group: -sum(_needs(group).values())):
        here = [node for node in rest if _is_one_of(node, group)][: group.most]
        rest = [node for node in rest if not any(node is known for known in here)]
        coming += [group.resources] * (group.most - len(here))
    return coming


def node_groups() -> list[NodeGroup]:
    """Returns the kinds of nodes that the cluster's autoscaler may add; most clusters have none."""
    try:
        from ray._private.state import state  # noqa: PLC0415 - private, so read only when used

        return list(_groups(state.get_cluster_config()))
    except Exception as error:  # noqa: BLE001 - private tables of Ray, any release may change
        _once.warning("groups", "what the cluster may still add can't be read: %s", error)
        return []


def most_workers(nodes: Iterable[Resources], per_worker: Resources) -> int:
    """Returns how many workers the nodes hold together, when nothing else runs."""
    return sum(node_capacity(node, per_worker) for node in nodes)


def most_workers_per_node(nodes: Iterable[Resources], per_worker: Resources) -> int:
    """Returns how many workers the largest node holds."""
    return max((node_capacity(node, per_worker) for node in nodes), default=0)


def wait_for_workers(kinds: Sequence[Resources], workers: int, seconds: float) -> None:
    """Waits until the cluster holds so many workers: after a restart its nodes come one by one.

    Args:
        kinds: What a worker needs, on each type of machine.
        workers: How many, of all types together.
        seconds: How long at most.
    """
    deadline, is_told = time.monotonic() + seconds, False
    while (nodes := cluster_nodes()) is not None and time.monotonic() < deadline:
        if (most := sum(most_workers(nodes, needs) for needs in kinds)) >= workers:
            return
        if not is_told:
            logger.warning(
                "the cluster holds %d of the %d workers that the sweep had; up to %g s are "
                "waited for its nodes.",
                most,
                workers,
                seconds,
            )
            is_told = True
        time.sleep(0.5)


def _groups(config: Any) -> Iterator[NodeGroup]:  # noqa: ANN401 - a generated message
    for group in () if config is None else config.node_group_configs:
        most = MOST_NODES if group.max_count < 0 else group.max_count
        resources = {name: float(amount) for name, amount in group.resources.items()}
        yield NodeGroup(resources, min(most, MOST_NODES))


def _is_one_of(node: Resources, group: NodeGroup) -> bool:
    return all(node.get(name, 0.0) >= amount for name, amount in _needs(group).items())


def _needs(group: NodeGroup) -> Resources:
    return {name: amount for name, amount in group.resources.items() if name not in ROUGH}
