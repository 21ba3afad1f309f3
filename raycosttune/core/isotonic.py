"""Fits and bounds that know only a shape: monotone, with bounded slopes."""

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse
from scipy.optimize import isotonic_regression

from raycosttune.core.array import Floats, Ints


def isotonic(values: Floats, weights: Floats, *, increasing: bool = True) -> Floats:
    """Projects a sequence onto the monotone sequences, least squares.

    Args:
        values: Shape (k,), in the order of their argument.
        weights: Shape (k,), positive.
        increasing: Whether the result must not fall; else it must not rise.

    Returns:
        Shape (k,), the closest monotone sequence.
    """
    fitted = isotonic_regression(values, weights=weights, increasing=increasing)
    return np.asarray(fitted.x, dtype=np.float64)


@dataclass(frozen=True)
class Edges:
    """Bounds differences between pairs of points: low <= f[head] - f[tail] <= high.

    Attributes:
        tail: Shape (m,), indices of the points from which.
        head: Shape (m,), indices of the points to which.
        low: Shape (m,), least difference.
        high: Shape (m,), greatest difference.
    """

    tail: Ints
    head: Ints
    low: Floats
    high: Floats


def project(values: Floats, weights: Floats, edges: Edges) -> Floats:
    """Projects values onto the surfaces with bounded differences, least squares.

    Solves min sum_k weights_k (f_k - values_k)^2 subject to the edges, a quadratic
    program: isotonic regression where low = 0 and high is infinite, sharpened where
    high is finite.

    Args:
        values: Shape (k,).
        weights: Shape (k,), positive.
        edges: The differences to hold, over indices below k.

    Returns:
        Shape (k,), the closest surface of the shape.

    References:
        Isotonic models of epoch time and accuracy: Liang et al. 2022.
    """
    count, rows = len(values), len(edges.tail)
    if rows == 0:
        return values.copy()
    row = np.arange(rows)
    difference = sparse.csc_matrix(
        (
            np.concatenate([-np.ones(rows), np.ones(rows)]),
            (np.concatenate([row, row]), np.concatenate([edges.tail, edges.head])),
        ),
        shape=(rows, count),
    )
    bounded = np.isfinite(edges.high)
    matrix = sparse.vstack([-difference, difference[bounded]], format="csc")
    limits = np.concatenate([-edges.low, edges.high[bounded]])
    scale = weights / weights.max()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        sparse.diags_array(scale, format="csc"),
        -scale * values,
        matrix,
        limits,
        [clarabel.NonnegativeConeT(len(limits))],
        settings,
    ).solve()
    return np.asarray(solution.x, dtype=np.float64)


def bounds(low: Floats, high: Floats, least: Floats, most: Floats) -> tuple[Floats, Floats]:
    """Bounds every point from a few measured ones and the differences allowed between them.

    The tightest bounds are lower(v) = max_u (low_u + least(u, v)) and
    upper(v) = min_u (high_u + most(u, v)) over the measured u: the Lipschitz extension.

    Args:
        low: Shape (m,), lower ends of the measured intervals.
        high: Shape (m,), their upper ends.
        least: Shape (m, k), least difference from measured u to point v.
        most: Shape (m, k), greatest difference.

    Returns:
        Two arrays of shape (k,); infinite where nothing is measured.
    """
    if len(low) == 0:
        count = least.shape[1]
        return np.full(count, -np.inf), np.full(count, np.inf)
    lower = (low[:, None] + least).max(axis=0)
    upper = (high[:, None] + most).min(axis=0)
    return lower, upper


def violation(low: Floats, high: Floats, least: Floats) -> float:
    """Returns by how much measured intervals break the differences allowed between them.

    Args:
        low: Shape (m,), lower ends.
        high: Shape (m,), upper ends.
        least: Shape (m, m), least difference from u to v; the greatest one is that from v to u,
            its sign turned.

    Returns:
        The smallest slack under which no interval contradicts another, at least 0.
    """
    if len(low) == 0:
        return 0.0
    return max(0.0, float((low[:, None] + least - high).max()))
