"""How much an untried cell is likely to save at most, priors and laws included."""

import math

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.belief import STAGES
from raycosttune.core.certificate import untried
from raycosttune.core.incumbent import Incumbent
from raycosttune.core.outlook import Outlook

FEW = 0.5 / STAGES  # the chance of the first of a run's stages, one in 48
FEW_SDS = 2.0368  # deviations below which a Gaussian lies with that chance


def likely_gap(outlook: Outlook, incumbent: Incumbent) -> float:
    """Returns the largest saving that some untried cell makes with a chance of one in 48.

    Unlike a certificate's gap it is no bound: it weighs the laws of the epochs and the law of
    epoch times as the search does where it spends.

    Args:
        outlook: What runs of the incumbent's recipe may cost.
        incumbent: The best configuration.

    Returns:
        A fraction of the incumbent's cost, in [0, 1].
    """
    known = outlook.known
    is_open = np.isin(known.places, untried(known, incumbent))
    if not is_open.any():
        return 0.0
    mean, sd = np.empty(len(known.places)), np.empty(len(known.places))
    for batch in outlook.batches:
        at = outlook.places(batch)
        mean[at], sd[at] = _epochs(outlook, batch)
    few = mean + outlook.log_seconds - FEW_SDS * np.hypot(sd, outlook.sd)
    seconds = outlook.startups + np.exp(few)
    costs = np.where(known.keeps(known.places, seconds), seconds * outlook.rates, math.inf)
    return max(incumbent.saved_by(float(costs[is_open].min())), 0.0)


def _epochs(outlook: Outlook, batch: int) -> tuple[float, float]:
    """Returns the median of the log epochs at a batch, and its deviation towards fewer."""
    runs = outlook.known.tally.runs(batch, outlook.recipe)
    done = 0.0 if runs is None or runs.hits is not None else runs.seen.low
    stages: Floats = np.log(outlook.belief.stages(batch, done))
    middle = float(stages[STAGES // 2])
    return middle, (middle - float(stages[0])) / FEW_SDS
