"""Where the other hyperparameters come from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from raycosttune.core.observation import Recipe


@dataclass(frozen=True)
class Scored:
    """Is a recipe that was tried, and how many epochs it needs compared with others.

    Attributes:
        recipe: The recipe as proposed.
        score: Relative epochs to the target, lower is better, positive and finite.
    """

    recipe: Recipe
    score: float


class Proposer(Protocol):
    """Proposes the hyperparameters beside workers and batch."""

    def propose(self, index: int, records: Sequence[Scored]) -> Recipe:
        """Returns a recipe; the same for the same index and records."""


class NoHyperparameters:
    """Proposes the empty recipe: only workers and batch are chosen."""

    def propose(self, index: int, records: Sequence[Scored]) -> Recipe:  # noqa: ARG002 - Protocol
        """Returns the empty recipe."""
        return {}
