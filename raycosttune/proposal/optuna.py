"""Recipes from Optuna, proposed anew from the records each time."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Self

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.storages import InMemoryStorage
from optuna.trial import FrozenTrial

from raycosttune.core.observation import Recipe
from raycosttune.core.proposer import Scored
from raycosttune.errors import InvalidSpaceError, RayCostTuneError

SamplerFactory = Callable[[int], BaseSampler]


class SamplerError(RayCostTuneError, RuntimeError):
    """Says that the user's Optuna sampler could not propose a recipe."""


@dataclass(frozen=True)
class Stepped:
    """Is a distribution whose values are rounded to multiples of a step.

    Optuna has no logarithmic distribution with a step. Both ends of the distribution must be
    multiples of the step, so that rounding never leaves it.

    Attributes:
        distribution: Where the values lie.
        step: What they are multiples of.
    """

    distribution: FloatDistribution | IntDistribution
    step: float

    def round(self, value: float) -> float:
        """Returns the nearest multiple of the step, no further out than the ends."""
        nearest = round(value / self.step) * self.step
        return min(max(nearest, self.distribution.low), self.distribution.high)


class OptunaProposer:
    """Proposes recipes with an Optuna sampler, as a pure function of index and records.

    Each proposal builds a study from the records and a sampler with a seed of its own, so a
    restored search goes on as the unbroken one would have.

    Args:
        domains: What to search, by the key's path joined with "/".
        sampler: Makes the sampler from a seed. TPE by default. It must learn from the
            study's trials alone; one that counts its own calls (QMC, grid) starts afresh.
        seed: Seed of the whole search, at least 0.
    """

    def __init__(
        self,
        domains: Mapping[str, BaseDistribution | Stepped],
        sampler: SamplerFactory | None = None,
        seed: int = 0,
    ) -> None:
        self._domains = dict(domains)
        self._sampler = sampler or _tpe
        self._seed = seed
        self._checked: dict[int, tuple[Recipe, _Recorded]] = {}
        self._distributions = {
            key: domain.distribution if isinstance(domain, Stepped) else domain
            for key, domain in domains.items()
        }

    def propose(self, index: int, records: Sequence[Scored]) -> Recipe:
        """Returns a recipe; the same for the same index and records.

        Raises:
            InvalidSpaceError: If a record's recipe lies outside the search space.
            SamplerError: If the sampler raises, leaves the search space, or is no Optuna sampler.
        """
        if not self._domains:
            return {}
        storage, name = _quiet_study()
        key = storage.get_study_id_from_name(name)
        for record in records:
            storage.create_new_trial(key, self._trial(record))  # it makes a copy
        seed = int(np.random.SeedSequence([self._seed, index]).generate_state(1)[0])
        try:
            sampler = _checked_sampler(self._sampler(seed))
            study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
            params = study.ask(self._distributions).params
            self._check_drawn(params)
        except Exception as error:  # a user's sampler may raise anything
            msg = (
                f"the Optuna sampler must propose a recipe, got {type(error).__name__}: {error} "
                f"at proposal {index} after {len(records)} records. Mend or replace the "
                "function given as `sampler`."
            )
            raise SamplerError(msg) from error
        return {key: self._value(key, value) for key, value in params.items()}

    def _value(self, key: str, value: object) -> object:
        domain = self._domains[key]
        if isinstance(domain, Stepped) and isinstance(value, (int, float)):
            value = domain.round(value)
        return value.item() if isinstance(value, np.generic) else value

    def _check_drawn(self, params: Recipe) -> None:
        """Refuses what Optuna would refuse as a record, after the trial that it costs."""
        _Recorded.of(params, self._distributions)
        for key, distribution in self._distributions.items():
            is_range = isinstance(distribution, FloatDistribution | IntDistribution)
            if is_range and not isinstance(params[key], Real):  # Optuna reads numbers in texts
                msg = f"{params[key]!r} is no number for {key!r}"
                raise TypeError(msg)

    def _trial(self, record: Scored) -> FrozenTrial:
        recipe = record.recipe
        checked, trial = self._checked.get(id(recipe), (None, None))
        if trial is None or checked is not recipe:
            trial = self._check(recipe)
            self._checked[id(recipe)] = recipe, trial
        trial.value = math.log(record.score)  # recipes differ by a factor in epochs
        return trial

    def _check(self, recipe: Recipe) -> "_Recorded":
        try:
            return _Recorded.of(dict(recipe), self._distributions)
        except (TypeError, ValueError) as error:
            msg = (
                f"a recorded recipe must lie in the search space, got {recipe} for "
                f"{self._distributions} ({error}). Keep the space of the search that is "
                "restored, or start a new one."
            )
            raise InvalidSpaceError(msg) from error


def _checked_sampler(sampler: object) -> BaseSampler:
    if not isinstance(sampler, BaseSampler):  # for None Optuna takes one without a seed
        msg = f"it is {sampler!r}, no Optuna sampler"
        raise TypeError(msg)
    return sampler


def _tpe(seed: int) -> BaseSampler:
    return TPESampler(seed=seed)


class _Recorded(FrozenTrial):
    """Is a finished trial whose copies share their distributions, as these never change.

    A study copies every trial it is given. After many records, copies of distributions would
    take several times as long as the sampler.
    """

    @classmethod
    def of(cls, recipe: Recipe, distributions: Mapping[str, BaseDistribution]) -> Self:
        """Makes a trial of a recipe, with a value of 0.

        Raises:
            TypeError: If a value has a type that its distribution doesn't know.
            ValueError: If keys or values lie outside the distributions.
        """
        trial = optuna.trial.create_trial(
            params=dict(recipe), distributions=dict(distributions), value=0.0
        )
        recorded = cls.__new__(cls)
        recorded.__dict__.update(trial.__dict__)
        return recorded

    def __deepcopy__(self, memo: object) -> Self:
        """Copies the dictionaries, as a sampler might change them, and nothing in them."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.params, other.distributions = dict(self.params), dict(self.distributions)
        other.user_attrs, other.system_attrs = dict(self.user_attrs), dict(self.system_attrs)
        return other


def _quiet_study() -> tuple[InMemoryStorage, str]:
    """Makes a study and names it, without Optuna's line about it, one for each proposal."""
    storage = InMemoryStorage()
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(verbosity, optuna.logging.WARNING))
    try:
        study = optuna.create_study(storage=storage)
    finally:
        optuna.logging.set_verbosity(verbosity)
    return storage, study.study_name
