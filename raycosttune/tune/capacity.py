"""How many workers the cluster can hold."""

import math
from collections.abc import Iterable, Mapping

import ray

Resources = Mapping[str, float]
TINY = 1e-6


def node_capacity(node: Resources, per_worker: Resources) -> int:
    """Returns how many workers one node of these total resources holds."""
    needs = {name: amount for name, amount in per_worker.items() if amount > 0}
    if not needs:
        return 0
    return min(math.floor(node.get(name, 0.0) / amount + TINY) for name, amount in needs.items())


def cluster_nodes() -> list[dict[str, float]] | None:
    """Returns the total resources of every live node, None where Ray isn't running."""
    if not ray.is_initialized():
        return None
    return [dict(node["Resources"]) for node in ray.nodes() if node["Alive"]]


def most_workers(nodes: Iterable[Resources], per_worker: Resources) -> int:
    """Returns how many workers the nodes hold together, when nothing else runs."""
    return sum(node_capacity(node, per_worker) for node in nodes)


def most_workers_per_node(nodes: Iterable[Resources], per_worker: Resources) -> int:
    """Returns how many workers the largest node holds."""
    return max((node_capacity(node, per_worker) for node in nodes), default=0)
