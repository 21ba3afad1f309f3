"""This job's placement groups, as Ray's own tables tell of them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import ray


def job_group_tables() -> Iterator[tuple[Any, Any]]:
    """Yields the row of each living group that this job made, and what reads Ray's tables.

    Ray has no public way to ask who made a group, or what its bundles hold where.
    """
    from ray._private.state import state  # noqa: PLC0415 - private, so read only when used
    from ray.core.generated import gcs_pb2  # noqa: PLC0415 - private, so read only when used

    tables: Any = gcs_pb2  # generated, so untyped
    accessor = state._connect_and_get_accessor()  # noqa: SLF001 - Ray has no public one
    job = bytes.fromhex(ray.get_runtime_context().get_job_id())
    for raw in accessor.get_placement_group_table():
        group = tables.PlacementGroupTableData.FromString(raw)
        is_removed = group.state == tables.PlacementGroupTableData.REMOVED
        if not is_removed and not group.is_detached and group.creator_job_id == job:
            yield group, accessor


def own_use() -> dict[str, dict[str, float]]:
    """Returns what this job's groups hold of each node, by the node's id and the resource."""
    held: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for group, _ in job_group_tables():
        for bundle in group.bundles:
            if bundle.node_id:
                for name, amount in bundle.unit_resources.items():
                    held[bundle.node_id.hex()][name] += amount
    return held
