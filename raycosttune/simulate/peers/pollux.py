"""Choosing by Pollux' models of step time and of statistical efficiency."""

import math
from collections.abc import Callable

from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate.peer import PeerTrial
from raycosttune.simulate.peers.profiling import PredictingPeer, coarse_grid, middle, profiles_of
from raycosttune.simulate.peers.step_time import fit_step_time

NoiseScale = Callable[[int, float], float]


class PolluxModel(PredictingPeer):
    """Runs the cheapest cell by throughput and efficiency, once both are known.

    Pollux has neither a target nor a deadline nor a price; its models are used for ours.
    Seven parameters of step time are fitted to profiles on a coarse grid. Epochs at a batch b
    are those of a run at b0 times (phi + b) / (phi + b0), averaged over that run, phi being
    the gradient noise scale. The first runs are at the middle batch, until one reaches the
    target; then the cheapest predicted cell is run, and the next where it fails.

    Given, beside what PredictingPeer lists: the nodes of a cell, and phi at every evaluation
    of its own runs, so that efficiency is averaged over a run rather than taken at its end. A
    run that fails raises the epochs.

    Args:
        space: The cells.
        goal: Target and limits.
        cost: The cost metric.
        seed: Has no effect.
        noise_scale: Gives phi in samples for a batch and an epoch of its run, NaN where it is
            unknown; without one, and there, epochs are held to be the same at every batch.

    References:
        Qiao et al. 2021, Pollux, sections 3.1 and 3.2.
    """

    def __init__(
        self,
        space: Space,
        goal: Goal,
        cost: CostMetric,
        seed: int,
        *,
        noise_scale: NoiseScale | None = None,
    ) -> None:
        profiles = profiles_of(coarse_grid(space), "the step-time model")
        super().__init__(space, goal, cost, seed, profiles)
        self._noise_scale = noise_scale or (lambda _batch, _epoch: math.nan)
        batch = middle(cell.batch_size for cell in space.cells)
        self._centre = [cell for cell in space.cells if cell.batch_size == batch]
        self._epoch_seconds: dict[Allocation, float] = {}
        self._epochs: dict[int, float] = {}

    def propose(self) -> Allocation | None:
        """See PredictingPeer."""
        self._fit_times()
        self._fit_epochs()
        first = None if self.reached else self.learn(self._centre, self._seconds)
        return first or self.verify(self.space.cells, self._seconds)

    def _seconds(self, cell: Allocation) -> float:
        return self.run_seconds(cell, self._epoch_seconds[cell], self._epochs[cell.batch_size])

    def _fit_times(self) -> None:
        # An epoch's time x batch is the step's time x the data set's size, which only scales.
        seen = list(self.times)
        model = fit_step_time(seen, [self.times[cell] * cell.batch_size for cell in seen])
        cells = self.space.cells
        self._epoch_seconds = {
            cell: float(seconds) / cell.batch_size
            for cell, seconds in zip(cells, model.seconds(cells), strict=True)
        }

    def _fit_epochs(self) -> None:
        """Predicts epochs at every batch from the latest run that reached the target."""
        batches = {cell.batch_size for cell in self.space.cells}
        if not self.trials:
            self._epochs = dict.fromkeys(batches, self.guessed_epochs)
            return
        base = (self.reached or self.trials)[-1]
        ratios = {batch: self._ratio(base, batch) for batch in batches}
        scale = base.epochs if self.reached else self.guessed_epochs
        later = self.trials[self.trials.index(base) + 1 :]
        for trial in later:
            scale = max(scale, trial.epochs / ratios[trial.allocation.batch_size])
        self._epochs = {batch: scale * ratio for batch, ratio in ratios.items()}

    def _ratio(self, base: PeerTrial, batch: int) -> float:
        """Returns the epochs at a batch over those of a run, averaged over its epochs."""
        own, before, total = base.allocation.batch_size, 0.0, 0.0
        for report in base.reports:
            phi = self._noise_scale(own, report.epoch)
            ratio = (phi + batch) / (phi + own) if math.isfinite(phi) else 1.0
            total += ratio * (report.epoch - before)
            before = report.epoch
        return total / before if before else 1.0
