"""What is demonstrated where recipes differ in their epoch times."""

import math
from collections.abc import Callable, Iterator, Mapping

from raycosttune.core.incumbent import Demonstrated, Incumbent
from raycosttune.core.step_model import Bools


class Demonstrations:
    """Compares what is demonstrated in each class of epoch times; see Demonstrated.

    Args:
        by_class: What each class shows.
        class_of: Returns the class of a recipe that was tried, by its key.
    """

    def __init__(
        self, by_class: Mapping[str, Demonstrated], class_of: Callable[[str], str]
    ) -> None:
        self._by_class, self._class_of = by_class, class_of

    def of_class(self, name: str) -> Demonstrated:
        """Returns what a class shows."""
        return self._by_class[name]

    @property
    def least_cost(self) -> float:
        """Bounds what the cheapest costs from below, infinite where there is none."""
        return min((own.least_cost for own in self._by_class.values()), default=math.inf)

    def best(self) -> Incumbent | None:
        """Returns the cheapest in time; see Demonstrated.best."""
        every = self._by_class.values()
        found = [(best.cost.mid, own.first(best), best) for own in every if (best := own.in_time())]
        if found:
            return min(found, key=lambda one: one[:2])[2]
        late = (best for own in every if (best := own.fastest()))
        return min(late, key=lambda best: best.seconds.mid, default=None)

    def all(self) -> Iterator[tuple[Incumbent, float]]:
        """Yields every one, by which was reached first, and the least deadline that it meets."""
        found = [
            (own.first(known), known, deadline)
            for own in self._by_class.values()
            for known, deadline in own.all()
        ]
        for _, known, deadline in sorted(found, key=lambda one: one[0]):
            yield known, deadline

    def is_measured(self, recipe: str) -> Bools:
        """Tells of each cell of the space whether a recipe is known to meet the deadline in it."""
        return self._by_class[self._class_of(recipe)].is_measured(recipe)
