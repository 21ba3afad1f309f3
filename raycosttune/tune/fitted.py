"""What of a search's space the cluster can hold, and on how many machines."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from raycosttune.core.figure import counted, of_type
from raycosttune.core.node_type import NodeType
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidSpaceError
from raycosttune.tune.capacity import Resources, most_workers, most_workers_per_node

logger = logging.getLogger(__name__)
MANY_CELLS = 5000
BYTES = 55  # for each pair of cells


@dataclass(frozen=True)
class Kind:
    """Is a type of machine and what a worker on it needs.

    Attributes:
        name: Its name, "" where machines are all alike.
        needs: What a worker needs.
    """

    name: str
    needs: Resources


def fitted(
    space: Space,
    nodes: Sequence[Resources],
    kinds: Sequence[Kind],
    workers_per_node: int | None,
    *,
    is_restored: bool,
) -> Space:
    """Returns the space within the cluster; types that no node offers are left out.

    Args:
        space: The space as it is asked for.
        nodes: The nodes of the cluster.
        kinds: The types of machine.
        workers_per_node: Workers that fill one machine, None where the nodes say it.
        is_restored: Whether the sweep goes on: a raise in a restore makes Tune start over in
            silence.

    Raises:
        InvalidSpaceError: If the cluster holds no worker, or too few for any cell.
    """
    most = {kind.name: most_workers(nodes, kind.needs) for kind in kinds}
    fewest = min(cell.workers for cell in space.cells)
    if max(most.values()) < fewest and is_restored:
        logger.error(
            "the cluster holds %s, too few for any trial of the sweep: all of them wait.",
            counted(max(most.values()), "worker"),
        )
        return space
    if not any(most.values()):
        raise InvalidSpaceError(_no_room(kinds, nodes))
    sizes = {kind.name: _per_node(nodes, kind, workers_per_node) for kind in kinds}
    if not space.node_types:
        limited = replace(space, max_workers=most[""], workers_per_node=sizes[""])
    else:
        offered = tuple(NodeType(name, sizes[name], most[name]) for name in most if most[name])
        limited = replace(space, node_types=offered)
    _warn(space, limited, kinds, most)
    return limited


def warn_of_size(space: Space) -> None:
    """Warns of a space so large that a search of it needs much memory, before it takes it."""
    if (count := len(space.cells)) > MANY_CELLS:
        logger.warning(
            "the search space has %d cells: the search needs some %.2g GB for them, and seconds "
            "before each trial. Neighbours differ little: offer fewer workers or batches.",
            count,
            BYTES * count**2 / 1e9,
        )


def recount(session: Session) -> None:
    """Gives what has started, and has shown nothing yet, the machines that it fills here.

    What started before the trainable told what its workers need, was taken to fill others.
    """

    def here(cell: Allocation) -> Allocation:
        return replace(cell, nodes=session.space.nodes(cell.workers, cell.node_type))

    for record in session.records.values():
        if record.is_live and not record.reports:
            record.allocation = here(record.allocation)
    for profile in session.live_profiles:
        cells = tuple(map(here, profile.profile.cells))
        profile.profile = replace(profile.profile, cells=cells)


def _per_node(nodes: Sequence[Resources], kind: Kind, workers_per_node: int | None) -> int | None:
    if workers_per_node is not None:
        return workers_per_node
    own = [node for node in nodes if most_workers([node], kind.needs)] if kind.name else nodes
    return most_workers_per_node(nodes, kind.needs) if len(own) > 1 else None


def _warn(space: Space, limited: Space, kinds: Sequence[Kind], most: dict[str, int]) -> None:
    for kind in kinds:
        if kind.name and most[kind.name] == 0:
            logger.warning(
                "the type of machine %r is left out: no node of the cluster has %s.",
                kind.name,
                dict(kind.needs),
            )
            continue
        ours, left = (
            {cell.workers for cell in some.cells if cell.node_type == kind.name}
            for some in (space, limited)
        )
        if dropped := sorted(ours - left):
            logger.warning(
                "the worker counts %s%s are left out: the cluster holds at most %s of %s.",
                dropped,
                of_type(kind.name),
                counted(most[kind.name], "worker"),
                dict(kind.needs),
            )


def _no_room(kinds: Sequence[Kind], nodes: Sequence[Resources]) -> str:
    needs = [dict(kind.needs) for kind in kinds]
    return (
        f"resources_per_worker must fit on a node of the cluster, got "
        f"{needs[0] if len(needs) == 1 else needs}; the nodes have {nodes}. "
        "Ask for less a worker, or start a larger node."
    )
