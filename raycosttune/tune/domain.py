"""Tune domains as JSON, so that a restored search knows its space without a pickle."""

from collections.abc import Callable, Mapping
from typing import Any

from ray import tune
from ray.tune.search.sample import Categorical, Domain, Float, Integer, LogUniform, Quantized

from raycosttune.core.value import checked, read_count, read_name, read_text
from raycosttune.errors import InvalidStateError
from raycosttune.tune.convert import ParamSpace, builtin
from raycosttune.tune.distribution import read_distributions
from raycosttune.tune.resources import TYPE_KEY

Maker = Callable[..., Domain]
_MAKERS: dict[tuple[str, bool], tuple[Maker, Maker]] = {
    ("float", False): (tune.uniform, tune.quniform),
    ("float", True): (tune.loguniform, tune.qloguniform),
    ("integer", False): (tune.randint, tune.qrandint),
    ("integer", True): (tune.lograndint, tune.qlograndint),
}


def domain_state(domain: Domain) -> dict[str, Any]:
    """Returns a choice or a bounded range as a JSON object."""
    if isinstance(domain, Categorical):
        return {"kind": "choice", "values": [builtin(value) for value in domain.categories]}
    assert isinstance(domain, (Float, Integer))  # noqa: S101 - read_distributions lets no other by
    sampler: Any = domain.get_sampler()  # type: ignore[no-untyped-call]
    step = None
    if isinstance(sampler, Quantized):
        sampler, step = sampler.get_sampler(), builtin(sampler.q)
    return {
        "kind": "float" if isinstance(domain, Float) else "integer",
        "lower": builtin(domain.lower),
        "upper": builtin(domain.upper),
        "log": isinstance(sampler, LogUniform),
        "step": step,
    }


def read_domain(state: Mapping[str, Any]) -> Domain:
    """Builds the domain that `domain_state` described.

    Raises:
        InvalidStateError: If the kind is unknown.
        KeyError: If a key is missing.
    """
    if state["kind"] == "choice":
        return Categorical(state["values"]).uniform()  # type: ignore[no-any-return]
    makers = _MAKERS.get((state["kind"], state["log"]))
    if makers is None:
        msg = f"a saved domain's kind must be choice, float or integer, got {state['kind']!r}"
        raise InvalidStateError(msg)
    plain, stepped = makers
    lower, upper, step = state["lower"], state["upper"], state["step"]
    return plain(lower, upper) if step is None else stepped(lower, upper, step)


def space_state(space: ParamSpace) -> dict[str, Any]:
    """Returns a search space as a JSON object; the constants stay with Tune's trials."""
    return {
        "workers": list(space.workers),
        "batches": list(space.batches),
        "domains": {key: domain_state(domain) for key, domain in space.domains.items()},
        "paths": {key: list(path) for key, path in space.paths.items()},
        "workers_key": space.workers_key,
        "batch_key": space.batch_key,
        **({"types": list(space.types), "type_key": space.type_key} if space.types else {}),
    }


def read_space(state: Mapping[str, Any]) -> ParamSpace:
    """Builds the search space that `space_state` described.

    Raises:
        InvalidStateError: If a part is missing or of the wrong kind.
    """
    try:
        space = ParamSpace(
            workers=_counts(state["workers"]),
            batches=_counts(state["batches"]),
            domains={key: read_domain(domain) for key, domain in state["domains"].items()},
            paths={key: _path(path) for key, path in state["paths"].items()},
            workers_key=checked(state, "workers_key", read_text),
            batch_key=checked(state, "batch_key", read_text),
            constants={},
            types=_names(state.get("types", [])),
            type_key=checked({"type_key": TYPE_KEY, **state}, "type_key", read_text),
        )
        read_distributions(space.domains)
    except InvalidStateError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"a saved search space can't be read: {error!r} in {state!r}"
        raise InvalidStateError(msg) from error
    keys = {space.workers_key, space.batch_key, *space.domains}
    if missing := (keys | {space.type_key} if space.types else keys) - set(space.paths):
        msg = f"a saved search space must have a path to every key, got none to {sorted(missing)}"
        raise InvalidStateError(msg)
    return space


def _counts(values: object) -> tuple[int, ...]:
    counts = tuple(map(read_count, values)) if isinstance(values, list) else ()
    known = tuple(count for count in counts if count is not None)
    if not counts or known != counts:
        msg = f"a saved grid must be a list of whole numbers of at least 1, got {values!r}"
        raise InvalidStateError(msg)
    return known


def _names(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(map(read_name, values)):
        msg = f"saved types of machine must be a list of texts, got {values!r}"
        raise InvalidStateError(msg)
    return tuple(values)


def _path(keys: object) -> tuple[str, ...]:
    if not (isinstance(keys, list) and keys and all(isinstance(key, str) for key in keys)):
        msg = f"a saved path must be a list of keys, got {keys!r}"
        raise InvalidStateError(msg)
    return tuple(keys)
