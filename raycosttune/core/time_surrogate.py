"""Seconds of an epoch over workers and batches: T(n, b)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.optimize import nnls

from raycosttune.core.isotonic import Edges, Floats, Ints, bounds, project, violation
from raycosttune.core.prediction import Prediction
from raycosttune.core.space import Allocation, Space

DEFAULT_SLACK = 0.10
NODE_FACTOR = 3.0
PRIOR_SD = 0.5
# Epoch time of an unknown job, relative: compute of a sample, and the cost of a step and of
# its synchronisation in samples, and the cost of an epoch in data sets.
PRIOR_TERMS = np.array([1.0, 4.0, 2.0, 0.02])


class TimeSurrogate:
    """Models log T from the cells measured so far.

    Assumes, in log-log: T does not rise with b and n T does not fall with n, both with
    slopes in [-1, 0]; T does not rise with n while the number of nodes stays, and rises at
    most `NODE_FACTOR` fold where it grows. The slack of these bounds starts at
    `DEFAULT_SLACK` and widens to what the measured cells show.

    Args:
        space: The legal cells.
        samples: Seconds of single epochs by cell, each sequence not empty.

    References:
        Liang et al. 2022 (T monotone in resources and batch).
    """

    def __init__(self, space: Space, samples: Mapping[Allocation, Sequence[float]]) -> None:
        self._space = space
        self._grid = _grid(space)
        known = sorted(cell for cell in samples if cell in self._grid.index)
        self._known = np.array([self._grid.index[cell] for cell in known], dtype=np.int64)
        measured = [_measured(tuple(samples[cell])) for cell in known]
        self._value = np.array([value for value, _ in measured])
        self._noise = np.array([noise for _, noise in measured])

    @cached_property
    def slack(self) -> float:
        """Log slack of the bounds."""
        least = self._grid.least[np.ix_(self._known, self._known)]
        broken = violation(self._value - self._noise, self._value + self._noise, least, -least.T)
        return max(DEFAULT_SLACK, broken)

    @cached_property
    def is_empty(self) -> bool:
        """Whether nothing was measured, so that only ratios of predictions mean anything."""
        return len(self._known) == 0

    def is_measured(self, cell: Allocation) -> bool:
        """Tells whether a cell's epochs were timed."""
        return self._grid.index[cell] in self._measured

    def predict(self, cell: Allocation) -> Prediction:
        """Predicts the seconds of an epoch in a cell."""
        k = self._grid.index[cell]
        lower, upper = self._bounds
        low, high = (float(np.exp(log[k])) for log in (lower, upper))
        return Prediction(low, min(max(self._middle(k), low), high), high)

    def least(self, cell: Allocation) -> float:
        """Bounds the seconds of an epoch in a cell from below."""
        return float(np.exp(self._bounds[0][self._grid.index[cell]]))

    def _middle(self, k: int) -> float:
        measured = self._measured.get(k)
        return math.exp(self._fitted[k] if measured is None else self._value[measured])

    @cached_property
    def _measured(self) -> dict[int, int]:
        return {int(k): place for place, k in enumerate(self._known)}

    @cached_property
    def _bounds(self) -> tuple[Floats, Floats]:
        """Lower and upper log T of every cell."""
        apart = np.arange(len(self._grid.least))[None, :] != self._known[:, None]
        slack = self.slack * apart
        return bounds(
            self._value - self._noise,
            self._value + self._noise,
            self._grid.least[self._known] - slack,
            self._grid.most[self._known] + slack,
        )

    @cached_property
    def _fitted(self) -> Floats:
        """Projects the measured values and a parametric mean onto the shape, at once."""
        grid, cells = self._grid, self._grid.places
        values = np.log(self._terms(grid.workers, grid.batches) @ self._coefficients)
        if self.is_empty:
            return np.asarray(values[cells], dtype=np.float64)
        weights = np.full(len(values), PRIOR_SD**-2)
        values[cells[self._known]] = self._value
        weights[cells[self._known]] = self._noise**-2
        fitted = project(values, weights, grid.edges)
        return np.asarray(fitted[cells], dtype=np.float64)

    @cached_property
    def _coefficients(self) -> Floats:
        """Non-negative coefficients of T = a/n + c/b + d log2(n)/b + e, held near the prior."""
        if self.is_empty:
            return PRIOR_TERMS
        cells = [self._space.cells[k] for k in self._known]
        terms = self._terms(
            np.array([cell.workers for cell in cells]),
            np.array([cell.batch_size for cell in cells]),
        )
        measured = np.exp(self._value)
        prior = PRIOR_TERMS * np.median(measured / (terms @ PRIOR_TERMS))
        pull = 0.2
        rows = np.vstack([terms * prior / measured[:, None], pull * np.eye(len(prior))])
        target = np.concatenate([np.ones(len(measured)), np.full(len(prior), pull)])
        factors, _ = nnls(rows, target)
        return np.asarray(np.maximum(factors, 1e-6) * prior, dtype=np.float64)

    @staticmethod
    def _terms(workers: np.ndarray, batches: np.ndarray) -> Floats:
        ones = np.ones(len(workers))
        terms = [1 / workers, ones / batches, np.log2(workers) / batches, ones]
        return np.asarray(np.stack(terms, axis=1), dtype=np.float64)


@dataclass(frozen=True)
class _Grid:
    """Is what a space alone says: computed once for it.

    Attributes:
        index: Place of every cell.
        least: Least log T(v) - log T(u), shape (u, v), over the cells.
        most: The greatest, likewise.
        workers: Worker counts of the whole grid, holes included, flat.
        batches: Batches, likewise.
        places: Places of the cells in the whole grid.
        edges: Neighbours in the whole grid and how they may differ.
    """

    index: Mapping[Allocation, int]
    least: Floats
    most: Floats
    workers: Ints
    batches: Ints
    places: Ints
    edges: Edges


@lru_cache(maxsize=16)
def _grid(space: Space) -> _Grid:
    workers = np.array(space.workers)
    batches = np.array(sorted({cell.batch_size for cell in space.cells}))
    grid_n, grid_b = (axis.ravel() for axis in np.meshgrid(workers, batches, indexing="ij"))
    at = {(n, b): k for k, (n, b) in enumerate(zip(grid_n, grid_b, strict=True))}
    least = _least(space.cells)
    return _Grid(
        index={cell: k for k, cell in enumerate(space.cells)},
        least=least,
        most=-least.T,
        workers=grid_n,
        batches=grid_b,
        places=np.array([at[cell.workers, cell.batch_size] for cell in space.cells]),
        edges=_edges(space, workers, batches),
    )


def _edges(space: Space, workers: Ints, batches: Ints) -> Edges:
    index = np.arange(len(workers) * len(batches)).reshape(len(workers), len(batches))
    nodes = np.array([space.nodes(int(n)) for n in workers])
    over_b = np.broadcast_to(-np.diff(np.log(batches)), (len(workers), len(batches) - 1))
    over_n = np.broadcast_to(-np.diff(np.log(workers))[:, None], index[1:].shape)
    jump = np.where(np.diff(nodes) > 0, np.log(NODE_FACTOR), 0.0)[:, None]
    return Edges(
        tail=np.concatenate([index[:, :-1].ravel(), index[:-1].ravel()]),
        head=np.concatenate([index[:, 1:].ravel(), index[1:].ravel()]),
        low=np.concatenate([over_b.ravel(), over_n.ravel()]),
        high=np.concatenate([np.zeros(over_b.size), np.broadcast_to(jump, over_n.shape).ravel()]),
    )


def _least(cells: Sequence[Allocation]) -> Floats:
    """Returns the least log T(v) - log T(u), shape (u, v); the greatest is -least.T."""
    n = np.log([cell.workers for cell in cells])
    b = np.log([cell.batch_size for cell in cells])
    nodes = np.array([cell.nodes for cell in cells])
    up_n = np.maximum(n[None, :] - n[:, None], 0)
    up_b = np.maximum(b[None, :] - b[:, None], 0)
    fewer_nodes = nodes[None, :] < nodes[:, None]
    least: Floats = -up_b - up_n - np.where(fewer_nodes, np.log(NODE_FACTOR), 0.0)
    return least


@lru_cache(maxsize=4096)
def _measured(seconds: tuple[float, ...]) -> tuple[float, float]:
    """Returns log median and half width of a cell's epochs."""
    logs = np.log(np.asarray(seconds, dtype=np.float64))
    return float(np.median(logs)), _half_width(logs)


def _half_width(logs: Floats) -> float:
    """Returns the half width of a measured interval: noise falls with the root of the count."""
    spread = float(logs.std()) if len(logs) > 1 else 0.0
    root = math.sqrt(len(logs))
    return max(0.02, 0.10 / root, 2 * spread / root)
