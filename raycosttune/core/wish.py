"""Configurations that a user wants tried before the search chooses its own."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from raycosttune.core.experiment import Experiment
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Recipe
from raycosttune.core.space import Allocation, Space

WHY = "was asked for"


@dataclass(frozen=True)
class Wish:
    """Is a configuration, or the part of one that matters; the search fills in the rest.

    Attributes:
        workers: Worker count, None for any.
        batch: Batch as the user reads it, None for any.
        recipe: Values of other hyperparameters, as they are proposed, before a rule of the
            learning rate.
        node_type: Type of machine, None for any.
    """

    workers: int | None = None
    batch: int | None = None
    recipe: Recipe = field(default_factory=dict)
    node_type: str | None = None

    def allows(self, cell: Allocation, space: Space) -> bool:
        """Tells whether a cell has the workers, the batch and the type of machine."""
        is_batch = self.batch in (None, space.user_batch(cell))
        is_type = self.node_type in (None, cell.node_type)
        return is_batch and is_type and self.workers in (None, cell.workers)


def wished(
    known: Knowledge, wishes: Sequence[Wish], ranked: Sequence[Experiment]
) -> Iterator[Experiment]:
    """Yields the run of each wish that no trial has met and some cell allows, in their order.

    Args:
        known: What the records say.
        wishes: What the user wants tried.
        ranked: The runs that pay, best first: the best one that a wish allows is taken.
    """
    for wish in wishes:
        if _is_met(wish, known):
            continue
        cells = [cell for cell in known.cells if wish.allows(cell, known.space)]
        if cells:
            best = (run.allocation for run in ranked if run.allocation in cells)
            cell = next(best, cells[0])
            yield Experiment(cell, None, 0.0, 0.0, 0.0, WHY, fixed=wish.recipe)


def _is_met(wish: Wish, known: Knowledge) -> bool:
    return any(
        wish.allows(record.allocation, known.space) and wish.recipe.items() <= record.recipe.items()
        for record in known.records
    )
