"""Where a search space has what is searched."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raycosttune.core.observation import Recipe
from raycosttune.core.space import Allocation
from raycosttune.core.value import checked, read_mapping, read_text
from raycosttune.errors import InvalidStateError
from raycosttune.results.rows import Row

Path = tuple[str, ...]


@dataclass(frozen=True)
class SearchKeys:
    """Says where the searched values lie in a config.

    Attributes:
        workers_key: Joined path of the worker count.
        batch_key: Joined path of the batch.
        type_key: Joined path of the type of machine, None where none was searched.
        paths: The keys on the way to each searched value, by its joined path.
    """

    workers_key: str
    batch_key: str
    type_key: str | None
    paths: Mapping[str, Path]

    def config(self, cell: Allocation, batch: int, recipe: Recipe) -> dict[str, Any]:
        """Returns the config of a run without the space's constants.

        Args:
            cell: Workers and their type of machine.
            batch: The batch as the user reads it.
            recipe: The other values by joined path.
        """
        values = {**recipe, self.workers_key: cell.workers, self.batch_key: batch}
        if self.type_key is not None:
            values[self.type_key] = cell.node_type
        return nested(values, self.paths)


def nested(values: Mapping[str, object], paths: Mapping[str, Path]) -> dict[str, Any]:
    """Returns values by joined path as a nested config; what has no path is left out."""
    config: dict[str, Any] = {}
    for key, value in values.items():
        if key in paths:
            *parents, name = paths[key]
            inner = config
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[name] = value
    return config


def read_keys(header: Row) -> SearchKeys | None:
    """Returns the keys of a journal's header, None where an older one has none.

    Raises:
        InvalidStateError: If they can't be read.
    """
    space = header.get("space")
    try:
        if space is None:
            return None
        paths = checked(space, "paths", read_mapping)
        return SearchKeys(
            checked(space, "workers_key", read_text),
            checked(space, "batch_key", read_text),
            checked(space, "type_key", read_text) if space.get("types") else None,
            {str(key): tuple(map(str, path)) for key, path in paths.items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"a journal's header must hold the keys of its space, got {space!r:.300}: {error}"
        raise InvalidStateError(msg) from error
