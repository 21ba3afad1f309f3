"""Optuna's distributions from Tune's domains."""

import math
from collections.abc import Mapping

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from ray.tune.search.sample import (
    Categorical,
    Domain,
    Float,
    Integer,
    LogUniform,
    Quantized,
    Uniform,
)

from raycosttune.core.value import read_count, read_real
from raycosttune.errors import InvalidSpaceError
from raycosttune.proposal.optuna import Stepped

Distribution = BaseDistribution | Stepped


def read_distributions(domains: Mapping[str, Domain]) -> dict[str, Distribution]:
    """Turns every domain into what Optuna samples from.

    Args:
        domains: Tune domains by the key's path joined with "/".

    Returns:
        Distributions by the same path, with the same values possible.

    Raises:
        InvalidSpaceError: At a domain without bounds (`randn`, `qrandn`, `sample_from`), an
            empty one, or a choice between other things than numbers, texts, booleans and
            None.
    """
    return {key: read_distribution(key, domain) for key, domain in domains.items()}


def read_distribution(key: str, domain: Domain) -> Distribution:
    """Turns one domain into what Optuna samples from.

    Args:
        key: The key's path, for the error.
        domain: The Tune domain.

    Raises:
        InvalidSpaceError: As `read_distributions`.
    """
    sampler = domain.get_sampler()
    step = None
    if isinstance(sampler, Quantized):
        step, sampler = sampler.q, sampler.get_sampler()
        _check_step(key, domain, step)
    if isinstance(domain, Categorical) and isinstance(sampler, Uniform):
        return CategoricalDistribution(_categories(key, domain))
    try:
        if isinstance(domain, Integer) and isinstance(sampler, (Uniform, LogUniform)):
            return _integers(domain, step, is_log=isinstance(sampler, LogUniform))
        if isinstance(domain, Float) and isinstance(sampler, (Uniform, LogUniform)):
            return _floats(domain, step, is_log=isinstance(sampler, LogUniform))
    except ValueError as error:
        msg = (
            f'"{key}" must hold at least one value, got {domain.domain_str}: {error} '
            "Widen its bounds."
        )
        raise InvalidSpaceError(msg) from error
    msg = (
        f'"{key}" must be a choice or a bounded range, got {type(domain).__name__} with '
        f"{type(sampler).__name__.lstrip('_')} sampling. Write tune.uniform or tune.loguniform "
        "with the bounds you would accept; compute what depends on other values in the loop."
    )
    raise InvalidSpaceError(msg)


def _check_step(key: str, domain: Domain, step: object) -> None:
    is_whole = isinstance(domain, Integer)
    number = read_count(step) if is_whole else read_real(step)
    if number is None or number <= 0:
        rule = "a whole number of at least 1" if is_whole else "a number above 0"
        msg = f'"{key}" must have steps of {rule}, got {step!r}. Leave the step out for none.'
        raise InvalidSpaceError(msg)


def _categories(key: str, domain: Categorical) -> list[bool | int | float | str | None]:
    categories: list[bool | int | float | str | None] = []
    for category in domain.categories:
        value = category.item() if isinstance(category, np.generic) else category
        if value is not None and not isinstance(value, (bool, int, float, str)):
            msg = (
                f'"{key}" must choose between numbers, texts, booleans and None, got '
                f"{category!r}. Name each choice by a text and look it up in the loop."
            )
            raise InvalidSpaceError(msg)
        categories.append(value)
    if not categories:
        msg = f'"{key}" must hold at least one value, got an empty choice. Add one.'
        raise InvalidSpaceError(msg)
    return categories


def _integers(domain: Integer, step: float | None, *, is_log: bool) -> Distribution:
    """Follows Tune: the upper end is left out, save where a step of more than 1 is given."""
    if step is None or step == 1:
        return IntDistribution(domain.lower, domain.upper - 1, log=is_log)
    size = int(step)
    low, high = math.ceil(domain.lower / size) * size, math.floor(domain.upper / size) * size
    if is_log:
        return Stepped(IntDistribution(low, high, log=True), size)
    return IntDistribution(low, high, step=size)


def _floats(domain: Float, step: float | None, *, is_log: bool) -> Distribution:
    if is_log:
        distribution = FloatDistribution(domain.lower, domain.upper, log=True)
        return Stepped(distribution, step) if step else distribution
    return FloatDistribution(domain.lower, domain.upper, step=step)
