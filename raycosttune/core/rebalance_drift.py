"""Speeds that wander: what older samples still say of now."""

from dataclasses import dataclass

import numpy as np

from raycosttune.core.array import Floats, Ints

DRIFTS = (0.0, 0.05, 0.5, 5.0, 50.0)  # variance of a round's step over that of a sample's noise


@dataclass(frozen=True)
class Wander:
    """Is a random walk of each worker's log seconds off its law, from its oldest sample on.

    Attributes:
        ratio: Variance of a step from round to round, in variances of a sample's noise.
        parts: Of each worker that has samples its number, their places, the rounds since its
            oldest, and the root of their covariance in variances of the noise. None where
            nothing wanders.
        among: Number of workers.
    """

    ratio: float
    parts: tuple[tuple[int, Ints, Floats, Floats], ...]
    among: int

    @classmethod
    def of(cls, workers: Ints, ages: Floats, among: int, ratio: float) -> "Wander":
        """Builds the walk.

        Args:
            workers: Number of each sample's worker, shape (m,).
            ages: Rounds since each sample, shape (m,).
            among: Number of workers.
            ratio: Variance of a step, 0 for none.
        """
        parts = []
        for worker in np.unique(workers) if ratio > 0 else ():
            places = np.flatnonzero(workers == worker)
            since = ages[places].max() - ages[places]
            covariance = np.eye(len(places)) + ratio * np.minimum(since[:, None], since)
            parts.append((int(worker), places, since, np.linalg.cholesky(covariance)))
        return cls(ratio, tuple(parts), among)

    @property
    def log_det(self) -> float:
        """Half the log determinant of the covariance."""
        return float(sum(np.log(np.diagonal(root)).sum() for *_, root in self.parts))

    def whitened(self, values: Floats) -> Floats:
        """Turns what belongs to samples so that their noise is independent, shape (m, ...)."""
        white = values.copy()
        for _, places, _, root in self.parts:
            flat = values[places].reshape(len(places), -1)
            white[places] = np.linalg.solve(root, flat).reshape(values[places].shape)
        return white

    def now(self, residuals: Floats) -> Floats:
        """Returns where the walk of each worker is expected now, shape (n,).

        Args:
            residuals: Log seconds of the samples off their laws, shape (m,).

        References:
            Rasmussen & Williams 2006, equation 2.23, with the kernel min(s, s').
        """
        offsets = np.zeros(self.among)
        for worker, places, since, root in self.parts:
            whitened = np.linalg.solve(root, residuals[places])
            offsets[worker] = self.ratio * since @ np.linalg.solve(root.T, whitened)
        return offsets
