"""Seconds from the request for workers to the first step."""

from collections.abc import Mapping, Sequence

import numpy as np

from raycosttune.core.cells import cells_of
from raycosttune.core.isotonic import Floats, Ints, isotonic
from raycosttune.core.latest import Latest
from raycosttune.core.prediction import Prediction
from raycosttune.core.readings import Readings
from raycosttune.core.space import Space


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


fitted_startup = Latest(Startup)
