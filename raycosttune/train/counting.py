"""Counts what a loss is a mean over where that isn't samples, such as tokens."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from raycosttune.core.value import read_number
from raycosttune.errors import InvalidLoaderError
from raycosttune.train.exchange import Exchange
from raycosttune.train.step import Count, Step, StepClock

Pair = tuple[Any, Step]


def counted(
    pairs: Iterable[Pair],
    count: Callable[[Any], Any],
    exchange: Exchange,
    clock: StepClock,
    least_rows: Callable[[], int] = lambda: 1,
) -> Iterator[Pair]:
    """Adds to each part of a step what counts of it in the loss, and what of all.

    All workers call it together; the parts of a step are drawn before the first is handed out.

    Args:
        pairs: Batches, and what each is.
        count: Says how much counts of a batch.
        exchange: Joins the workers.
        clock: Is told of the wait for other workers.
        least_rows: Samples that a batch has at least, repeated ones among them.

    Raises:
        InvalidLoaderError: If `count` finds no amount in a batch of some worker.
    """
    held: list[Pair] = []
    for batch, step in pairs:
        held.append((batch, step))
        if not step.is_last:
            continue
        told = [count(batch) if part.samples else 0.0 for batch, part in held]
        # A padded batch repeats its samples, and the mean over them is the same.
        real = [part.samples / max(part.samples, least_rows()) for _, part in held]
        own = [_amount(each) * once for each, once in zip(told, real, strict=True)]
        began = time.perf_counter()
        shares = [row[0] for row in exchange.gather([math.fsum(own)])]
        clock.exclude(time.perf_counter() - began)
        _check(shares, told)
        total, workers = math.fsum(shares), sum(share > 0 for share in shares)
        for (each, part), amount in zip(held, own, strict=True):
            kept = Count(amount, shares[exchange.rank], total)
            yield each, replace(part, count=kept, workers=workers)
        held = []


def _amount(told: object) -> float:
    amount = read_number(told)
    return math.nan if amount is None or amount < 0 else amount


def _check(shares: list[float], told: list[Any]) -> None:
    wrong = [rank for rank, share in enumerate(shares) if math.isnan(share)]
    if wrong:
        msg = (
            "count must return an amount of at least 0 for a batch, got something else on "
            f"workers {wrong} (here {told}). Return how many terms the loss is a mean over, such "
            "as (labels != -100).sum()."
        )
        raise InvalidLoaderError(msg)
