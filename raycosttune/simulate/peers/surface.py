"""Least-squares surfaces that never fall along either axis."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.isotonic import Edges, project


@dataclass(frozen=True)
class Surface:
    """Is a two-dimensional isotonic regression.

    Attributes:
        points: Shape (k, 2), where it was measured.
        values: Shape (k,), the fit: it does not fall where both coordinates rise.
    """

    points: Floats
    values: Floats

    @classmethod
    def fit(cls, points: Sequence[tuple[float, float]], values: Sequence[float]) -> "Surface":
        """Fits measurements.

        Args:
            points: Their k coordinates, k at least 1.
            values: The k values.
        """
        at = np.array(points, dtype=np.float64)
        measured = np.array(values, dtype=np.float64)
        fit = project(measured, np.ones(len(measured)), order(at))
        return cls(at, fit)

    def predict(self, point: tuple[float, float]) -> float:
        """Returns the middle of what the order allows at a point.

        Where only one side is bounded that bound is returned, and where none is, the mean.
        """
        low = self.values[(self.points <= np.array(point)).all(axis=1)]
        high = self.values[(self.points >= np.array(point)).all(axis=1)]
        sides = ([float(low.max())] if low.size else []) + (
            [float(high.min())] if high.size else []
        )
        return float(np.mean(sides or self.values))


def order(points: Floats) -> Edges:
    """Returns edges whose chains join every two points of which one is nowhere below the other.

    From every point one edge leads into each column at or beyond its own: to the lowest point
    there that isn't below it; the rest follows along the column.

    Args:
        points: Shape (k, 2).
    """
    ranked = np.lexsort((points[:, 1], points[:, 0]))
    columns = [ranked[points[ranked, 0] == x] for x in np.unique(points[:, 0])]
    tails, heads = [], []
    for k, own in enumerate(columns):
        tails.extend(own[:-1])
        heads.extend(own[1:])
        for column in columns[k + 1 :]:
            first = np.searchsorted(points[column, 1], points[own, 1])
            inside = first < len(column)
            tails.extend(own[inside])
            heads.extend(column[first[inside]])
    count = len(tails)
    return Edges(
        np.array(tails, dtype=np.int64),
        np.array(heads, dtype=np.int64),
        np.zeros(count),
        np.full(count, np.inf),
    )
