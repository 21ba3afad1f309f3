"""What runs say of each law of the epochs."""

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from raycosttune.core.array import Floats
from raycosttune.core.epochs import EARLIEST, span
from raycosttune.core.lag import lag_evidence
from raycosttune.core.law import Law
from raycosttune.core.learning_curve import curve_evidence, scale_evidence
from raycosttune.core.runs import Runs

RUN_SD = 0.13  # what the same run takes more or less, and a batch beside the law
GRID_SD = 0.1  # half a step of the grid of offsets


def evidence(grid: Law, runs: Iterable[Runs]) -> Floats:
    """Log likelihood of the runs of one recipe under each law.

    Args:
        grid: The laws.
        runs: What its runs say, batch by batch.

    Returns:
        Shape (s, o).
    """
    runs, total = list(runs), np.zeros((len(grid.log_scale), len(grid.offsets)))
    for some in runs:
        total += _of_batch(grid, some)
        if some.longest is not None:
            total += _of_curve(grid, some, _leader(some, runs))
    return total


def run_evidence(some: Runs, runs: Iterable[Runs], log_epochs: Floats) -> Floats:
    """Log likelihood of a curve under hypotheses of what its own run needs.

    Args:
        some: The runs at its batch; it is that of the longest one in vain.
        runs: All of the recipe, which it is read beside.
        log_epochs: Hypothetical log epochs to the target, any shape.

    Returns:
        Of the shape of `log_epochs`.
    """
    return _of_run(some, _leader(some, runs), log_epochs)


def _leader(some: Runs, runs: Iterable[Runs]) -> Runs | None:
    """Returns the nearest batch that came nearer to the target; one that reached it goes first."""
    ahead = [other for other in runs if other is not some and other.progress < some.progress]
    doublings = math.log2(some.seen.batch_size)

    def order(other: Runs) -> tuple[bool, float, int]:
        batch = other.seen.batch_size
        return other.hits is None, abs(math.log2(batch) - doublings), batch

    return min(ahead, key=order, default=None)


@lru_cache(maxsize=128)
def _of_batch(grid: Law, runs: Runs) -> Floats:
    seen = runs.seen
    logs = grid.log_epochs[:, :, grid.batches.index(seen.batch_size)]
    total = np.zeros_like(logs)
    for interval, count in seen.counts.items():
        total += count * _of_interval(grid, seen.batch_size, *interval)
    for run in runs.scaled:
        high = math.inf if run.epochs is None else run.epochs.high
        total += scale_evidence(run.scales, high, logs, grid.log_scale)
    if runs.longest is not None:
        total += scale_evidence(runs.longest.scales, None, logs, grid.log_scale)
    return total


@lru_cache(maxsize=128)
def _of_curve(grid: Law, runs: Runs, leader: Runs | None) -> Floats:
    """Log likelihood of the longest run in vain, beside that of a leader if there is one."""
    logs = grid.log_epochs[:, :, grid.batches.index(runs.seen.batch_size)]
    own = _of_run(runs, leader, logs)
    if leader is None or leader.hits is not None:
        return own
    ends = np.exp(grid.log_epochs[:, :, grid.batches.index(leader.seen.batch_size)])
    beside = lag_evidence(runs.gaps, leader.curve, ends, logs)
    return own if beside is None else own + beside


def _of_run(runs: Runs, leader: Runs | None, log_epochs: Floats) -> Floats:
    if leader is not None and leader.hits is not None:
        end = np.array(leader.curve[-1][0])
        beside = lag_evidence(runs.gaps, leader.curve, end, log_epochs)
        if beside is not None:
            return beside  # a curve to the target tells more of how curves go on than any law
    return curve_evidence(runs.gaps, log_epochs)


@lru_cache(maxsize=512)
def _of_interval(grid: Law, batch_size: int, low: float, high: float) -> Floats:
    """Log likelihood of a run that reached the target between two evaluations, or not at all."""
    logs = grid.log_epochs[:, :, grid.batches.index(batch_size)]
    if math.isinf(high):
        beyond = (logs - math.log(max(low, EARLIEST))) / RUN_SD
        return np.asarray(log_ndtr(beyond), dtype=np.float64)
    gap = span(low, high)
    sd = math.sqrt(RUN_SD**2 + gap**2 / 12 + GRID_SD**2)
    return np.asarray(-0.5 * ((math.log(high) - gap / 2 - logs) / sd) ** 2, dtype=np.float64)
