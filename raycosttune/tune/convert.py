"""Tune's param_space taken apart: worker and batch grids, and all the rest."""

import logging
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from ray.tune.search.sample import Domain

from raycosttune.core.observation import Recipe
from raycosttune.core.space import Allocation
from raycosttune.core.value import read_name, read_real
from raycosttune.errors import InvalidSpaceError
from raycosttune.results.keys import nested
from raycosttune.tune.grid import read_grid, read_types
from raycosttune.tune.resources import TYPE_KEY

logger = logging.getLogger(__name__)
Config = dict[str, Any]
Path = tuple[str, ...]
MOST_CHOICES = 16  # values of a list that is likely meant as a choice


@dataclass(frozen=True)
class ParamSpace:
    """Is a param_space taken apart.

    Attributes:
        workers: Worker counts to choose from.
        batches: Batch sizes to choose from, as the user reads them.
        domains: Every other Tune domain, by its path joined with "/".
        paths: The keys on the way to each searched value, by the same joined path; a key
            may itself hold a "/".
        workers_key: Joined path of the worker count.
        batch_key: Joined path of the batch.
        constants: The param_space without its domains.
        types: Types of machine to choose from, empty where none are searched.
        type_key: Joined path of the type of machine.
    """

    workers: tuple[int, ...]
    batches: tuple[int, ...]
    domains: Mapping[str, Domain]
    paths: Mapping[str, Path]
    workers_key: str
    batch_key: str
    constants: Config
    types: tuple[str, ...] = ()
    type_key: str = TYPE_KEY

    def is_same_search(self, other: "ParamSpace") -> bool:
        """Tells whether two spaces search the same keys over the same grids."""
        return (self.workers, self.batches, self.types, self.paths) == (
            other.workers,
            other.batches,
            other.types,
            other.paths,
        )

    def holds(self, cell: Allocation, recipe: Recipe) -> bool:
        """Tells whether a trial of that cell and recipe can be of this space."""
        batches = (cell.batch_size, cell.batch_size / cell.workers)
        is_cell = cell.workers in self.workers and any(batch in self.batches for batch in batches)
        is_type = cell.node_type in (self.types or ("",))
        return is_cell and is_type and set(recipe) == set(self.domains)

    def config(
        self, workers: int, batch: int, recipe: Mapping[str, object], node_type: str = ""
    ) -> Config:
        """Returns the searched values as a nested config of builtin numbers.

        Args:
            workers: The worker count.
            batch: The batch as the user reads it.
            recipe: The other values by joined path; what the space lacks is left out.
            node_type: The type of machine, "" where none is searched.
        """
        flat = {**recipe, self.workers_key: workers, self.batch_key: batch}
        if self.types:
            flat[self.type_key] = node_type
        return nested({key: builtin(value) for key, value in flat.items()}, self.paths)


def read_param_space(
    space: Mapping[str, Any], workers_key: str, batch_key: str, type_key: str = TYPE_KEY
) -> ParamSpace:
    """Takes a param_space apart and refuses what can't be searched; warns of a list of values.

    Args:
        space: Tune's param_space, possibly nested.
        workers_key: Where the worker count lies, nested with "/".
        batch_key: Where the batch lies, nested with "/".
        type_key: Where the type of machine lies, if it is searched: there as a choice of texts.

    Raises:
        InvalidSpaceError: If a key is missing or its domain is not a finite grid of whole
            numbers, or that of the type none of texts; at a `grid_search`, a domain inside a list
            or below a key that is no text, or two keys of the same joined path.
    """
    leaves: dict[str, tuple[Path, Any]] = {}
    for path, leaf in _leaves(space):
        joined = "/".join(map(str, path))
        if joined in leaves:
            msg = f'each key must be there once, got "{joined}" twice. Rename one of the two.'
            raise InvalidSpaceError(msg)
        leaves[joined] = (path, leaf)
    for key in (workers_key, batch_key):
        if key not in leaves:
            msg = (
                f'the search space must hold "{key}", got only {sorted(leaves)}. Add '
                f'"{key}": tune.choice([...]), or name another key by workers_key or batch_key.'
            )
            raise InvalidSpaceError(msg)
    names = {"workers_key": workers_key, "batch_key": batch_key, "type_key": type_key}
    for (one, key), (other, same) in combinations(names.items(), 2):
        if key == same:
            msg = f'{one} and {other} must differ, got "{key}" for both'
            raise InvalidSpaceError(msg)
    grids = {key: read_grid(key, leaves[key][1]) for key in (workers_key, batch_key)}
    found = leaves.get(type_key)
    types = read_types(type_key, found[1]) if found and isinstance(found[1], Domain) else ()
    searched = (*grids, type_key) if types else tuple(grids)
    domains = {
        key: leaf
        for key, (_, leaf) in leaves.items()
        if isinstance(leaf, Domain) and key not in searched
    }
    for key in (*searched, *domains):
        _check_keys(key, leaves[key][0])
    for key, (_, leaf) in leaves.items():
        if _looks_searched(leaf):
            logger.warning(
                '"%s" is a list and given to each trial as it is: tune.choice(%r) searches over '
                "it, and a tuple is taken as meant.",
                key,
                leaf,
            )
    return ParamSpace(
        workers=grids[workers_key],
        batches=grids[batch_key],
        domains=domains,
        paths={key: leaves[key][0] for key in (*searched, *domains)},
        workers_key=workers_key,
        batch_key=batch_key,
        constants=_without_domains(space),
        types=types,
        type_key=type_key,
    )


def missing_space(workers_key: str, batch_key: str, type_key: str) -> InvalidSpaceError:
    """Returns the error of a search that no space has reached."""
    del type_key  # a type of machine may be left out
    msg = (
        "a search space must arrive before the first trial, got none. Give "
        f'"{workers_key}" and "{batch_key}" as tune.choice([...]) in config or param_space, or '
        "as CostAwareSearch(space=...). Give it to Tuner.restore too, as param_space: where a run "
        "broke off before Tune's first snapshot, Tune has kept nothing of it."
    )
    return InvalidSpaceError(msg)


def check_same_search(new: ParamSpace, old: ParamSpace) -> None:
    """Refuses another space for a search that has begun.

    Raises:
        InvalidSpaceError: If the keys or the grids differ.
    """
    if not new.is_same_search(old):
        msg = (
            "a search must keep its space once it has begun, got another one. "
            "Make a new CostAwareSearch."
        )
        raise InvalidSpaceError(msg)


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Config:
    """Returns a copy of a nested config with some values replaced."""
    result = deepcopy(dict(base))
    for key, value in changes.items():
        inner = result.get(key)
        both = isinstance(inner, dict) and isinstance(value, Mapping)
        result[key] = merged(inner, value) if both else value  # type: ignore[arg-type]
    return result


def builtin(value: object) -> object:
    """Returns Python's own number for a NumPy one, anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def _leaves(space: Mapping[str, Any], parents: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, value in space.items():
        path = (*parents, key)
        _refuse_grid_search(path, value)
        if isinstance(value, Mapping):
            yield from _leaves(value, path)
        else:
            _refuse_inside_list(path, value)
            yield path, value


def _refuse_grid_search(path: Path, value: object) -> None:
    if isinstance(value, Mapping) and "grid_search" in value:
        msg = (
            f'"{"/".join(map(str, path))}" must not be a grid_search: it runs every value at '
            "every cost. Write tune.choice with the same list."
        )
        raise InvalidSpaceError(msg)


def _refuse_inside_list(path: Path, value: object) -> None:
    if isinstance(value, (list, tuple)) and any(map(_holds_domain, value)):
        msg = (
            f'"{"/".join(map(str, path))}" must not hold domains inside a list, got {value!r}. '
            "Give each its own key."
        )
        raise InvalidSpaceError(msg)


def _looks_searched(value: object) -> bool:
    """Tells whether a list may be one of values to choose from: of few numbers or texts."""
    if not isinstance(value, list) or len(value) > MOST_CHOICES:
        return False
    are_plain = all(read_name(one) or read_real(one) is not None for one in value)
    return are_plain and len(set(value)) > 1


def _holds_domain(value: object) -> bool:
    if isinstance(value, Mapping):
        return "grid_search" in value or any(map(_holds_domain, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_holds_domain, value))
    return isinstance(value, Domain)


def _check_keys(joined: str, path: tuple[object, ...]) -> None:
    for key in path:
        if not isinstance(key, str):
            msg = (
                f'the keys of a searched value must be texts, got {key!r} in "{joined}". '
                f'Write "{key}" and look it up as a text.'
            )
            raise InvalidSpaceError(msg)


def _without_domains(space: Mapping[str, Any]) -> Config:
    return {
        key: _without_domains(value) if isinstance(value, Mapping) else value
        for key, value in space.items()
        if not isinstance(value, Domain)
    }
