"""Seconds of an epoch over workers and batches: T(n, b)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.cells import cells_of
from raycosttune.core.duplicate import duplicate
from raycosttune.core.latest import Latest
from raycosttune.core.prediction import Prediction
from raycosttune.core.readings import Readings
from raycosttune.core.space import Allocation, Space
from raycosttune.core.step_fit import NOISE_SD, Fitted, Grid, Measured, fit
from raycosttune.core.step_model import Bools

DEFAULT_SLACK = 0.10
NODE_FACTOR = 3.0
PRIOR_SAMPLES = 4  # what the prior of the noise counts in the bounds
LEAST_HALF_WIDTH = 0.02
Z90 = 1.6448536269514722  # 90 % of a Gaussian lie within so many deviations
FEW, MEDIAN_WORTH = 2, 2 / math.pi  # the median of more is worth so much of their mean
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

    No shape is assumed across types of machine: bounds hold within each. Their laws are tied.

    Args:
        space: The legal cells.
        samples: Seconds of single epochs by the place of their cell in the space, none empty.
        paces: Log seconds of each type of machine as they are guessed before it is timed, up
            to a common scale; all alike by default.

    References:
        Liang et al. 2022 (T monotone in resources and batch); Qiao et al. 2021, Pollux
        (step time).
    """

    def __init__(
        self, space: Space, samples: Mapping[int, Readings], paces: tuple[float, ...] = ()
    ) -> None:
        self._shape = _shape(space)
        self._paces = np.array(paces or [0.0] * len(space.types), dtype=np.float64)
        self._samples = samples
        self._measured = measured_of(samples)

    @classmethod
    def of(cls, space: Space, seconds: Mapping[Allocation, Sequence[float]]) -> "TimeSurrogate":
        """Models seconds of single epochs by cell; what lies outside the space is left out."""
        index = cells_of(space).index
        return cls(space, {index[c]: Readings(s) for c, s in seconds.items() if c in index})

    @cached_property
    def slack(self) -> float:
        """Log slack of the bounds: under less, measured cells would contradict each other."""
        broken = self._reach[self._measured.places] - self._intervals[1]
        return max(DEFAULT_SLACK, float(broken.max(initial=0.0)))

    @property
    def broken(self) -> list[tuple[int, int, float]]:
        """Measured cells that are faster than others let them be without slack.

        Each as its place, that of the other cell, and by how much, in log.
        """
        if not self._samples:
            return []
        (low, high), at = self._intervals, self._measured.places
        reach = low[:, None] + self._shape.least[np.ix_(at, at)]
        apart, by = reach.max(axis=0) - high, reach.argmax(axis=0)
        return [(int(at[k]), int(at[by[k]]), float(apart[k])) for k in np.flatnonzero(apart > 0)]

    def within(self, least: Floats, most: Floats) -> "TimeSurrogate":
        """Returns the same fit within other bounds of log T, both of shape (cells,)."""
        other = duplicate(self)
        other.log_least, other.log_most = least, most
        for derived in ("log_mean", "log_sd"):
            vars(other).pop(derived, None)
        return other

    def narrowed(self, place: int, seen: Readings) -> tuple[float, float]:
        """Bounds log T of a cell, given by its place, by samples of its own, too.

        The lower bound lies beyond the upper one where the samples contradict the others.
        """
        half, middle = self._half_width(len(seen)), seen.log_median
        low, high = float(self.log_least[place]), float(self.log_most[place])
        return max(low, middle - half), min(high, middle + half)

    def _half_width(self, samples: int) -> float:
        counts = samples * MEDIAN_WORTH if samples > FEW else samples
        return max(LEAST_HALF_WIDTH, 2 * self._spread / math.sqrt(counts))

    @cached_property
    def is_empty(self) -> bool:
        """Whether nothing was measured, so that only ratios of predictions mean anything."""
        return not self._samples

    @property
    def noise(self) -> float:
        """Deviation of the log of one sample, by the samples and the prior."""
        return NOISE_SD if self._fitted is None else self._fitted.noise

    def is_measured(self, cell: Allocation) -> bool:
        """Tells whether a cell's epochs were timed."""
        return self._shape.index[cell] in self._samples

    @cached_property
    def is_known(self) -> Bools:
        """Whether each cell's epochs were timed, shape (cells,)."""
        known = np.zeros(len(self._shape.least), dtype=np.bool_)
        known[self._measured.places] = True
        return known

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
        return float(np.exp(self.log_least[k])), float(np.exp(self.log_most[k]))

    def least(self, cell: Allocation) -> float:
        """Bounds the seconds of an epoch in a cell from below."""
        return float(np.exp(self.log_least[self._shape.index[cell]]))

    @cached_property
    def _reach(self) -> Floats:
        """Lower log T by the measured cells without slack, shape (cells,)."""
        low, _ = self._intervals
        reach = low[:, None] + self._shape.least[self._measured.places]
        return np.asarray(reach.max(axis=0, initial=-np.inf), dtype=np.float64)

    @cached_property
    def log_least(self) -> Floats:
        """Lower log T, shape (cells,), in the order of the space; a cell's own needs no slack."""
        lower, places = self._reach - self.slack, self._measured.places
        lower[places] = np.maximum(lower[places], self._intervals[0])
        return lower

    @cached_property
    def log_most(self) -> Floats:
        """Upper log T, likewise."""
        _, high = self._intervals
        places = self._measured.places
        upper = (high[:, None] - self._shape.most[places]).min(axis=0, initial=np.inf) + self.slack
        upper[places] = np.minimum(upper[places], high)
        return np.asarray(upper, dtype=np.float64)

    @property
    def log_bounds(self) -> tuple[Floats, Floats]:
        """Lower and upper log T, both of shape (cells,), in the order of the space."""
        return self.log_least, self.log_most

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
        if self._fitted is None:
            return self._shape.prior_mean + self._paces[self._shape.grid.types]
        return self._fitted.mean

    @cached_property
    def _fitted(self) -> Fitted | None:
        return None if self.is_empty else fit(self._shape.grid, self._measured, self._paces)

    @cached_property
    def least_measured(self) -> Floats:
        """Bounds what is likely of the measured cells from below, shape (cells,), else infinite."""
        least = np.full(len(self._shape.least), np.inf)
        least[self._measured.places] = np.exp(self._intervals[0])
        return least

    @cached_property
    def _spread(self) -> float:
        """Deviation of samples within cells, by them and the prior."""
        squares = PRIOR_SAMPLES * NOISE_SD**2 + self._measured.squares
        return math.sqrt(squares / (PRIOR_SAMPLES + self._measured.freedom))

    @cached_property
    def _intervals(self) -> tuple[Floats, Floats]:
        """Ends of the measured intervals; the noise within cells alone, as no law may enter."""
        known = self._measured
        half = np.maximum(LEAST_HALF_WIDTH, 2 * self._spread / np.sqrt(known.counts))
        return known.values - half, known.values + half


fitted_time = Latest(TimeSurrogate)


@dataclass(frozen=True)
class _Shape:
    """Is what a space alone says: computed once for it.

    Attributes:
        index: Place of every cell.
        least: Least log T(v) - log T(u), shape (u, v), over the cells; minus infinity across
            types of machine.
        most: Least log T(u) - log T(v), likewise; the greatest of the above, its sign turned.
        grid: The cells as the fit reads them.
        prior_mean: Log T of an unknown job up to a scale, shape (cells,).
        prior_sd: Its deviation, likewise.
    """

    index: Mapping[Allocation, int]
    least: Floats
    most: Floats
    grid: Grid
    prior_mean: Floats
    prior_sd: Floats


@lru_cache(maxsize=16)
def _shape(space: Space) -> _Shape:
    grid, least = Grid.of(space.cells, cells_of(space).types), _least(space.cells)
    most = np.ascontiguousarray(least.T)
    return _Shape(cells_of(space).index, least, most, grid, *grid.prior())


def _least(cells: Sequence[Allocation]) -> Floats:
    n = np.log([cell.workers for cell in cells])
    b = np.log([cell.batch_size for cell in cells])
    nodes = np.array([cell.nodes for cell in cells])
    types = np.array([cell.node_type for cell in cells])
    up_n = np.maximum(n[None, :] - n[:, None], 0)
    up_b = np.maximum(b[None, :] - b[:, None], 0)
    fewer_nodes = nodes[None, :] < nodes[:, None]
    least: Floats = -up_b - up_n - np.where(fewer_nodes, np.log(NODE_FACTOR), 0.0)
    return np.where(types[:, None] == types, least, -np.inf)


def measured_of(samples: Mapping[int, Readings]) -> Measured:
    """Sums the samples up: medians, and deviations that a few stragglers do not govern."""
    places = sorted(samples)
    kept = [samples[k] for k in places]
    off = np.concatenate([seen.log_off for seen in kept if len(seen) > 1] or [np.zeros(1)])
    most = 3 * Z_MAD * np.median(np.abs(off))
    sizes = np.array([len(seen) for seen in kept], dtype=np.float64)
    return Measured(
        places=np.array(places, dtype=np.int64),
        values=np.array([seen.log_median for seen in kept]),
        counts=np.where(sizes > FEW, sizes * 2 / np.pi, sizes),
        squares=float((np.minimum(np.abs(off), most) ** 2).sum()),
        freedom=int(sizes.sum()) - len(kept),
    )
