"""Whether a sweep has any hope left to meet its deadline, and which one may be met."""

import math

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.figure import told_apart
from raycosttune.core.frontier import infeasible
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.outlook import HOPE, Outlook
from raycosttune.core.planner import Planner

LEAST_CHANCE = 0.02  # to meet the deadline; below it nothing more is paid for, unless
LEAST_HOPE = 0.2  # it is so much should the cells whose epoch time is uncertain be fast
EVEN = 0.5
DIGITS = 3


def lost(known: Knowledge, planner: Planner | None, *, recipes: bool) -> str:
    """Says why no run can, or is likely to, meet the deadline, once one did not; or nothing.

    Args:
        known: What the records say.
        planner: Plans from it; without it only what the bounds prove counts. Bounds take it that
            epochs do not fall with the batch: a planner that holds it possible has a say.
        recipes: Whether new recipes can be proposed: what bounds those tried proves nothing then.
    """
    goal = known.goal
    if goal.deadline_seconds is None or known.live or known.incumbent is not None:
        return ""
    if known.tally.misses.total() == 0:
        return ""
    verdict = "" if recipes else infeasible(known)
    if planner is None:
        return verdict
    outlook = planner.outlook(planner.new_recipe)
    if hope(outlook) >= LEAST_HOPE or not (verdict or outlook.chance_in_time < LEAST_CHANCE):
        return ""
    limit, likely = told_apart(goal.deadline_seconds, _deadline(outlook, EVEN), digits=DIGITS)
    return verdict or (
        f"no configuration is likely to meet the deadline of {limit} s: the chance is estimated "
        f"at less than {LEAST_CHANCE:.0%}; a deadline of about {likely} s may do"
    )


def hope(outlook: Outlook) -> float:
    """Returns the most that the chance of some cell to meet the deadline may turn out to be."""
    return float((outlook.belief.weights * (_soonest(outlook) <= outlook.limit)).sum())


def _deadline(outlook: Outlook, chance: float) -> float:
    """Returns the least deadline that some cell may meet with a chance; infinite for none."""
    soonest = _soonest(outlook).ravel()
    order = np.argsort(soonest)
    total = np.cumsum(outlook.belief.weights.ravel()[order])
    return float(soonest[order][min(int(np.searchsorted(total, chance)), len(total) - 1)])


def _soonest(outlook: Outlook) -> Floats:
    """Returns seconds of the fastest run under each law, shape (s, o), unknown cells fast."""
    epochs = outlook.belief.epochs
    hoped = np.exp(outlook.log_seconds - HOPE * outlook.sd)
    soonest = np.full(epochs.shape[:2], math.inf)
    for k, batch in enumerate(outlook.batches):
        at = outlook.places(batch)
        seconds = (outlook.startups[at] + epochs[:, :, k, None] * hoped[at]).min(axis=-1)
        is_legal = epochs[:, :, k] <= (outlook.known.goal.max_epochs or math.inf)
        soonest = np.minimum(soonest, np.where(is_legal, seconds, math.inf))
    return soonest
