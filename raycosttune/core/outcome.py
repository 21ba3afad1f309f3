"""How long runs may take to the target and what they may cost, as samples."""

import numpy as np
from scipy.special import ndtri

from raycosttune.core.array import Floats, Ints
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.time_surrogate import Z90, TimeSurrogate

TIME_QUANTILES = ndtri(np.array([1, 3, 5]) / 6)
POINTS = 24
LEVELS = (np.arange(POINTS) + 0.5) / POINTS
TIME_SD = 0.5


def outcomes(known: Knowledge, places: Ints, recipe: str | None) -> tuple[Floats, Floats]:
    """Samples time to target and cost of some cells, equally likely.

    Args:
        known: What the records say.
        places: Places of the cells in the space, shape (k,).
        recipe: Key of the recipe, None for one not tried.

    Returns:
        Seconds and costs, each of shape (k, POINTS).
    """
    time = known.time_of(recipe)
    batches, is_known = known.grid.batches[places], time.is_known[places]
    seconds = np.empty((len(places), POINTS))
    for batch in dict.fromkeys(batches.tolist()):
        needed = known.accuracy.samples(recipe, batch)
        order = np.argsort(needed.epochs, kind="stable")
        epochs, weights = needed.epochs[order], needed.weights[order]
        for is_timed in (False, True):
            rows = np.flatnonzero((batches == batch) & (is_known == is_timed))
            if len(rows) == 0:
                continue
            times = _times(known, time, places[rows], is_timed=is_timed)
            if times.shape[1] == 1:
                seconds[rows] = times * _quantiles(epochs[None], weights)
                continue
            values = (times[:, :, None] * epochs).reshape(len(rows), -1)
            each = np.tile(weights, times.shape[1]) / times.shape[1]
            seconds[rows] = _quantiles(values, each)
    seconds += known.starts[1][places][:, None]
    return seconds, known.costs_of(places, seconds)


def earliest(known: Knowledge, places: Ints, recipe: str | None) -> Floats:
    """Bounds the seconds that `outcomes` samples from below, shape (k,); see there."""
    time = known.time_of(recipe)
    batches, is_known = known.grid.batches[places], time.is_known[places]
    seconds = np.empty(len(places))
    for is_timed in (False, True):
        rows = is_known == is_timed
        seconds[rows] = _times(known, time, places[rows], is_timed=is_timed).min(axis=1)
    for batch in dict.fromkeys(batches.tolist()):
        seconds[batches == batch] *= known.accuracy.samples(recipe, batch).epochs.min()
    return np.asarray(seconds + known.starts[1][places], dtype=np.float64)


def _times(known: Knowledge, time: TimeSurrogate, places: Ints, *, is_timed: bool) -> Floats:
    """Samples the epoch times of cells, all timed or none, shape (cells, samples)."""
    mean, sd = time.log_mean[places], time.log_sd[places]
    mid = np.exp(mean)[:, None]
    if time.is_empty:
        mid = known.guessed_scale * mid
        return np.asarray(mid * np.exp(TIME_SD * TIME_QUANTILES), dtype=np.float64)
    if is_timed:
        return mid
    low, high = np.exp(mean - Z90 * sd)[:, None], np.exp(mean + Z90 * sd)[:, None]
    spread = np.minimum(TIME_SD, np.log(high / low) / 4)
    return np.asarray(np.clip(mid * np.exp(spread * TIME_QUANTILES), low, high), dtype=np.float64)


def _quantiles(values: Floats, weights: Floats) -> Floats:
    """Returns the quantiles of weighted samples at `LEVELS`, one row for each row.

    A stable sort takes a third of the time where samples come in a few ascending runs.
    """
    order = np.argsort(values, axis=1, kind="stable")
    sorted_weights = weights[order]
    cumulative = np.cumsum(sorted_weights, axis=1) - sorted_weights / 2
    levels = np.clip(LEVELS, cumulative[:, :1], cumulative[:, -1:])
    count = order.shape[1]
    rows = np.arange(len(order))[:, None]
    # No chance is beyond 1: with twice its number added, each row lies beyond the one before.
    found = np.searchsorted((cumulative + 2 * rows).ravel(), levels + 2 * rows, side="right")
    left = np.clip(found - rows * count - 1, 0, count - 2)
    start, end = cumulative[rows, left], cumulative[rows, left + 1]
    low, high = values[rows, order[rows, left]], values[rows, order[rows, left + 1]]
    return np.asarray(low + (high - low) / (end - start) * (levels - start), dtype=np.float64)
