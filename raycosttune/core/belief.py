"""What is likely of the epochs to the target: E(b) of one recipe, by every clue there is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtri, softmax

from raycosttune.core.array import Floats
from raycosttune.core.evidence import RUN_SD, evidence, run_evidence
from raycosttune.core.gaussian import below
from raycosttune.core.law import TYPICAL_EPOCHS, UNKNOWN_SD, Law
from raycosttune.core.runs import Runs

ByBatch = Mapping[int, Runs]

RECIPE_SD = 0.4
DEADLINE_OVER_FASTEST, DEADLINE_SD = 3.0, 0.9
TOO_TIGHT_SD = 0.05
STAGES = 24
FINE_STEP = 0.02
FINE = np.arange(-5.0, 12.0, FINE_STEP)  # log epochs
SHARED = 0.5  # of the variance beside the law, the batch's part
OFF = np.arange(-25, 26) * FINE_STEP  # log epochs beside the law
KERNEL = np.exp(-0.5 * (OFF / RUN_SD) ** 2)
BATCH_SD, OWN_SD = RUN_SD * math.sqrt(SHARED), RUN_SD * math.sqrt(1 - SHARED)
OWN_KERNEL = np.exp(-0.5 * (OFF / OWN_SD) ** 2)
FAR = 5 * RUN_SD  # in log below the longest run in vain another one says no more
LEAST_ALIVE = 1e-6
LEAST_WEIGHT = 1e-9
LEAST_CHANCE = 1e-300  # quantiles of less overflow
MOST_LOG = 600.0  # whose exponential is finite


@dataclass(frozen=True)
class Clues:
    """Is what a belief rests on beside the runs.

    Attributes:
        deadline_seconds: Limit of a run, None where there is none. Who sets a deadline can
            meet it, and rarely has ten times as long as needed.
        fastest: Least seconds of an epoch by batch, shape (b,).
        startup_seconds: Least start-up.
        period: Epochs between evaluations: no run reaches the target before one.
        typical_epochs: What a job is expected to need before any recipe has reached the target.
    """

    deadline_seconds: float | None
    fastest: Floats
    startup_seconds: float
    period: float
    typical_epochs: float = TYPICAL_EPOCHS


class Belief:
    """Weighs the laws of a recipe.

    Args:
        grid: The laws.
        recipe: Key of the recipe, None for one not tried.
        runs: What the runs of each recipe say, by its key and by batch.
        clues: What else is known.
    """

    def __init__(
        self, grid: Law, recipe: str | None, runs: Mapping[str, ByBatch], clues: Clues
    ) -> None:
        self.law = grid
        self.period = clues.period
        self._curves: dict[int, Floats] = {}
        of_law = {
            key: {batch: some for batch, some in by_batch.items() if batch in grid.batches}
            for key, by_batch in runs.items()
        }
        self._own = {} if recipe is None else of_law.pop(recipe, {})
        log_weight = grid.log_prior[:, None] + self._prior([*of_law.values()], clues.typical_epochs)
        log_weight = log_weight + self._deadline(clues) + evidence(grid, self._own.values())
        self.weights = np.asarray(softmax(log_weight), dtype=np.float64)

    @property
    def log_epochs(self) -> Floats:
        """Log E by law, offset and batch."""
        return self.law.log_epochs

    @cached_property
    def epochs(self) -> Floats:
        """Epochs of the evaluation that reaches the target, by law, offset and batch."""
        evaluations = np.ceil(np.exp(self.log_epochs) / self.period - 1e-6)
        return np.asarray(np.maximum(evaluations, 1.0) * self.period, dtype=np.float64)

    def stages(self, batch_size: int, after: float) -> Floats:
        """Returns epochs that the run reaches with equal chance, given those without success.

        Args:
            batch_size: One of the law's batches.
            after: Epochs that did not reach the target.

        Returns:
            Shape (STAGES,), rising, at evaluations after `after`.
        """
        quantiles = self.needs(batch_size, after)
        steps = np.ceil((quantiles - after) / self.period - 1e-6)
        return np.asarray(after + np.maximum(steps, 1.0) * self.period, dtype=np.float64)

    def needs(self, batch_size: int, after: float) -> Floats:
        """Returns epochs as `stages` does, between evaluations too."""
        return self._quantiles(batch_size, after, is_cut=True)

    def afresh(self, batch_size: int, after: float) -> Floats:
        """Returns the stages of a run as if it had not begun; laws that it ruled out stay out.

        Args:
            batch_size: One of the law's batches.
            after: Epochs that it made without success, which are not held against it here.

        Returns:
            Shape (STAGES,), rising, at evaluations.
        """
        quantiles = self._quantiles(batch_size, after, is_cut=False)
        steps = np.ceil(quantiles / self.period - 1e-6)
        return np.asarray(np.maximum(steps, 1.0) * self.period, dtype=np.float64)

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
        return below((logs[None] - beyond) / RUN_SD)

    def expected(self, costs: Floats) -> Floats:
        """Averages over the laws what has shape (s, o, ...)."""
        return np.asarray(np.tensordot(self.weights, costs, axes=2), dtype=np.float64)

    def _at(self, batch_size: int) -> int:
        return self.law.batches.index(batch_size)

    def _quantiles(self, batch_size: int, after: float, *, is_cut: bool) -> Floats:
        """Epochs at equal chances, those up to `after` cut off or not held against the run."""
        levels = (np.arange(STAGES) + 0.5) / STAGES
        own = self._own.get(batch_size)
        if own is not None and own.seen.reached:
            middle, width = own.seen.middle
            sd = math.hypot(RUN_SD * math.sqrt(0.5 + 0.5 / own.seen.reached), width)
            found = np.exp(middle + sd * ndtri(levels))
            return np.asarray(np.maximum(found, after if is_cut else 0.0), dtype=np.float64)
        logs = self.log_epochs[:, :, self._at(batch_size)].ravel()
        weights = self.weights.ravel()
        if after > 0:
            # That the run went on is in the weights already; here the laws are cut off instead.
            alive = self.survival(batch_size, np.array([after])).ravel()
            weights = weights / np.maximum(alive, LEAST_ALIVE)
        place = np.clip(np.rint((logs - FINE[0]) / FINE_STEP), 0, len(FINE) - 1).astype(np.int64)
        curve = None
        if is_cut and own is not None and own.seen.low <= after and len(own.gaps) > 1:
            # Of a run's own epochs its curve says more than of a law, which it is off somewhat.
            curve = self._curve(own)
            weights = weights / np.maximum(curve[place], LEAST_CHANCE)
        laws = np.asarray(np.bincount(place, weights, len(FINE)), np.float64)
        if after <= 0 and own is not None and own.seen.low > 0:
            density = _another(laws, own.seen.vain)
        else:
            density = np.convolve(laws, KERNEL, mode="same")
        if curve is not None:
            density *= curve
        if is_cut and after > 0:
            density[math.log(after) >= FINE] = 0.0
        total = np.cumsum(density)
        if total[-1] < LEAST_CHANCE:  # no law explains so many epochs
            return np.full(STAGES, max(after, 0.0 if own is None else own.seen.low))
        return np.asarray(np.exp(np.interp(levels * total[-1], total, FINE)), dtype=np.float64)

    def _curve(self, own: Runs) -> Floats:
        """Relative likelihood, over `FINE`, of what the longest run in vain at a batch needs."""
        batch = own.seen.batch_size
        if batch not in self._curves:
            told = run_evidence(own, self._own.values(), FINE)
            self._curves[batch] = np.exp(told - told.max())
        return self._curves[batch]

    def _prior(self, others: Sequence[ByBatch], typical_epochs: float) -> Floats:
        """Log weights of the offsets from what other recipes showed, shape (s, o)."""
        offsets = self.law.offsets[None, :]
        middle, sd = math.log(typical_epochs), UNKNOWN_SD
        told = [_told(self.law, *runs.values()) for runs in others]
        shapes = np.zeros((len(self.law.log_scale), 1))
        for each in told:
            shapes = shapes + each.top + each.spread
        found = [each.offset for each in told if each.offset is not None]
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


class _Told(NamedTuple):
    """Is what the runs of one recipe say of every law but its offset.

    Attributes:
        top: Log likelihood at the likeliest offset, shape (s, 1).
        spread: Log of the mean likelihood over it, shape (s, 1).
        offset: The mean offset where a run reached the target, shape (s,), else None.
    """

    top: Floats
    spread: Floats
    offset: Floats | None


@lru_cache(maxsize=2**14)  # a new run changes what one recipe says; a large sweep has thousands
def _told(grid: Law, *runs: Runs) -> _Told:
    weights = evidence(grid, runs)
    top = weights.max(axis=1, keepdims=True)
    spread = np.exp(weights - top)
    log_mean = np.log(spread.mean(axis=1, keepdims=True))
    if not any(some.seen.reached for some in runs):
        return _Told(top, log_mean, None)
    offset = (spread * grid.offsets[None, :]).sum(axis=1) / spread.sum(axis=1)
    return _Told(top, log_mean, offset)


def _another(laws: Floats, vain: Mapping[float, int]) -> Floats:
    """Weighs the log epochs of a run at a batch where others were not done by some epochs.

    Half of the variance beside the law is the batch's own: what held the others up in part holds
    up this one. The more of them there are, the surer it is that it does.

    Args:
        laws: Weights of the laws' log epochs over `FINE`, the other runs held against them.
        vain: How many of these made so many epochs in vain.

    Returns:
        Over `FINE`.
    """
    at = np.flatnonzero(laws > laws.max() * LEAST_WEIGHT)
    weights = np.log(laws[at])[:, None] - 0.5 * (OFF / BATCH_SD) ** 2
    least = max(vain) * math.exp(-FAR)
    for epochs, count in vain.items():
        if epochs > least:
            done = math.log(epochs)
            likely = below((FINE[at, None] + OFF - done) / OWN_SD)
            alone = below((FINE[at, None] - done) / RUN_SD)  # what the laws count of it
            with np.errstate(divide="ignore"):  # 0 where no run would have been so long
                gain = np.log(likely) - np.log(np.maximum(alone, LEAST_ALIVE))
            weights = weights + count * gain
    mass = np.exp(np.minimum(weights, MOST_LOG))
    place = np.clip(at[:, None] + np.arange(len(OFF)) - len(OFF) // 2, 0, len(FINE) - 1)
    of_batch = np.bincount(place.ravel(), mass.ravel(), len(FINE))
    return np.asarray(np.convolve(of_batch, OWN_KERNEL, mode="same"))
