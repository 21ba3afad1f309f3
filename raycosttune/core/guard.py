"""Whether a running trial will reach the target by its deadline, and what helps it to."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from raycosttune.core.array import Floats
from raycosttune.core.decision import Resize, Stop, StopCause
from raycosttune.core.figure import counted
from raycosttune.core.going import Going
from raycosttune.core.outlook import Outlook

SAFE = 0.9  # a chance from which on a deadline isn't at risk
GAIN = 0.05  # what a change of workers must add to the chance, more after each one before
HOPELESS = 0.02
RESTART = 1.5  # a change of workers takes so many starts: what ran must end first
LEAST_SD = 0.02
LEAST_SECONDS = 1e-9


@dataclass(frozen=True)
class Chances:
    """Is what the worker counts of a batch promise a run.

    Attributes:
        workers: The counts, shape (n,).
        in_time: Chance of each to reach the target by the deadline, shape (n,).
        later: The same for a change at the next report only, shape (n,).
        costs: Expected cost of each from here on, shape (n,).
    """

    workers: tuple[int, ...]
    in_time: Floats
    later: Floats
    costs: Floats

    def of(self, workers: int) -> float:
        """Returns the chance of a count to reach the target by the deadline."""
        return float(self.in_time[self.workers.index(workers)])


def chances(
    outlook: Outlook,
    batch_size: int,
    *,
    epoch: float = 0.0,
    seconds_left: float,
    going: Going | None = None,
) -> Chances:
    """Weighs the worker counts on which a run may go on.

    Args:
        outlook: What runs of its recipe may need.
        batch_size: Its batch.
        epoch: Epochs done.
        seconds_left: Seconds until its deadline.
        going: How it runs now, None before the start.
    """
    k = outlook.places(batch_size)
    counts = np.array([outlook.cells[int(place)].workers for place in k])
    if going is not None:
        may = np.array([going.allows(outlook.cells[int(place)]) for place in k])
        k, counts = k[may], counts[may]
    now, lost = (0, 0.0) if going is None else (going.workers, going.lost_epochs)
    moves = counts != now
    starts = moves * outlook.startups[k] * (1.0 if going is None else RESTART)
    stages = outlook.belief.stages(batch_size, epoch)
    ahead, paces = stages[:, None] - epoch, np.exp(outlook.log_seconds[k])
    seconds = starts + (ahead + lost * moves) * paces
    wait = outlook.known.period
    pace = paces[~moves][0] if len(paces[~moves]) else 0.0
    left = max(seconds_left, LEAST_SECONDS)
    after = starts + np.maximum(ahead - wait, 0.0) * paces

    def met(needed: Floats) -> Floats:
        apart = math.log(left) - np.log(np.maximum(needed, LEAST_SECONDS))
        chance = ndtr(apart / np.maximum(outlook.sd[k], LEAST_SD)).mean(axis=0)
        return np.asarray(chance, dtype=np.float64)

    costs = seconds.mean(axis=0) * outlook.rates[k]
    later = np.where(ahead > wait, after, 0.0) + wait * pace
    return Chances(tuple(counts.tolist()), met(seconds), met(later), costs)


def hopeless(seen: Chances) -> Stop | None:
    """Ends a run that next to surely misses its deadline: all that it still costs is lost."""
    best = float(seen.in_time.max())
    if best >= HOPELESS:
        return None
    return Stop(
        StopCause.DEADLINE,
        f"reaches the target by the deadline with an estimated chance of {best:.1%}, "
        "on whatever workers it may have",
    )


def guarded(seen: Chances, going: Going) -> Resize | Stop | None:
    """Helps a run whose deadline is at risk: with other workers, or by ending it.

    It gets the cheapest workers that make the deadline safe, or the likeliest to meet it, but
    not as long as a change at the next report would be safe: much is learned until then. It
    ends where none of them has a chance. In between it runs on: its last checkpoint before
    the deadline is the best that can be had.
    """
    now = seen.of(going.workers)
    if now >= SAFE:
        return None
    if (stop := hopeless(seen)) is not None:
        return stop
    best = float(seen.in_time.max())
    if seen.later.max() >= SAFE:
        return None
    good = np.flatnonzero(seen.in_time >= min(SAFE, best))
    place = int(good[np.argmin(seen.costs[good])])
    gain = float(seen.in_time[place]) - now
    if seen.workers[place] == going.workers or gain < GAIN * (1 + going.changes):
        return None
    return Resize(
        seen.workers[place],
        f"{counted(seen.workers[place], 'worker')} meet the deadline with an estimated chance of "
        f"{seen.in_time[place]:.0%}, {going.workers} with {now:.0%}",
    )
