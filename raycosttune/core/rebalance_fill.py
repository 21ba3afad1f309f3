"""Shares with which the slowest worker is as fast as it can be."""

from collections.abc import Sequence

import numpy as np

from raycosttune.core.array import Floats, Ints
from raycosttune.core.share import check_bounds, round_shares

HALVINGS = 28  # of an interval of log seconds
FUZZ = 1e-9
STEEPNESS = 1e-9  # of log seconds from knot to knot: none is level


def fill(
    knots: Floats, log_seconds: Floats, total: int, bounds: Sequence[tuple[int, int]]
) -> tuple[int, ...]:
    """Finds whole shares within bounds that minimise the seconds of the slowest worker.

    Where seconds don't fall with the share, the least T for which the largest shares done
    within T cover the batch is the optimum; bisection finds it. Those who could have more
    within T share what is left in proportion. Seconds that fall are taken as their largest
    so far; a share of 0 takes as long as a share of 1.

    Args:
        knots: Log shares, shape (k,), rising.
        log_seconds: Of each worker at the knots, linear in between, shape (n, k).
        total: Samples of the global batch.
        bounds: Least and most samples of each worker.

    Raises:
        InvalidShareError: If the bounds leave no such shares.
    """
    check_bounds(total, bounds)
    least, most = np.array(bounds, dtype=np.int64).T
    rising = np.maximum.accumulate(log_seconds, axis=1) + STEEPNESS * np.arange(len(knots))
    rows, last = np.arange(len(rising)), len(knots) - 2

    def within(limit: float) -> Ints:
        piece = np.clip((rising <= limit).sum(axis=1) - 1, 0, last)
        low, high = rising[rows, piece], rising[rows, piece + 1]
        place = knots[piece] + (limit - low) / (high - low) * (knots[piece + 1] - knots[piece])
        whole = np.floor(np.exp(np.minimum(place, knots[-1])) + FUZZ).astype(np.int64)
        whole = np.where(limit < rising[:, 0], least, np.where(limit < rising[:, -1], whole, most))
        clipped: Ints = np.clip(whole, least, most)
        return clipped

    early, late = rising.min() - 1.0, rising.max() + 1.0
    for _ in range(HALVINGS):
        middle = (early + late) / 2
        if within(middle).sum() < total:
            early = middle
        else:
            late = middle
    low, room = within(early), within(late) - within(early)
    need = total - int(low.sum())
    more = round_shares(
        [float(part) for part in room * need / max(room.sum(), 1)],
        need,
        [(0, int(part)) for part in room],
    )
    return tuple(int(share) + part for share, part in zip(low, more, strict=True))
