"""What one more sample of an epoch time may save where the epochs to the target are known."""

import math

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.incumbent import CAUTION, LEAST_CAUTION, Incumbent
from raycosttune.core.outlook import Outlook

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def worth_timing(outlook: Outlook, incumbent: Incumbent) -> Floats:
    """Returns by how much a plan's cost is expected to fall with one more sample of each cell.

    A sample moves what a cell is believed to take and makes it surer, so that less is added
    before it counts as in time. It is worth something only as far as the plan may change by it:
    to the cell, or to the next best one where it turns out dearer.

    Args:
        outlook: What runs may cost.
        incumbent: The plan.

    Returns:
        Costs of a run, shape (cells,); NaN at batches that have not reached the target.

    References:
        Frazier, Powell & Dayanik 2008 (the knowledge gradient).
    """
    known, cells, sd = outlook.known, outlook.cells, outlook.sd
    best, time = known.tally.of_class(known.class_of(incumbent.recipe)).best, outlook.time
    mids = {batch: hits.mid for batch, hits in best.items()}
    epochs = np.array([mids.get(cell.batch_size, math.nan) for cell in cells])
    own = {cell: seconds for hits in best.values() for cell, seconds in hits.own.items()}
    shown = np.array([own.get(cell, math.inf) for cell in cells]) <= known.limit

    def costs(log_seconds: Floats, log_sd: Floats) -> Floats:
        """Costs of runs, infinite where one does not count as in time, shape (cells, k)."""
        seconds = outlook.startups[:, None] + epochs[:, None] * np.exp(log_seconds)
        careful = seconds * np.exp(np.maximum(LEAST_CAUTION, CAUTION * log_sd))[:, None]
        counts = (careful <= known.limit) | shown[:, None]
        return np.where(counts, seconds * outlook.rates[:, None], math.inf)

    now = costs(outlook.log_seconds[:, None], sd)[:, 0]
    now[~time.is_known[known.places]] = math.inf
    # What a run on changing workers showed need not be one of these.
    shown_else = math.inf if np.isfinite(now).any() else incumbent.cost.mid
    first, second = np.partition(np.append(now, shown_else), 1)[:2]
    others = np.where(now == first, second, first)
    total = np.hypot(sd, time.noise)
    moved = (sd**2 / total)[:, None]
    moved_to = outlook.log_seconds[:, None] + moved * NODES - moved**2 / 2
    after = np.minimum(costs(moved_to, sd * time.noise / total), others[:, None])
    saved = np.maximum(first - after @ WEIGHTS, 0.0)
    return np.asarray(np.where(np.isnan(epochs), math.nan, saved), dtype=np.float64)
