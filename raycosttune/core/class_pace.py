"""How much longer or shorter epochs take in each class of recipes, and what that makes of them."""

import json
import math
from collections.abc import Iterator

import numpy as np

from raycosttune.core.figure import listed
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.time_surrogate import Z90


def scores(known: Knowledge) -> list[float]:
    """Returns relative times to the target of `known.accuracy.recipes`, lower is better."""
    each = zip(known.accuracy.recipes, known.accuracy.scores(), strict=True)
    return [score * known.times.pace(known.class_of(recipe)) for recipe, score in each]


def class_paces(known: Knowledge) -> Iterator[str]:
    """Says how long an epoch takes with each class of recipes, by that of the first run timed.

    Where they are known best: in the cell in which their ratio is most certain.
    """
    names = known.times.names
    tried = [known.class_of(key) for key in known.recipes]
    first = next((name for name in tried if name in names), "")
    for name in (other for other in names if first and other != first):
        own, base = known.times.of(name), known.times.of(first)
        sds = np.hypot(own.log_sd, base.log_sd)
        k = int(sds.argmin())
        mid, sd = float(own.log_mean[k] - base.log_mean[k]), float(sds[k])
        low, ratio, high = (math.exp(mid + z * sd) for z in (-Z90, 0, Z90))
        yield (
            f"{listed(json.loads(name))}: an epoch takes {ratio:.3g} times as long as with "
            f"{listed(json.loads(first))} ({low:.3g} to {high:.3g})"
        )
