"""Seconds of an epoch by class of recipe: T(n, b) for each value of what affects time."""

import math
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.cells import cells_of
from raycosttune.core.cost import SECONDS_PER_HOUR, CostMetric, checked_costs
from raycosttune.core.duplicate import duplicate
from raycosttune.core.latest import Latest
from raycosttune.core.readings import Readings
from raycosttune.core.space import Space
from raycosttune.core.step_fit import Fitted, Grid, fit
from raycosttune.core.step_model import Bools
from raycosttune.core.time_surrogate import TimeSurrogate, fitted_time, measured_of
from raycosttune.core.type_law import BETWEEN_SD
from raycosttune.errors import InvalidCostError

UNSEEN_SD = float(BETWEEN_SD[0])  # an untimed class may be so much faster or slower, in log


class Times:
    """Models log T of each class of recipe; without declared names there is one class alone.

    A class is to the law of step time what a type of machine is: it has numbers of its own,
    whose priors are tied to those of the others, and all are fitted together. The bounds of a
    class rest on its own samples alone, so a class that was never timed is bounded by nothing.

    Args:
        space: The legal cells.
        samples: Seconds of single epochs by class and place of the cell, none empty.
        paces: Log seconds of each type of machine as they are guessed; see TimeSurrogate.

    Attributes:
        names: The classes that were timed, sorted.
    """

    def __init__(
        self, space: Space, samples: Mapping[tuple[str, int], Readings], paces: tuple[float, ...]
    ) -> None:
        self._space, self._paces = space, paces
        self._samples: dict[str, dict[int, Readings]] = {}
        for (name, place), seen in samples.items():
            self._samples.setdefault(name, {})[place] = seen
        self.names = tuple(sorted(self._samples))
        self._of = {name: self._model(k, name) for k, name in enumerate(self.names)}

    def of(self, name: str) -> TimeSurrogate:
        """Returns the times of a class."""
        if name in self._of:
            return self._of[name]
        return self._untimed if self._space.affects_time else self.unknown

    def within(self, least: Floats, most: Floats) -> "Times":
        """Returns the same fit of the one class within other bounds; see TimeSurrogate.within."""
        other = duplicate(self)
        other.unknown = self.unknown.within(least, most)
        return other

    @cached_property
    def unknown(self) -> TimeSurrogate:
        """Times of a recipe of which nobody knows the class: as likely one as another timed one."""
        if not self._space.affects_time:
            return self._of.get("") or fitted_time(self._space, {}, self._paces)
        return self._mixed(0.0)

    @cached_property
    def is_known(self) -> Bools:
        """Whether epochs of any class were timed in each cell, shape (cells,)."""
        known = np.zeros(len(self._space.cells), dtype=np.bool_)
        for own in self._of.values():
            known |= own.is_known
        return known

    def pace(self, name: str) -> float:
        """Returns how long a class's epochs take, on average over the cells and in units of all."""
        if not self._space.affects_time:
            return 1.0
        each = [own.log_mean for own in self._of.values()] or [self.unknown.log_mean]
        return float(np.exp((self.of(name).log_mean - np.mean(each, axis=0)).mean()))

    @property
    def slack(self) -> float:
        """The largest log slack of the bounds of a class."""
        return max((own.slack for own in self._of.values()), default=self.unknown.slack)

    @cached_property
    def _untimed(self) -> TimeSurrogate:
        return self._mixed(UNSEEN_SD)

    def _mixed(self, sd: float) -> TimeSurrogate:
        def mixed() -> Fitted:
            means, sds = (
                np.array([getattr(own, name) for own in self._fits]) for name in ("mean", "sd")
            )
            variance = (sds**2).mean(axis=0) + means.var(axis=0) + sd**2
            return Fitted(means.mean(axis=0), np.sqrt(variance), self._fits[0].noise)

        if not self.names:
            return fitted_time(self._space, {}, self._paces)
        return _Tied(self._space, {}, self._paces, mixed)

    def _model(self, k: int, name: str) -> TimeSurrogate:
        if len(self.names) == 1:
            return fitted_time(self._space, self._samples[name], self._paces)
        return _Tied(self._space, self._samples[name], self._paces, lambda: self._fits[k])

    @cached_property
    def _fits(self) -> list[Fitted]:
        """What is likely of each class, fitted jointly."""
        size, count = len(self._space.cells), len(self.names)
        samples = {
            k * size + place: seen
            for k, name in enumerate(self.names)
            for place, seen in self._samples[name].items()
        }
        paces: Floats = np.tile(self._paces, count)
        whole = fit(_grid(self._space, count), measured_of(samples), paces)
        parts = (slice(k * size, (k + 1) * size) for k in range(count))
        return [Fitted(whole.mean[at], whole.sd[at], whole.noise) for at in parts]


fitted_times = Latest(Times)


def guessed_paces(space: Space, cost: CostMetric) -> tuple[float, ...]:
    """Returns log seconds of each type of machine by its price: what costs more is faster."""
    if len(space.types) == 1:
        return (0.0,)
    cells = space.cells
    try:
        costs = checked_costs(cost, cells, np.full(len(cells), SECONDS_PER_HOUR))
    except InvalidCostError:  # a plan says so; times must be known without prices
        costs = np.ones(len(cells))
    grid = cells_of(space)
    each = costs / grid.workers
    least = [each[grid.types == k].min(initial=np.inf) for k in range(len(space.types))]
    known = [math.log(one) for one in least if 0 < one < math.inf]
    middle = sum(known) / len(known) if known else 0.0
    return tuple(middle - math.log(one) if 0 < one < math.inf else 0.0 for one in least)


class _Tied(TimeSurrogate):
    """Bounds by a class's own samples; what is likely comes from all classes."""

    def __init__(
        self,
        space: Space,
        samples: Mapping[int, Readings],
        paces: tuple[float, ...],
        fitted: Callable[[], Fitted],
    ) -> None:
        super().__init__(space, samples, paces)
        self._fit = fitted

    @cached_property
    def is_empty(self) -> bool:
        """See TimeSurrogate.is_empty: other classes were timed."""
        return False

    @cached_property
    def _fitted(self) -> Fitted:
        return self._fit()


@lru_cache(maxsize=16)
def _grid(space: Space, count: int) -> Grid:
    """Returns the cells once for each of some classes, each with types of machine of its own."""
    types = cells_of(space).types + len(space.types) * np.arange(count)[:, None]
    return Grid.of(space.cells * count, types.ravel())
