"""Seconds from the request for workers to the first step."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from raycosttune.core.isotonic import isotonic
from raycosttune.core.prediction import Prediction


class Startup:
    """Models the start-up of a worker group: measured, not falling with the workers.

    Args:
        samples: Measured seconds by worker count, each sequence not empty.
    """

    def __init__(self, samples: Mapping[int, Sequence[float]]) -> None:
        self._predicted: dict[int, Prediction] = {}
        self._workers = np.array(sorted(samples), dtype=np.float64)
        self._seconds = [np.asarray(samples[int(n)], dtype=np.float64) for n in self._workers]
        if samples:
            medians = np.array([np.median(seconds) for seconds in self._seconds])
            counts = np.array([float(len(seconds)) for seconds in self._seconds])
            self._fit = isotonic(medians, counts)

    def predict(self, workers: int) -> Prediction:
        """Predicts the start-up of so many workers; 0 while nothing was measured."""
        if workers not in self._predicted:
            self._predicted[workers] = self._predict(workers)
        return self._predicted[workers]

    def _predict(self, workers: int) -> Prediction:
        if len(self._workers) == 0:
            return Prediction(0.0, 0.0, float("inf"))
        below = [s for n, s in zip(self._workers, self._seconds, strict=True) if n <= workers]
        above = [s for n, s in zip(self._workers, self._seconds, strict=True) if n >= workers]
        mid = float(np.interp(workers, self._workers, self._fit))
        low = max((float(seconds.min()) for seconds in below), default=0.0)
        high = min((float(seconds.max()) for seconds in above), default=float("inf"))
        return Prediction(min(low, mid), mid, max(high, mid))


@lru_cache(maxsize=64)
def fitted_startup(samples: tuple[tuple[int, tuple[float, ...]], ...]) -> Startup:
    """Returns the model of samples by worker count, the same one for the same samples."""
    return Startup(dict(samples))
