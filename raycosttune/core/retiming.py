"""What one more sample of an epoch time may save where the epochs to the target are known."""

import math

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.fresh import LOSS
from raycosttune.core.gaussian import below
from raycosttune.core.incumbent import CAUTION, LEAST_CAUTION, Incumbent
from raycosttune.core.outlook import Outlook

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
LEAST_SD = 1e-9
SAMPLES = np.array([1.0, 4.0, 16.0])  # taken in turn, as one alone may settle nothing


def worth_timing(outlook: Outlook, incumbent: Incumbent, samples: Floats = SAMPLES) -> Floats:
    """Returns by how much a plan's cost is expected to fall with one more sample of each cell.

    A sample moves what a cell is believed to take and makes it surer, so that less is added
    before it counts as in time. It is worth something only as far as the plan may change by it:
    to the cell, or to the next best one where it turns out dearer or late. What may be late
    costs what a late run does. Where several samples change more than as many times one does,
    each is worth its share of theirs.

    Args:
        outlook: What runs may cost.
        incumbent: The plan.
        samples: How many may be taken of a cell, shape (m,).

    Returns:
        Costs of a run, shape (cells,); NaN at batches that have not reached the target.

    References:
        Frazier, Powell & Dayanik 2008 (the knowledge gradient); Frazier & Powell 2010 (KG(*),
        by the number of samples that are worth the most each).
    """
    known, cells, sd = outlook.known, outlook.cells, outlook.sd
    best, time = known.tally.of_class(known.class_of(incumbent.recipe)).best, outlook.time
    mids = {batch: hits.mid for batch, hits in best.items()}
    epochs = np.array([mids.get(cell.batch_size, math.nan) for cell in cells])
    own = {cell: seconds for hits in best.values() for cell, seconds in hits.own.items()}
    shown = np.array([own.get(cell, math.inf) for cell in cells]) <= known.limit

    def costs(log_seconds: Floats, log_sd: Floats) -> Floats:
        """Costs of runs, infinite where one does not count as in time, shape (cells, m, k)."""
        seconds = outlook.startups[:, None, None]
        seconds = seconds + epochs[:, None, None] * np.exp(log_seconds)
        deviation = np.maximum(log_sd, LEAST_SD)[..., None]
        careful = seconds * np.exp(np.maximum(LEAST_CAUTION, CAUTION * deviation))
        late = below((np.log(seconds) - np.log(known.limit)) / deviation)
        late = np.where(shown[:, None, None], 0.0, late)
        counts = (careful <= known.limit) | shown[:, None, None]
        rates = outlook.rates[:, None, None]
        return np.where(counts, seconds * rates * (1 + LOSS * late), math.inf)

    now = costs(outlook.log_seconds[:, None, None], sd[:, None])[:, 0, 0]
    now[~time.is_known[known.places]] = math.inf
    # What a run on changing workers showed need not be one of these.
    shown_else = math.inf if np.isfinite(now).any() else incumbent.cost.mid
    first, second = np.partition(np.append(now, shown_else), 1)[:2]
    # Without a plan another run is made, after one that came too late.
    others = np.where(now == first, min(second, (1 + LOSS) * first), first)
    noise = time.noise / np.sqrt(samples)
    total = np.hypot(sd[:, None], noise)
    moved = (sd[:, None] ** 2 / total)[..., None]
    moved_to = outlook.log_seconds[:, None, None] + moved * NODES - moved**2 / 2
    after = np.minimum(costs(moved_to, sd[:, None] * noise / total), others[:, None, None])
    saved = np.maximum(first - after @ WEIGHTS, 0.0) / samples
    return np.asarray(np.where(np.isnan(epochs), math.nan, saved.max(axis=1)), dtype=np.float64)
