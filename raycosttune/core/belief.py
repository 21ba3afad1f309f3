"""What is likely of the epochs to the target: E(b) of one recipe, by every clue there is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, softmax

from raycosttune.core.digest import Digest
from raycosttune.core.isotonic import Floats
from raycosttune.core.learning_curve import curve_evidence, scale_evidence

TYPICAL_EPOCHS = 20.0
UNKNOWN_SD = 1.3
RECIPE_SD = 0.4
RUN_SD = 0.13  # what the same run takes more or less, and a batch beside the law
GRID_SD = 0.1  # half a step of the grid of offsets
DEADLINE_OVER_FASTEST, DEADLINE_SD = 3.0, 0.9
TOO_TIGHT_SD = 0.05
FALLING = ((0.0, 0.7), (0.35, 0.2), (1.0, 0.1))
STAGES = 24
FINE_STEP = 0.02
FINE = np.arange(-5.0, 12.0, FINE_STEP)  # log epochs
KERNEL = np.exp(-0.5 * (np.arange(-25, 26) * FINE_STEP / RUN_SD) ** 2)
LEAST_ALIVE = 1e-6


@dataclass(frozen=True)
class Law:
    """Is a grid of laws E(b) = exp(offset) (1 + b / B + c / b), scaled to 1 at the middle batch.

    Attributes:
        batches: Global batches, rising, shape (b,).
        log_scale: log B, shape (s,).
        shape: log E(b) less the offset, shape (s, b).
        log_prior: Log weights of the shapes, shape (s,): most laws do not fall.
        offsets: log E at the middle batch, shape (o,).

    References:
        McCandlish et al. 2018 (1 + b / B); a falling branch as measured at small batches.
    """

    batches: tuple[int, ...]
    log_scale: Floats
    shape: Floats
    log_prior: Floats
    offsets: Floats

    @cached_property
    def log_epochs(self) -> Floats:
        """Log E of every law, shape (s, o, b)."""
        return np.asarray(self.offsets[None, :, None] + self.shape[:, None, :], dtype=np.float64)


@lru_cache(maxsize=16)
def law(batches: tuple[int, ...]) -> Law:
    """Returns the grid of laws over some batches."""
    b = np.array(batches, dtype=np.float64)
    scales = np.geomspace(b[0] / 8, b[-1] * 8, 14)
    falls = np.array([part * b[0] for part, _ in FALLING])
    scale, fall = (axis.ravel() for axis in np.meshgrid(scales, falls, indexing="ij"))
    middle = math.sqrt(b[0] * b[-1])

    def rise(at: Floats) -> Floats:
        rising = np.log1p(at[None] / scale[:, None] + fall[:, None] / at[None])
        return np.asarray(rising, dtype=np.float64)

    return Law(
        batches=batches,
        log_scale=np.log(scale),
        shape=rise(b) - rise(np.array([middle])),
        log_prior=np.tile(np.log([weight for _, weight in FALLING]), len(scales)),
        offsets=math.log(TYPICAL_EPOCHS) + UNKNOWN_SD * np.linspace(-3.2, 3.2, 41),
    )


@dataclass(frozen=True)
class Clues:
    """Is what a belief rests on beside the runs.

    Attributes:
        deadline_seconds: Limit of a run, None where there is none. Who sets a deadline can
            meet it, and rarely has ten times as long as needed.
        fastest: Least seconds of an epoch by batch, shape (b,).
        startup_seconds: Least start-up.
        period: Epochs between evaluations: no run reaches the target before one.
    """

    deadline_seconds: float | None
    fastest: Floats
    startup_seconds: float
    period: float


class Belief:
    """Weighs the laws of a recipe.

    Args:
        grid: The laws.
        recipe: Key of the recipe, None for one not tried.
        runs: Every run that reported, of any recipe.
        clues: What else is known.
    """

    def __init__(self, grid: Law, recipe: str | None, runs: Sequence[Digest], clues: Clues) -> None:
        self.law = grid
        self.period = clues.period
        self._own = [run for run in runs if run.recipe == recipe]
        others: dict[str, list[Digest]] = {}
        for run in runs:
            if run.recipe != recipe:
                others.setdefault(run.recipe, []).append(run)
        log_weight = grid.log_prior[:, None] + self._prior(list(others.values()))
        log_weight = log_weight + self._deadline(clues) + self._evidence(self._own)
        self.weights = np.asarray(softmax(log_weight), dtype=np.float64)

    @property
    def log_epochs(self) -> Floats:
        """Log E by law, offset and batch."""
        return self.law.log_epochs

    def stages(self, batch_size: int, after: float) -> Floats:
        """Returns epochs that the run reaches with equal chance, given those without success.

        Args:
            batch_size: One of the law's batches.
            after: Epochs that did not reach the target.

        Returns:
            Shape (STAGES,), rising, at evaluations after `after`.
        """
        quantiles = self._quantiles(batch_size, after)
        steps = np.ceil((quantiles - after) / self.period - 1e-6)
        return np.asarray(after + np.maximum(steps, 1.0) * self.period, dtype=np.float64)

    def survival(self, batch_size: int, epochs: Floats) -> Floats:
        """Returns the chance under each law to need more than some epochs.

        Args:
            batch_size: One of the law's batches.
            epochs: Shape (k,).

        Returns:
            Shape (k, s, o).
        """
        logs = self.log_epochs[:, :, self._at(batch_size)]
        beyond = np.log(np.maximum(epochs, 1e-9))[:, None, None]
        return np.asarray(ndtr((logs[None] - beyond) / RUN_SD), dtype=np.float64)

    def expected(self, costs: Floats) -> Floats:
        """Averages over the laws what has shape (s, o, ...)."""
        return np.asarray(np.tensordot(self.weights, costs, axes=2), dtype=np.float64)

    def _at(self, batch_size: int) -> int:
        return self.law.batches.index(batch_size)

    def _quantiles(self, batch_size: int, after: float) -> Floats:
        levels = (np.arange(STAGES) + 0.5) / STAGES
        reached = [
            run.epochs.high
            for run in self._own
            if run.epochs is not None
            and run.epochs.batch_size == batch_size
            and not run.epochs.is_censored
        ]
        if reached:
            sd = RUN_SD * math.sqrt(0.5 + 0.5 / len(reached))
            found = np.exp(np.mean(np.log(reached)) + sd * ndtri(levels))
            return np.asarray(np.maximum(found, after), dtype=np.float64)
        logs = self.log_epochs[:, :, self._at(batch_size)].ravel()
        weights = self.weights.ravel()
        if after > 0:
            # That the run went on is in the weights already; here the laws are cut off instead.
            alive = self.survival(batch_size, np.array([after])).ravel()
            weights = weights / np.maximum(alive, LEAST_ALIVE)
        place = np.clip(np.rint((logs - FINE[0]) / FINE_STEP), 0, len(FINE) - 1)
        density = np.bincount(place.astype(np.int64), weights, minlength=len(FINE))
        density = np.convolve(density, KERNEL, mode="same")
        if after > 0:
            density[math.log(after) >= FINE] = 0.0
        total = np.cumsum(density)
        if total[-1] <= 0:  # no law explains so many epochs
            return np.full(STAGES, after)
        return np.asarray(np.exp(np.interp(levels * total[-1], total, FINE)), dtype=np.float64)

    def _prior(self, others: Sequence[Sequence[Digest]]) -> Floats:
        """Log weights of the offsets from what other recipes showed, shape (s, o)."""
        offsets = self.law.offsets[None, :]
        middle, sd = math.log(TYPICAL_EPOCHS), UNKNOWN_SD
        shapes = np.zeros((len(self.law.log_scale), 1))
        found = []
        for runs in others:
            weights = self._evidence(runs)
            top = weights.max(axis=1, keepdims=True)
            spread = np.exp(weights - top)
            shapes = shapes + top + np.log(spread.mean(axis=1, keepdims=True))
            if any(run.reached is not None for run in runs):
                found.append((spread * offsets).sum(axis=1) / spread.sum(axis=1))
        if not found:
            return shapes - 0.5 * ((offsets - middle) / sd) ** 2
        seen = np.array(found)  # shape (recipes, s)
        among = RECIPE_SD**2 + ((seen - seen.mean(axis=0)) ** 2).sum(axis=0)
        spread_sd = np.sqrt(among / len(seen) * (1 + 1 / len(seen)))
        pull = (offsets - seen.mean(axis=0)[:, None]) / spread_sd[:, None]
        return np.asarray(shapes - 0.5 * pull**2 - np.log(spread_sd)[:, None], dtype=np.float64)

    def _deadline(self, clues: Clues) -> Floats | float:
        if clues.deadline_seconds is None:
            return 0.0
        epochs = np.maximum(np.exp(self.log_epochs), clues.period)
        fastest = (epochs * clues.fastest + clues.startup_seconds).min(axis=2)
        ratio = np.log(clues.deadline_seconds / fastest)
        likely = -0.5 * ((ratio - math.log(DEADLINE_OVER_FASTEST)) / DEADLINE_SD) ** 2
        return np.asarray(likely + log_ndtr((ratio + 0.02) / TOO_TIGHT_SD), dtype=np.float64)

    def _evidence(self, runs: Sequence[Digest]) -> Floats:
        """Log likelihood of the runs of one recipe, shape (s, o)."""
        total = np.zeros((len(self.law.log_scale), len(self.law.offsets)))
        longest: dict[int, Digest] = {}
        for run in runs:
            if run.epochs is None:
                continue
            logs = self.log_epochs[:, :, self._at(run.epochs.batch_size)]
            if run.epochs.is_censored:
                total += log_ndtr((logs - math.log(max(run.epochs.low, 1e-6))) / RUN_SD)
                best = longest.get(run.epochs.batch_size)
                if best is None or best.record.epoch < run.record.epoch:
                    longest[run.epochs.batch_size] = run
            else:
                total += _reached(run.epochs.low, run.epochs.high, logs)
                total += scale_evidence(run.scales, run.epochs.high, logs, self.law.log_scale)
        for batch, run in longest.items():
            logs = self.log_epochs[:, :, self._at(batch)]
            total += curve_evidence(run.gaps, logs)
            total += scale_evidence(run.scales, None, logs, self.law.log_scale)
        return total


def _reached(low: float, high: float, logs: Floats) -> Floats:
    """Log likelihood of a run that reached the target between two evaluations."""
    gap = math.log(high / max(low, high / 2))
    sd = math.sqrt(RUN_SD**2 + gap**2 / 12 + GRID_SD**2)
    return np.asarray(-0.5 * ((math.log(high) - gap / 2 - logs) / sd) ** 2, dtype=np.float64)
