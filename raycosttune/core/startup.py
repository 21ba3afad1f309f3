"""Seconds from the request for workers to the first step."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from raycosttune.core.array import Floats, Ints
from raycosttune.core.cells import cells_of
from raycosttune.core.isotonic import isotonic
from raycosttune.core.latest import Latest
from raycosttune.core.prediction import Prediction
from raycosttune.core.readings import Readings
from raycosttune.core.space import Allocation, Space


class Startup:
    """Models the start-up of a worker group: measured, not falling with the workers.

    Args:
        samples: Measured seconds by worker count, each sequence not empty.
    """

    def __init__(self, samples: Mapping[int, Sequence[float]]) -> None:
        seconds = {n: Readings(samples[n]) for n in sorted(samples)}
        self._workers = np.array(list(seconds), dtype=np.float64)
        medians = np.array([seen.median for seen in seconds.values()])
        counts = np.array([float(len(seen)) for seen in seconds.values()])
        self._fit = isotonic(medians, counts) if samples else medians
        least = np.array([seen.least for seen in seconds.values()])
        most = np.array([seen.most for seen in seconds.values()])
        # No start-up is shorter than the shortest of fewer workers, nor longer than of more.
        self._least = np.maximum.accumulate(np.array([0.0, *least]))
        self._most = np.minimum.accumulate(np.array([np.inf, *most[::-1]]))[::-1]

    def predict(self, workers: int) -> Prediction:
        """Predicts the start-up of so many workers; 0 while nothing was measured."""
        (low,), (mid,), (high,) = self._predict(np.array([workers]))
        return Prediction(float(low), float(mid), float(high))

    def of_cells(self, space: Space) -> tuple[Floats, Floats]:
        """Returns the lower bound and the likely start-up of each cell, both of shape (cells,)."""
        low, mid, _ = self._predict(cells_of(space).workers)
        return low, mid

    def _predict(self, workers: Ints) -> tuple[Floats, Floats, Floats]:
        low = self._least[np.searchsorted(self._workers, workers, side="right")]
        high = self._most[np.searchsorted(self._workers, workers, side="left")]
        if len(self._workers) == 0:
            return low, low, high
        mid = np.interp(workers, self._workers, self._fit)
        return np.minimum(low, mid), mid, np.maximum(high, mid)


class Startups:
    """Models start-ups by type of machine, each by its own.

    Of a type that was not started yet the likely start-up is that of the others, and nothing
    bounds it.

    Args:
        samples: Measured seconds by type and worker count, each sequence not empty.
    """

    def __init__(self, samples: Mapping[tuple[str, int], Sequence[float]]) -> None:
        own = defaultdict[str, dict[int, Sequence[float]]](dict)
        pooled = defaultdict[int, list[float]](list)
        for (node_type, workers), seconds in samples.items():
            own[node_type][workers] = seconds
            pooled[workers] += seconds
        self._types = {node_type: Startup(of_type) for node_type, of_type in own.items()}
        is_one = len(self._types) == 1
        self._all = next(iter(self._types.values())) if is_one else Startup(pooled)

    def predict(self, cell: Allocation) -> Prediction:
        """Predicts the start-up of a cell; 0 while nothing was measured."""
        if (own := self._types.get(cell.node_type)) is not None:
            return own.predict(cell.workers)
        return Prediction(0.0, self._all.predict(cell.workers).mid, math.inf)

    def of_cells(self, space: Space) -> tuple[Floats, Floats]:
        """Returns the lower bound and the likely start-up of each cell, both of shape (cells,)."""
        low, mid = self._all.of_cells(space)
        low, types = np.zeros_like(low), cells_of(space).types
        for k, kind in enumerate(space.types):
            if kind.name in self._types:
                at = types == k
                low[at], mid[at] = (found[at] for found in self._types[kind.name].of_cells(space))
        return low, mid


fitted_startup = Latest(Startups)
