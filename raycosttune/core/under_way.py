"""Which running trials have something to tell, so that no other run is made for the same.

Where runs go on at once, each may find a cheaper configuration, and only the cheapest counts. So
a further run is worth what it saves beyond the best of the plan and of all that is to come. By
that the worths of runs that are asked for one after the other add up to what the best of them
saves: never to more than knowing everything would.

How the costs of two runs hang together is not known. Where both are low at once the second saves
least, whatever each does by itself (the mean of a maximum is least where both rise together). So
costs are held against each other quantile by quantile: a further run starts only where it pays
even so.
"""

from raycosttune.core.digest import Digest
from raycosttune.core.held import present
from raycosttune.core.knowledge import Knowledge


def under_way(known: Knowledge) -> list[Digest]:
    """Returns the trials that run, in cells still open, and have not reached the target."""
    return [
        trial
        for trial in known.live
        if trial.reached is None and known.is_open(present(trial.record, known.space))
    ]
