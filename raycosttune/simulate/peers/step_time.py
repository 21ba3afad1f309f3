"""Pollux' model of step time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from raycosttune.core.array import Floats
from raycosttune.core.space import Allocation

UNSEEN = 1e-8
MOST_GAMMA = 10.0
STARTS = (1.2, 3.0)


@dataclass(frozen=True)
class StepTime:
    """Predicts step times from seven parameters.

    A worker computes for `step` + `sample` x local batch; workers exchange for
    `near` + `near_more` x (n - 2) on one node and `far` + `far_more` x (n - 2) on several.
    `gamma` says how far both overlap: 1 not at all, 10 nearly as far as can be.

    References:
        Qiao et al. 2021, Pollux, section 3.2.
    """

    step: float
    sample: float
    near: float
    near_more: float
    far: float
    far_more: float
    gamma: float

    def seconds(self, cells: Sequence[Allocation]) -> Floats:
        """Returns the step time of each cell, shape (cells,)."""
        workers = np.array([cell.workers for cell in cells], dtype=np.float64)
        nodes = np.array([cell.nodes for cell in cells])
        local = np.array([cell.local_batch for cell in cells], dtype=np.float64)
        compute = self.step + self.sample * local
        more = np.maximum(workers - 2, 0)
        near, far = self.near + self.near_more * more, self.far + self.far_more * more
        exchange = np.where(nodes > 1, far, near)
        both = np.logaddexp(self.gamma * np.log(compute), self.gamma * np.log(exchange))
        return np.where(workers == 1, compute, np.exp(both / self.gamma))


def fit_step_time(cells: Sequence[Allocation], seconds: Sequence[float]) -> StepTime:
    """Fits all seven parameters by least squares on log times.

    Terms that no cell shows stay next to nothing, so that what was not tried looks good.

    Args:
        cells: Where it was measured, at least one.
        seconds: Step times there, in any unit.
    """
    unit = float(np.median(seconds))
    target = np.log(np.array(seconds) / unit)
    low = np.array([np.log(UNSEEN)] * 6 + [1.0])
    high = np.array([np.log(1e3)] * 6 + [MOST_GAMMA])
    local = float(np.median([cell.local_batch for cell in cells]))
    scale = [0.2, 0.8 / local] + [0.1 if is_shown else UNSEEN for is_shown in _shown(cells)]
    fits = [
        least_squares(
            lambda free: np.log(_model(free).seconds(cells)) - target,
            np.clip([*np.log(scale), gamma], low, high),
            bounds=(low, high),
            x_scale="jac",
        )
        for gamma in STARTS
    ]
    best = min(fits, key=lambda fit: float(fit.cost))
    return _model(best.x, unit)


def _model(free: Floats, unit: float = 1.0) -> StepTime:
    """Returns the model of six log terms and gamma."""
    return StepTime(*[float(term) for term in (*np.exp(free[:6]) * unit, free[6])])


def _shown(cells: Sequence[Allocation]) -> tuple[bool, bool, bool, bool]:
    """Tells which exchange terms have a cell that shows them."""
    near = [cell.workers for cell in cells if cell.workers > 1 and cell.nodes == 1]
    far = [cell.workers for cell in cells if cell.workers > 1 and cell.nodes > 1]
    return bool(near), max(near, default=0) > 2, bool(far), max(far, default=0) > 2  # noqa: PLR2004 - terms that grow beyond two workers
