"""Records as trials that a study can be made of."""

import math
from collections.abc import Mapping, Sequence

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, create_trial

from raycosttune.core.observation import Recipe
from raycosttune.core.proposer import Scored
from raycosttune.errors import InvalidSpaceError
from raycosttune.proposal.one_study import numbered


class Past:
    """Keeps the trials of records from one proposal to the next, which has nearly the same ones.

    Args:
        distributions: Of all parameters, by name. Every trial has each of them.
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution]) -> None:
        self._distributions = distributions
        self._recipes, self._scores = list[Recipe](), list[float]()
        self._trials = list[FrozenTrial]()

    def trials(self, records: Sequence[Scored]) -> list[FrozenTrial]:
        """Returns a complete trial for each record, in this order; nobody may change them.

        Raises:
            InvalidSpaceError: If a recipe lies outside the search space.
        """
        for k, record in enumerate(records):
            if k == len(self._recipes) or self._recipes[k] is not record.recipe:
                self._put(k, record.recipe)
            if self._scores[k] != record.score:
                self._scores[k] = record.score
                self._trials[k].value = math.log(record.score)  # they differ by a factor in epochs
        return self._trials[: len(records)]

    def _put(self, k: int, recipe: Recipe) -> None:
        trial, at = self._checked(recipe), slice(k, k + 1)
        self._trials[at] = [numbered(trial, k)]
        self._recipes[at], self._scores[at] = [recipe], [math.nan]

    def _checked(self, recipe: Recipe) -> FrozenTrial:
        try:
            return trial_of(recipe, self._distributions)
        except (TypeError, ValueError) as error:
            msg = (
                f"a recorded recipe must lie in the search space, got {dict(recipe)} for "
                f"{self._distributions} ({error}). Keep the space of the search that is "
                "restored, or start a new one."
            )
            raise InvalidSpaceError(msg) from error


def trial_of(recipe: Recipe, distributions: Mapping[str, BaseDistribution]) -> FrozenTrial:
    """Makes a complete trial of a recipe, with a value of 0.

    Raises:
        TypeError: If a value has a type that its distribution doesn't know.
        ValueError: If keys or values lie outside the distributions.
    """
    return create_trial(params=dict(recipe), distributions=dict(distributions), value=0.0)
