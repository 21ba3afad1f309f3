"""Configurations to evaluate first, from a user's dicts."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import FloatDistribution, IntDistribution

from raycosttune.core.figure import counted, of_type
from raycosttune.core.space import Space
from raycosttune.core.value import read_count, read_real
from raycosttune.core.wish import Wish
from raycosttune.errors import InvalidSpaceError
from raycosttune.proposal.optuna import Stepped
from raycosttune.tune.convert import Config, ParamSpace, builtin
from raycosttune.tune.distribution import Distribution

logger = logging.getLogger(__name__)
NAME = "points_to_evaluate"


def read_points(
    points: Sequence[Mapping[str, Any]],
    params: ParamSpace,
    distributions: Mapping[str, Distribution],
) -> tuple[Wish, ...]:
    """Returns what a user wants evaluated first.

    Args:
        points: Configs, nested as the search space or with keys joined by "/", whole or in
            part. A constant of the space may be there with the space's own value.
        params: The search space.
        distributions: What the other hyperparameters are drawn from, by joined path.

    Raises:
        InvalidSpaceError: If a point names a key or holds a value that the space lacks.
    """
    return tuple(_read(k, point, params, distributions) for k, point in enumerate(points))


def check_cells(wishes: Sequence[Wish], space: Space) -> None:
    """Refuses a point that no cell allows; warns of one that the cluster is too small for.

    Raises:
        InvalidSpaceError: If the rules of the space leave a point out.
    """
    for k, wish in enumerate(wishes):
        if any(wish.allows(cell, space) for cell in space.cells):
            continue
        types = tuple(replace(kind, max_workers=None) for kind in space.node_types)
        whole = replace(space, max_workers=None, node_types=types)
        kind = of_type(wish.node_type or "")
        cell = f"{wish.workers or 'any'} workers{kind} at batch {wish.batch or 'any'}"
        if not any(wish.allows(one, whole) for one in whole.cells):
            msg = (
                f"{NAME}[{k}] must be a legal cell, got {cell}: its batch can't be split so. "
                "Mend the point, or pass divisible=False or other bounds of a worker's share."
            )
            raise InvalidSpaceError(msg)
        most = ", ".join(
            f"{counted(kind.max_workers or 0, 'worker')}{of_type(kind.name)}"
            for kind in space.types
        )
        logger.warning(
            "%s[%d], %s, is left out: the cluster holds at most %s.", NAME, k, cell, most
        )


def _read(
    k: int,
    point: Mapping[str, Any],
    params: ParamSpace,
    distributions: Mapping[str, Distribution],
) -> Wish:
    given: Config = {key: builtin(value) for key, value in _leaves(point)}
    constants = dict(_leaves(params.constants))
    for key in [key for key in given if key in constants]:
        if not _is_same(value := given.pop(key), constants[key]):
            raise _refused(k, key, value, f"the space has {constants[key]!r} for it")
    for key, grid in ((params.workers_key, params.workers), (params.batch_key, params.batches)):
        if key in given and read_count(given[key]) not in grid:
            raise _refused(k, key, given[key], f"the space offers {list(grid)}")
    node_type = given.pop(params.type_key, None) if params.types else None
    if node_type is not None and node_type not in params.types:
        found = f"the space offers {list(params.types)}"
        raise _refused(k, params.type_key, node_type, found)
    workers, batch = (given.pop(key, None) for key in (params.workers_key, params.batch_key))
    for key, value in given.items():
        if key not in distributions:
            raise _refused(k, key, value, f"the space searches {sorted(params.paths)}")
        _check_drawn(k, key, value, distributions[key])
    return Wish(workers, batch, given, node_type)


def _check_drawn(k: int, key: str, value: object, drawn: Distribution) -> None:
    distribution = drawn.distribution if isinstance(drawn, Stepped) else drawn
    # Optuna takes "0.1" and True for numbers; a training loop may not.
    is_range = isinstance(distribution, FloatDistribution | IntDistribution)
    number = read_real(value) if is_range else None
    is_whole = number is None or number == int(number)
    if is_range and (
        number is None or not (is_whole or isinstance(distribution, FloatDistribution))
    ):
        raise _refused(k, key, value, f"the space has {distribution}")
    try:
        optuna.trial.create_trial(params={key: value}, distributions={key: distribution}, value=0.0)
    except (TypeError, ValueError) as error:
        raise _refused(k, key, value, f"the space has {distribution}") from error


def _is_same(value: object, known: object) -> bool:
    """Tells whether a constant is the space's; what can't be compared, as arrays, is not."""
    try:
        return value is known or bool(value == known)
    except Exception:  # noqa: BLE001 - a user's own object may raise anything
        return False


def _leaves(config: Mapping[str, Any], parents: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{parents}{key}/")
        else:
            yield f"{parents}{key}", value


def _refused(k: int, key: str, value: object, found: str) -> InvalidSpaceError:
    msg = (
        f'{NAME}[{k}] must lie in the search space, got "{key}": {value!r} where {found}. '
        "Mend the point, or widen the space."
    )
    return InvalidSpaceError(msg)
