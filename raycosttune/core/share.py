"""Whole shares of a global batch: their sum always holds."""

import math
from collections.abc import Sequence
from itertools import compress

from raycosttune.errors import RayCostTuneError

HALVINGS = 100  # of a positive interval of floats: beyond their precision
EVEN = 1e-6  # samples: parts that add up so closely are not scaled
LEAST_WEIGHT = 1e-9  # a part as a share of the largest one


class InvalidShareError(RayCostTuneError, ValueError):
    """Says that no whole shares of the batch keep the bounds."""


def equal_shares(total: int, workers: int) -> tuple[int, ...]:
    """Splits a batch evenly; the first workers take what is left over, one sample each.

    Args:
        total: Samples of the global batch, at least 0.
        workers: Number of workers, at least 1.

    Raises:
        InvalidShareError: If there is no worker, or less than nothing to share.
    """
    _check(total, workers)
    each, more = divmod(total, workers)
    return (each + 1,) * more + (each,) * (workers - more)


def round_shares(
    ideal: Sequence[float], total: int, bounds: Sequence[tuple[int, int]] | None = None
) -> tuple[int, ...]:
    """Rounds shares to whole ones whose sum is the batch, by the largest remainder.

    Where bounds cut off some of the ideal, or it doesn't add up to the batch, the others
    are scaled alike. Of equal remainders the first is rounded up.

    Args:
        ideal: Shares of the workers, finite and at least 0, of any scale.
        total: Samples of the global batch, at least 0.
        bounds: Least and most samples of each worker, by default 0 and the whole batch.

    Raises:
        InvalidShareError: If the bounds leave no such shares, or the ideal is unusable.

    References:
        Ye et al. 2020, Appendix A, whose example this is.

    >>> round_shares([13.7, 16.5, 19.6, 14.2], 64)
    (14, 16, 20, 14)
    >>> round_shares([1, 1, 2], 64, [(0, 64), (0, 64), (0, 16)])
    (24, 24, 16)
    """
    _check(total, len(ideal))
    if not all(math.isfinite(part) and part >= 0 for part in ideal):
        msg = f"the ideal shares must be finite and at least 0, got {list(ideal)}"
        raise InvalidShareError(msg)
    limits = bounds or [(0, total)] * len(ideal)
    check_bounds(total, limits)
    exact = _scaled(ideal, total, limits)
    shares = [math.floor(part) for part in exact]
    room = [share < most for share, (_, most) in zip(shares, limits, strict=True)]
    order = sorted(
        compress(range(len(shares)), room), key=lambda worker: shares[worker] - exact[worker]
    )
    for worker in order[: total - sum(shares)]:
        shares[worker] += 1
    return tuple(shares)


def split_block(shares: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Splits a smaller last block in proportion to the shares, exactly.

    Args:
        shares: Samples of each worker in a full block, not all 0.
        size: Samples of the last block, from 0 to those of a full one.

    Raises:
        InvalidShareError: If the block is larger than a full one, or a share is negative.

    >>> split_block((14, 16, 20, 14), 10)
    (2, 3, 3, 2)
    """
    total = sum(shares)
    if min(shares, default=0) < 0 or not 0 <= size <= total:
        msg = f"a last block must hold from 0 to {total} samples, got {size} for shares {shares}"
        raise InvalidShareError(msg)
    if size == total:
        return tuple(shares)
    parts = [divmod(share * size, total) for share in shares]
    order = sorted(range(len(shares)), key=lambda worker: -parts[worker][1])
    up = set(order[: size - sum(whole for whole, _ in parts)])
    return tuple(whole + (worker in up) for worker, (whole, _) in enumerate(parts))


def check_bounds(total: int, bounds: Sequence[tuple[int, int]]) -> None:
    """Checks that shares within the bounds can add up to the batch.

    Args:
        total: Samples of the global batch.
        bounds: Least and most samples of each worker.

    Raises:
        InvalidShareError: If they can't.
    """
    for worker, (least, most) in enumerate(bounds):
        if not 0 <= least <= most:
            msg = f"a share's bounds must rise from 0, got {(least, most)} for worker {worker}"
            raise InvalidShareError(msg)
    least, most = (sum(ends) for ends in zip(*bounds, strict=True))
    if not least <= total <= most:
        msg = (
            f"the global batch must be from {least} to {most} samples for {len(bounds)} workers "
            f"with these bounds, got {total}. Take another batch size, other bounds, or more "
            "workers where their memory holds no more."
        )
        raise InvalidShareError(msg)


def _check(total: int, workers: int) -> None:
    if total < 0 or workers < 1:
        msg = f"a batch of at least 0 samples needs a worker, got {total} for {workers} workers"
        raise InvalidShareError(msg)


def _scaled(
    ideal: Sequence[float], total: int, bounds: Sequence[tuple[int, int]]
) -> tuple[float, ...]:
    """Returns the multiple of the ideal that adds up to the batch once cut off at the bounds."""

    def cut(parts: Sequence[float]) -> tuple[float, ...]:
        return tuple(
            min(max(part, float(least)), float(most))
            for part, (least, most) in zip(parts, bounds, strict=True)
        )

    if abs(math.fsum(cut(ideal)) - total) <= EVEN:
        return cut(ideal)
    largest = max(ideal) or 1.0
    reach = sum(
        most if part > 0 else least for part, (least, most) in zip(ideal, bounds, strict=True)
    )
    floor = LEAST_WEIGHT if reach < total else 0.0  # then those with none take the rest
    weights = [max(part / largest, LEAST_WEIGHT if part > 0 else floor) for part in ideal]
    low, high = 0.0, total / LEAST_WEIGHT
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if math.fsum(cut([middle * weight for weight in weights])) <= total:
            low = middle
        else:
            high = middle
    return cut([low * weight for weight in weights])
