"""Random search."""

import random

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.peer import Peer


class RandomSearch(Peer):
    """Tries every cell once, in random order."""

    def __init__(self, space: Space, goal: Goal, cost: CostMetric, seed: int) -> None:
        super().__init__(space, goal, cost, seed)
        self._left = list(space.cells)
        random.Random(seed).shuffle(self._left)  # noqa: S311 - a search, no secret

    def ask(self) -> Allocation | None:
        """See Peer."""
        return self._left.pop() if self._left else None
