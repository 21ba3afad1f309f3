"""What a few measured cells say of log T everywhere: the law, and where it is off."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dsytrd, dtrtri

from raycosttune.core.array import Floats, Ints
from raycosttune.core.space import Allocation
from raycosttune.core.step_model import PRIOR_MEAN, PRIOR_SD, Law, StepModel
from raycosttune.core.type_law import SHARED_MISFIT, along, law_of, pulled, tied_covariance

STEPS, WHOLE_STEPS = 5, 2
MOST_SDS = 4.0
# Deviations that a level may have, and the logs' mean and deviation before anything is seen.
NOISES, NOISE_SD, NOISE_LOG_SD = np.geomspace(0.005, 0.3, 12), 0.05, 0.7
MISFITS, MISFIT_SD, MISFIT_LOG_SD = np.geomspace(0.02, 0.4, 6), 0.07, 0.8
RUN_SD = 0.01  # what no number of epochs averages out: another run, another machine
SYNC_SD = 0.4  # placement and topology move an exchange by so much off its law
REACH = np.log(2)  # grids come in doublings: a neighbour shares 1/e of a misfit
OUTLYING = 2.0
LEVEL_CELLS = 64
ONE_TYPE = np.zeros(1)


@dataclass(frozen=True)
class Measured:
    """Holds what was measured.

    Attributes:
        places: Places of the measured cells, shape (m,), m at least 1.
        values: Their log seconds, shape (m,).
        counts: How many samples each is worth, shape (m,).
        squares: Squared deviations of samples within their cells, summed.
        freedom: How many deviations these are worth.
    """

    places: Ints
    values: Floats
    counts: Floats
    squares: float
    freedom: int


@dataclass(frozen=True)
class Fitted:
    """Is log T as it is known.

    Attributes:
        mean: Shape (cells,).
        sd: Deviation of the true log T, shape (cells,).
        noise: Deviation of the log of one sample.
    """

    mean: Floats
    sd: Floats
    noise: float


@dataclass(frozen=True)
class Grid:
    """Is what cells alone say.

    Attributes:
        model: The law over the cells.
        near: How much of a misfit two cells share, shape (cells, cells).
        near_workers: The same of their worker counts alone.
        types: Places of the cells' types of machine, shape (cells,).
        alike: 1 for two cells of one type, else 0, shape (cells, cells); None for one type.
    """

    model: StepModel
    near: Floats
    near_workers: Floats
    types: Ints
    alike: Floats | None

    @classmethod
    def of(cls, cells: Sequence[Allocation], types: Ints | None = None) -> "Grid":
        """Returns what some cells say, and the places of their types, by default but one."""
        types = np.zeros(len(cells), dtype=np.int64) if types is None else types
        workers = np.log([cell.workers for cell in cells])
        batches = np.log([cell.batch_size for cell in cells])
        near_workers = np.exp(-np.abs(workers[:, None] - workers) / REACH)
        alike = None
        if len(np.unique(types)) > 1:
            alike = np.where(types[:, None] == types, 1.0, 0.0)
            near_workers *= np.where(alike > 0, 1.0, SHARED_MISFIT)
        near = near_workers * np.exp(-np.abs(batches[:, None] - batches) / REACH)
        return cls(StepModel.of(cells), near, near_workers, types, alike)

    def at(self, places: Ints) -> "Grid":
        """Returns what some of the cells say."""
        among = np.ix_(places, places)
        alike = None if self.alike is None else self.alike[among]
        near = self.near[among], self.near_workers[among]
        return Grid(self.model.at(places), *near, self.types[places], alike)

    def prior(self) -> tuple[Floats, Floats]:
        """Returns mean and deviation of log T, both of shape (cells,), up to a common scale.

        Types of machine differ by what `fit` is told of their paces.
        """
        law = self.model.law(PRIOR_MEAN)
        shape = law.slopes[:, 1:] * PRIOR_SD[1:]
        variance = (shape**2).sum(axis=1) + (SYNC_SD * law.sync) ** 2 + MISFIT_SD**2
        return law.values, np.sqrt(variance)


def fit(grid: Grid, measured: Measured, paces: Floats = ONE_TYPE) -> Fitted:
    """Fits the law, the misfit and the levels of noise and misfit.

    The prior of log T is the law, its numbers Gaussian, plus a Gaussian process for what
    the law misses and one for what it misses of the exchange, which depends on the
    workers alone. Gauss-Newton steps find the most probable numbers; around them log T is
    Gaussian. Both levels are averaged over a grid, weighted by prior and evidence, and a
    cell that the others contradict by more than two deviations counts less. Each type of
    machine has numbers of its own, whose priors are tied: a type's few cells and those of the
    others say together what it is like.

    Args:
        grid: The cells.
        measured: What was measured.
        paces: Log seconds of each type as they are guessed, up to a common scale, shape (types,).

    References:
        Rasmussen & Williams 2006, sections 2.7 (a mean with Gaussian coefficients) and 5.4
        (evidence).
    """
    places = measured.places
    every, some = slice(None), slice(None, None, -(-len(places) // LEVEL_CELLS))
    all_cells, few_cells = grid.at(places), grid.at(places[some])
    start = np.tile(PRIOR_MEAN, (len(paces), 1))
    start[:, 0] += paces
    start[:, 0] += np.median(
        measured.values - law_of(all_cells.model, all_cells.types, start).values
    )
    free, doubts = start, 1 / measured.counts
    for step in range(STEPS):
        # Of many cells a part tells where the law lies; then all of them settle it.
        is_part = step < STEPS - WHOLE_STEPS
        of, part = (some, few_cells) if is_part else (every, all_cells)
        at, law, doubt = free, law_of(part.model, part.types, free), doubts[of]
        residual = measured.values[of] - law.values
        residual += along(law, part.types, at - start)
        diagonal = np.diag_indices(len(doubt))
        joint = _law_covariance(law, law, part.near_workers, part.alike)
        joint[diagonal] += RUN_SD**2
        misfit, noise = _levels(joint, part.near, residual, doubt, measured)
        joint += misfit * part.near
        joint[diagonal] += noise * doubt
        white = _whitening(joint)
        pull = white.T @ (white @ residual)
        free = start + pulled(law, part.types, pull, len(paces))
        free = at + np.clip(free - at, -PRIOR_SD, PRIOR_SD)
        free = start + np.clip(free - start, -MOST_SDS * PRIOR_SD, MOST_SDS * PRIOR_SD)
        off = np.abs(pull) / np.sqrt((white**2).sum(axis=0))  # from what the others predict
        least = 1 / measured.counts[of]
        doubts[of] = np.maximum(doubt * np.maximum(off / OUTLYING, 0.5) ** 2, least)
    whole = law_of(grid.model, grid.types, at)
    alike = None if grid.alike is None else grid.alike[:, places]
    cross = _law_covariance(whole, law, grid.near_workers[:, places], alike)
    cross += misfit * grid.near[:, places]
    mean = whole.values + along(whole, grid.types, start - at) + cross @ pull
    own = ((whole.slopes * PRIOR_SD) ** 2).sum(axis=1) + (SYNC_SD * whole.sync) ** 2 + misfit
    told = ((white @ cross.T) ** 2).sum(axis=0)
    return Fitted(mean, np.sqrt(np.maximum(own - told, RUN_SD**2)), float(np.sqrt(noise)))


def _law_covariance(one: Law, other: Law, near_workers: Floats, alike: Floats | None) -> Floats:
    """Returns the covariance of two sets of cells by the law, its exchange off by workers."""
    exchange = (SYNC_SD**2 * one.sync)[:, None] * other.sync
    exchange *= near_workers
    exchange += tied_covariance(one, other, alike)
    return np.asarray(exchange, dtype=np.float64)


def _whitening(covariance: Floats) -> Floats:
    """Returns the inverse of a covariance's Cholesky root."""
    root, _ = dpotrf(covariance, lower=True)
    inverse, _ = dtrtri(root, lower=True)
    return np.asarray(inverse, dtype=np.float64)


def _levels(
    smooth: Floats, near: Floats, residual: Floats, doubt: Floats, measured: Measured
) -> tuple[float, float]:
    """Returns the variances of misfit and noise, averaged over their grid by the evidence."""
    some = slice(None, None, -(-len(residual) // LEVEL_CELLS))
    root = np.sqrt(doubt[some])
    covariance = smooth[some, some] + (MISFITS**2)[:, None, None] * near[some, some]
    # In units of the noise it is a multiple of one.
    evidence = _evidence(covariance / root[:, None] / root, residual[some] / root)
    within = -measured.freedom * np.log(NOISES) - measured.squares / NOISES**2 / 2
    prior_noise = -0.5 * (np.log(NOISES / NOISE_SD) / NOISE_LOG_SD) ** 2
    prior_misfit = -0.5 * (np.log(MISFITS / MISFIT_SD) / MISFIT_LOG_SD) ** 2
    log_weights = evidence + within + prior_noise + prior_misfit[:, None]
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    return float(weights.sum(axis=1) @ MISFITS**2), float(weights.sum(axis=0) @ NOISES**2)


def _evidence(covariances: Floats, residual: Floats) -> Floats:
    """Returns the log likelihood of a residual for each covariance and each of `NOISES`.

    A covariance is turned so that it is tridiagonal and the residual lies along its first axis.
    Then one sweep from the last axis to the first serves all levels of noise.

    Args:
        covariances: Shape (c, m, m).
        residual: Shape (m,).

    Returns:
        Shape (c, noises), up to a common constant.

    References:
        Golub & Meurant 2010, chapter 3 (quadratic forms by tridiagonal matrices).
    """
    bordered = np.zeros((len(residual) + 1, len(residual) + 1), order="F")
    bordered[1:, 0] = residual
    main, beside = [], []
    for covariance in covariances:
        bordered[1:, 1:] = covariance
        _, diagonal, off, _, _ = dsytrd(bordered, lower=True)
        main.append(diagonal[1:])
        beside.append(off[1:])
    variances = np.stack(main, axis=1)[:, :, None] + NOISES**2
    squares = np.stack(beside, axis=1)[:, :, None] ** 2
    for k in range(len(residual) - 2, -1, -1):
        variances[k] -= squares[k] / variances[k + 1]
    log_likelihood = -0.5 * (residual @ residual / variances[0] + np.log(variances).sum(axis=0))
    return np.asarray(log_likelihood, dtype=np.float64)
