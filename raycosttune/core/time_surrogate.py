"""Seconds of an epoch over workers and batches: T(n, b)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from raycosttune.core.isotonic import Floats, bounds, violation
from raycosttune.core.prediction import Prediction
from raycosttune.core.space import Allocation, Space
from raycosttune.core.step_fit import NOISE_SD, Fitted, Grid, Measured, fit

DEFAULT_SLACK = 0.10
NODE_FACTOR = 3.0
PRIOR_SAMPLES = 4  # what the prior of the noise counts in the bounds
LEAST_HALF_WIDTH = 0.02
Z90 = 1.6448536269514722  # 90 % of a Gaussian lie within so many deviations
Z_MAD = 1.4826  # deviations of a Gaussian in its median absolute deviation


class TimeSurrogate:
    """Models log T from the cells measured so far.

    Two answers that are kept apart. `bounds` assume a shape alone, no law: in log-log, T
    does not rise with b and n T does not fall with n, both with slopes in [-1, 0]; T does
    not rise with n while the number of nodes stays, and rises at most `NODE_FACTOR` fold
    where it grows. Their slack starts at `DEFAULT_SLACK` and widens to what the measured
    cells show: certificates rest on them. `predict`, `log_mean` and `log_sd` say what is
    likely, by a law of step time and its misfit: decisions weigh by them. The likely value
    lies within the bounds; its interval may cross them, as shapes break too.

    Args:
        space: The legal cells.
        samples: Seconds of single epochs by cell, each sequence not empty.

    References:
        Liang et al. 2022 (T monotone in resources and batch); Qiao et al. 2021, Pollux
        (step time).
    """

    def __init__(self, space: Space, samples: Mapping[Allocation, Sequence[float]]) -> None:
        self._shape = _shape(space)
        known = sorted(cell for cell in samples if cell in self._shape.index)
        self._measured = _measured(self._shape, known, [tuple(samples[cell]) for cell in known])

    @cached_property
    def slack(self) -> float:
        """Log slack of the bounds: under less, measured cells would contradict each other."""
        places = self._measured.places
        least = self._shape.least[np.ix_(places, places)]
        return max(DEFAULT_SLACK, violation(*self._intervals, least, -least.T))

    @cached_property
    def is_empty(self) -> bool:
        """Whether nothing was measured, so that only ratios of predictions mean anything."""
        return len(self._measured.places) == 0

    @property
    def noise(self) -> float:
        """Deviation of the log of one sample, by the samples and the prior."""
        return NOISE_SD if self._fitted is None else self._fitted.noise

    def is_measured(self, cell: Allocation) -> bool:
        """Tells whether a cell's epochs were timed."""
        return self._shape.index[cell] in self._places

    def predict(self, cell: Allocation) -> Prediction:
        """Predicts the seconds of an epoch in a cell.

        Returns:
            The median and a 90 % interval of the true time, without the noise of one epoch;
            an interval from 0 to infinity while nothing is measured.
        """
        k = self._shape.index[cell]
        mean, sd = float(self.log_mean[k]), float(self.log_sd[k])
        if self.is_empty:
            return Prediction(0.0, float(np.exp(mean)), float("inf"))
        low, mid, high = np.exp([mean - Z90 * sd, mean, mean + Z90 * sd])
        return Prediction(float(low), float(mid), float(high))

    def sd(self, cell: Allocation) -> float:
        """Returns the deviation of the true log T of a cell about what is likely."""
        return float(self.log_sd[self._shape.index[cell]])

    def bounds(self, cell: Allocation) -> tuple[float, float]:
        """Bounds the seconds of an epoch in a cell by shape and slack alone."""
        k = self._shape.index[cell]
        lower, upper = self.log_bounds
        return float(np.exp(lower[k])), float(np.exp(upper[k]))

    def least(self, cell: Allocation) -> float:
        """Bounds the seconds of an epoch in a cell from below."""
        return float(np.exp(self.log_bounds[0][self._shape.index[cell]]))

    @cached_property
    def log_bounds(self) -> tuple[Floats, Floats]:
        """Lower and upper log T, both of shape (cells,), in the order of the space."""
        places = self._measured.places
        apart = np.arange(len(self._shape.least)) != places[:, None]
        slack = self.slack * apart
        most = -self._shape.least[:, places].T
        return bounds(*self._intervals, self._shape.least[places] - slack, most + slack)

    @cached_property
    def log_mean(self) -> Floats:
        """Likely log T, shape (cells,), in the order of the space; within the bounds."""
        return np.clip(self._likely, *self.log_bounds)

    @cached_property
    def log_sd(self) -> Floats:
        """Deviation of the true log T about `log_mean`, shape (cells,).

        While nothing is measured it is that of ratios, to a job's time at a fixed scale.
        """
        sd = self._shape.prior_sd if self._fitted is None else self._fitted.sd
        # Where the bounds move the mean, shape and law disagree: the second moment says so.
        return np.hypot(sd, self.log_mean - self._likely)

    @property
    def _likely(self) -> Floats:
        return self._shape.prior_mean if self._fitted is None else self._fitted.mean

    @cached_property
    def _fitted(self) -> Fitted | None:
        return None if self.is_empty else fit(self._shape.grid, self._measured)

    @cached_property
    def _places(self) -> frozenset[int]:
        return frozenset(self._measured.places.tolist())

    @cached_property
    def _intervals(self) -> tuple[Floats, Floats]:
        """Ends of the measured intervals; the noise within cells alone, as no law may enter."""
        known = self._measured
        squares = PRIOR_SAMPLES * NOISE_SD**2 + known.squares
        noise = np.sqrt(squares / (PRIOR_SAMPLES + known.freedom))
        half = np.maximum(LEAST_HALF_WIDTH, 2 * noise / np.sqrt(known.counts))
        return known.values - half, known.values + half


@lru_cache(maxsize=64)
def fitted_time(
    space: Space, samples: tuple[tuple[Allocation, tuple[float, ...]], ...]
) -> TimeSurrogate:
    """Returns the model of samples by cell, the same one for the same samples."""
    return TimeSurrogate(space, dict(samples))


@dataclass(frozen=True)
class _Shape:
    """Is what a space alone says: computed once for it.

    Attributes:
        index: Place of every cell.
        least: Least log T(v) - log T(u), shape (u, v), over the cells; the greatest is -least.T.
        grid: The cells as the fit reads them.
        prior_mean: Log T of an unknown job up to a scale, shape (cells,).
        prior_sd: Its deviation, likewise.
    """

    index: Mapping[Allocation, int]
    least: Floats
    grid: Grid
    prior_mean: Floats
    prior_sd: Floats


@lru_cache(maxsize=16)
def _shape(space: Space) -> _Shape:
    grid = Grid.of(space.cells)
    index = {cell: k for k, cell in enumerate(space.cells)}
    return _Shape(index, _least(space.cells), grid, *grid.prior())


def _least(cells: Sequence[Allocation]) -> Floats:
    n = np.log([cell.workers for cell in cells])
    b = np.log([cell.batch_size for cell in cells])
    nodes = np.array([cell.nodes for cell in cells])
    up_n = np.maximum(n[None, :] - n[:, None], 0)
    up_b = np.maximum(b[None, :] - b[:, None], 0)
    fewer_nodes = nodes[None, :] < nodes[:, None]
    least: Floats = -up_b - up_n - np.where(fewer_nodes, np.log(NODE_FACTOR), 0.0)
    return least


def _measured(
    shape: _Shape, cells: Sequence[Allocation], samples: Sequence[tuple[float, ...]]
) -> Measured:
    """Sums the samples up: medians, and deviations that a few stragglers do not govern."""
    sums = [_summed(seconds) for seconds in samples]
    off = np.concatenate([off for _, off in sums if len(off) > 1] or [np.zeros(1)])
    most = 3 * Z_MAD * np.median(np.abs(off))
    sizes = np.array([len(seconds) for seconds in samples], dtype=np.float64)
    return Measured(
        places=np.array([shape.index[cell] for cell in cells], dtype=np.int64),
        values=np.array([value for value, _ in sums]),
        # A median of many is worth 2 / pi of their mean.
        counts=np.where(sizes > 2, sizes * 2 / np.pi, sizes),  # noqa: PLR2004 - it is the mean of two
        squares=float((np.minimum(np.abs(off), most) ** 2).sum()),
        freedom=sum(len(seconds) - 1 for seconds in samples),
    )


@lru_cache(maxsize=4096)
def _summed(seconds: tuple[float, ...]) -> tuple[float, Floats]:
    """Returns the median of a cell's log seconds and the deviations from it."""
    logs = np.log(np.asarray(seconds, dtype=np.float64))
    value = float(np.median(logs))
    return value, logs - value
