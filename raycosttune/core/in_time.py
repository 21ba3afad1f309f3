"""What runs likely come to by the deadline while none is known to reach the target, in words."""

import math
from collections.abc import Iterator

import numpy as np

from raycosttune.core.figure import counted
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.metric_surface import MetricSurface
from raycosttune.core.prediction import Prediction


def best_in_time(known: Knowledge, surface: MetricSurface) -> Iterator[str]:
    """Says which cell likely comes nearest to the target by the deadline, and how near.

    Args:
        known: What the records say.
        surface: What is likely of the metric.
    """
    limit, sign, places = known.limit, known.goal.sign, known.places
    if math.isinf(limit):
        return
    pace = np.exp(surface.time.log_mean[places])
    starts = known.startup.of_cells(known.space)[1][places]
    last = _last_epoch(known)
    most = np.minimum((limit - starts) / pace, min(last, known.goal.max_epochs or math.inf))
    epochs = np.floor(most / known.period + 1e-6) * known.period
    epochs[~known.keeps(places, np.minimum(starts + pace * epochs, limit))] = 0.0
    rows = [(cell, e) for cell, e in zip(known.cells, epochs.tolist(), strict=True) if e > 0]
    if not rows:
        return
    told = [(surface.predict(cell.batch_size, e), cell, e) for cell, e in rows]
    # Where several may be at the target, the one that is the surest of it.
    value, cell, epoch = max(told, key=lambda row: (sign * row[0].mid, _worst(row[0], sign)))
    what, ends = cell.named(surface.recipe), ", where runs end by themselves"
    yield (
        f"by the deadline: {known.goal.metric} {value} likely, with {what}, "
        f"{counted(round(epoch, 2), 'epoch')}{ends if epoch >= last else ''} (predicted)"
    )


def _last_epoch(known: Knowledge) -> float:
    """Returns the epoch beyond which no run went, where one ended by itself, else infinity."""
    tally = known.tally
    most = max((digest.record.epoch for digest in known.digests), default=0.0)
    return tally.last_own_end if tally.own_ends and most <= tally.last_own_end else math.inf


def _worst(value: Prediction, sign: int) -> float:
    """Returns the worse end of an interval, larger for better ones."""
    return value.low if sign > 0 else -value.high
