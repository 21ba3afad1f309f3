"""Recipes from Optuna, proposed anew from the records each time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from raycosttune.core.observation import Recipe
from raycosttune.core.proposer import Scored
from raycosttune.errors import RayCostTuneError
from raycosttune.proposal.one_study import OneStudy, numbered
from raycosttune.proposal.past import Past, trial_of
from raycosttune.proposal.tpe import Informed

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

    Each proposal has a study of the records and a sampler with a seed of its own, so a restored
    search goes on as the unbroken one would have. Trials of records that stay are kept for the
    next study, which changes no proposal.

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
        self._distributions = {
            key: domain.distribution if isinstance(domain, Stepped) else domain
            for key, domain in domains.items()
        }
        self._past = Past(self._distributions)

    def propose(self, index: int, records: Sequence[Scored]) -> Recipe:
        """Returns a recipe; the same for the same index and records.

        Raises:
            InvalidSpaceError: If a record's recipe lies outside the search space.
            SamplerError: If the sampler raises, leaves the search space, or is no Optuna sampler.
        """
        if not self._domains:
            return {}
        past = self._past.trials(records)
        seed = int(np.random.SeedSequence([self._seed, index]).generate_state(1)[0])
        try:
            params = _study(past, self._sampler(seed)).ask(self._distributions).params
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
        trial_of(params, self._distributions)
        for key, distribution in self._distributions.items():
            is_range = isinstance(distribution, FloatDistribution | IntDistribution)
            if is_range and not isinstance(params[key], Real):  # Optuna reads numbers in texts
                msg = f"{params[key]!r} is no number for {key!r}"
                raise TypeError(msg)


def _study(past: Sequence[FrozenTrial], sampler: object) -> Study:
    """Makes a study of trials, which stay as they are."""
    if not isinstance(sampler, BaseSampler):  # for None Optuna takes one without a seed
        msg = f"it is {sampler!r}, no Optuna sampler"
        raise TypeError(msg)
    if type(sampler) is TPESampler:
        sampler = Informed(sampler)
    else:  # it may change the trials that it is given
        past = [numbered(trial, trial.number) for trial in past]
    return optuna.load_study(study_name="", storage=OneStudy(past), sampler=sampler)


def _tpe(seed: int) -> BaseSampler:
    return TPESampler(seed=seed)
