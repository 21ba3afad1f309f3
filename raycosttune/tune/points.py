"""Configurations to evaluate first, from a user's dicts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import optuna

from raycosttune.core.wish import Wish
from raycosttune.errors import InvalidSpaceError
from raycosttune.proposal.optuna import Stepped
from raycosttune.tune.convert import Config, ParamSpace, builtin
from raycosttune.tune.distribution import Distribution

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


def _read(
    k: int,
    point: Mapping[str, Any],
    params: ParamSpace,
    distributions: Mapping[str, Distribution],
) -> Wish:
    given: Config = {key: builtin(value) for key, value in _leaves(point)}
    constants = dict(_leaves(params.constants))
    for key in [key for key in given if key in constants]:
        if (value := given.pop(key)) != constants[key]:
            raise _refused(k, key, value, f"the space has {constants[key]!r} for it")
    for key, grid in ((params.workers_key, params.workers), (params.batch_key, params.batches)):
        if key in given and given[key] not in grid:
            raise _refused(k, key, given[key], f"the space offers {list(grid)}")
    workers, batch = (given.pop(key, None) for key in (params.workers_key, params.batch_key))
    for key, value in given.items():
        if key not in distributions:
            raise _refused(k, key, value, f"the space searches {sorted(params.paths)}")
        _check_drawn(k, key, value, distributions[key])
    return Wish(workers, batch, given)


def _check_drawn(k: int, key: str, value: object, drawn: Distribution) -> None:
    distribution = drawn.distribution if isinstance(drawn, Stepped) else drawn
    try:
        optuna.trial.create_trial(params={key: value}, distributions={key: distribution}, value=0.0)
    except (TypeError, ValueError) as error:
        raise _refused(k, key, value, f"the space has {distribution}") from error


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
