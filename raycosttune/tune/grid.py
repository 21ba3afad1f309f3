"""Grids of whole numbers from Tune's finite domains."""

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from ray.tune.search.sample import Categorical, Domain, Integer, LogUniform, Quantized

from raycosttune.core.value import MOST_COUNT, read_count, read_name, read_real
from raycosttune.errors import InvalidSpaceError

MOST_VALUES = 64
RULE = "hold whole numbers of at least 1 and at most 10**12"


def read_grid(key: str, domain: object) -> tuple[int, ...]:
    """Lists the values of a finite domain of whole numbers.

    A range of more than 64 values keeps 64 of them, both ends included: evenly spaced for
    `randint` and `qrandint`, geometrically for `lograndint` and `qlograndint`.

    Args:
        key: Name of the key, for the error.
        domain: A Tune domain, or a whole number for a fixed value.

    Returns:
        The values, sorted, each once.

    Raises:
        InvalidSpaceError: If the domain is not finite or holds something else than whole
            numbers of at least 1.
    """
    if isinstance(domain, Categorical):
        return _counts(key, domain.categories)
    if isinstance(domain, Integer):
        return _counts(key, _thinned(*_bounds(key, domain)))
    if isinstance(domain, Domain):
        _refuse(key, "have finitely many values", type(domain).__name__)
    return _counts(key, [domain])


def read_types(key: str, domain: object) -> tuple[str, ...]:
    """Lists the types of machine of a choice, in its order, each once.

    Raises:
        InvalidSpaceError: If the domain is no choice of texts that aren't empty.
    """
    values = domain.categories if isinstance(domain, Categorical) else [domain]
    wrong = [value for value in values if read_name(value) is None]
    if wrong or not values:
        msg = (
            f'"{key}" must be a choice of types of machine, texts that aren\'t empty, got '
            f'{wrong[0] if wrong else "none"!r}. Write tune.choice(["v100", "a100"]), or rename '
            "the key where it means something else, or node_type_key."
        )
        raise InvalidSpaceError(msg)
    return tuple(dict.fromkeys(map(str, values)))


def _bounds(key: str, domain: Integer) -> tuple[int, int, int, bool]:
    """Returns the first and last value, the step, and whether the range is logarithmic."""
    sampler = domain.get_sampler()
    step = 1
    for end in (domain.lower, domain.upper):
        if not 1 <= (read_real(end) or 0) <= MOST_COUNT + 1:
            _refuse(key, RULE, f"the end {end!r} of {domain.domain_str}")
    if isinstance(sampler, Quantized):
        step, sampler = read_count(sampler.q) or 0, sampler.get_sampler()
        if step == 0:
            _refuse(key, "have steps that are whole numbers of at least 1", domain.domain_str)
        first, last = math.ceil(domain.lower / step) * step, math.floor(domain.upper / step) * step
        if step == 1:
            last -= 1
    else:
        first, last = domain.lower, domain.upper - 1
    if last < first:
        _refuse(key, "hold at least one value", f"{domain.domain_str} in steps of {step}")
    return int(first), int(last), step, isinstance(sampler, LogUniform)


def _thinned(first: int, last: int, step: int, is_log: bool) -> list[int]:  # noqa: FBT001 - of this file alone
    size = (last - first) // step + 1
    if size <= MOST_VALUES:
        return list(range(first, last + 1, step))
    space = np.geomspace if is_log else np.linspace
    return [
        first + step * round((value - first) / step) for value in space(first, last, MOST_VALUES)
    ]


def _counts(key: str, values: Sequence[object]) -> tuple[int, ...]:
    counts = set()
    for value in values:
        number = read_count(value)
        if number is None:
            _refuse(key, RULE, repr(value))
        counts.add(number)
    if not counts:
        _refuse(key, "hold at least one value", "none")
    return tuple(sorted(counts))


def _refuse(key: str, rule: str, value: str) -> NoReturn:
    msg = (
        f'"{key}" must {rule}, got {value}. '
        f'Write tune.choice([1, 2, 4]), tune.randint(1, 9), or a whole number for "{key}".'
    )
    raise InvalidSpaceError(msg)
