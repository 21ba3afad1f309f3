"""The learning rate that goes with a batch."""

from dataclasses import dataclass
from typing import Literal

from raycosttune.core.observation import Recipe
from raycosttune.core.value import read_count, read_name, read_text
from raycosttune.errors import InvalidSpaceError

Rule = Literal["linear", "sqrt", "none"]
POWERS: dict[str, float] = {"linear": 1.0, "sqrt": 0.5, "none": 0.0}


@dataclass(frozen=True, kw_only=True)
class LearningRate:
    """Declares how the learning rate follows the batch, so that "the same recipe" has a meaning.

    What is searched is the base rate at `reference_batch`; a loop gets
    base x (b / reference_batch)^p with p = 1 (linear, for SGD), 1/2 (sqrt, for Adam) or 0.

    Attributes:
        reference_batch: Global batch at which the rate is the base rate.
        rule: How the rate follows the batch.
        key: Name of the rate in the config, nested with "/".

    Raises:
        InvalidSpaceError: If the rule, the reference batch or the key is unusable.

    References:
        Linear: Goyal et al. 2017. Square root: Malladi et al. 2022.
    """

    reference_batch: int
    rule: Rule = "linear"
    key: str = "lr"

    def __post_init__(self) -> None:
        """Checks the rule, the reference batch and the key."""
        if read_text(self.rule) not in POWERS:
            msg = f"LearningRate.rule must be one of {sorted(POWERS)}, got {self.rule!r}"
            raise InvalidSpaceError(msg)
        reference_batch = read_count(self.reference_batch)
        if reference_batch is None:
            msg = (
                "LearningRate.reference_batch must be a whole number of at least 1 and at most "
                f"10**12, got {self.reference_batch!r}"
            )
            raise InvalidSpaceError(msg)
        object.__setattr__(self, "reference_batch", reference_batch)
        if read_name(self.key) is None:
            msg = f'LearningRate.key must be a name such as "optimizer/lr", got {self.key!r}'
            raise InvalidSpaceError(msg)

    def apply(self, recipe: Recipe, batch_size: int) -> Recipe:
        """Returns the recipe with its rate scaled to a global batch.

        Raises:
            InvalidSpaceError: If the recipe has no number under the key.
        """
        return {**recipe, self.key: self._rate(recipe) * self._scale(batch_size)}

    def undo(self, recipe: Recipe, batch_size: int) -> Recipe:
        """Returns the recipe that `apply` made this one of; raises as it does."""
        return {**recipe, self.key: self._rate(recipe) / self._scale(batch_size)}

    def _scale(self, batch_size: int) -> float:
        scale: float = (batch_size / self.reference_batch) ** POWERS[self.rule]
        return scale

    def _rate(self, recipe: Recipe) -> float:
        rate = recipe.get(self.key)
        if isinstance(rate, bool) or not isinstance(rate, (int, float)):
            msg = (
                f"LearningRate.key must name a number in the space, got {self.key!r} = {rate!r}. "
                f"The space has {sorted(recipe)}."
            )
            raise InvalidSpaceError(msg)
        return rate
