"""Policies: measured compute seconds of each worker in, its next share out."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.rebalance_bound import safe_bounds
from raycosttune.core.rebalance_fill import fill
from raycosttune.core.rebalance_regime import current, steadiness
from raycosttune.core.share import equal_shares, round_shares
from raycosttune.core.value import read_real, read_whole
from raycosttune.core.worker_time import Timings, WorkerTimes, fit_times
from raycosttune.errors import InvalidStateError

KEEP = 24
CAUTION = 0.6  # deviations of log seconds by which what isn't known counts as slower
Bounds = list[tuple[int, int]]


@dataclass(frozen=True)
class Sample:
    """Is what one worker measured in one round, the steps between two adjustments.

    Attributes:
        round: Number of the round, increasing.
        share: Samples that it had of each step.
        seconds: Compute seconds of one step.
        steps: Number of steps.
    """

    round: int
    share: int
    seconds: float
    steps: int

    @property
    def is_usable(self) -> bool:
        """Whether it says how fast its worker is."""
        return self.steps > 0 and self.share >= 0 and 0 < self.seconds < math.inf


@dataclass(frozen=True)
class WorkerLog:
    """Is what is known of one worker.

    Attributes:
        name: What survives restarts, such as node and local rank.
        samples: Oldest first; none of a worker that has just joined.
        most: Largest share that fits its memory, None if unknown.
    """

    name: str
    samples: tuple[Sample, ...] = ()
    most: int | None = None

    @property
    def usable(self) -> list[Sample]:
        """The samples that say how fast it is."""
        return [sample for sample in self.samples if sample.is_usable]


class Policy(Protocol):
    """Plans the next shares; a pure function."""

    def plan(
        self, workers: Sequence[WorkerLog], shares: tuple[int, ...], total: int
    ) -> tuple[int, ...]:
        """Returns a share for each worker, whose sum is `total`.

        Args:
            workers: What is known of each.
            shares: Those in force.
            total: Samples of the global batch.

        Raises:
            InvalidShareError: If the batch does not fit the workers' memory.
        """


class _Stated:
    """Writes a policy as plain JSON."""

    name: ClassVar[str]

    def to_state(self) -> dict[str, Any]:
        """Returns the name and the settings, which `policy_from_state` reads."""
        return {"name": self.name, **asdict(self)}  # type: ignore[call-overload]  # a dataclass


@dataclass(frozen=True)
class Equal(_Stated):
    """Keeps shares equal, as far as memory allows."""

    name: ClassVar[str] = "equal"

    def plan(
        self, workers: Sequence[WorkerLog], shares: tuple[int, ...], total: int
    ) -> tuple[int, ...]:
        """See Policy.plan."""
        del shares
        return round_shares(equal_shares(total, len(workers)), total, _bounds(workers, 0, total))


@dataclass(frozen=True)
class DBS(_Stated):
    """Lets shares follow the speeds of the latest round, as published.

    Attributes:
        least: Smallest share of a worker.

    References:
        Ye et al. 2020 (DBS), q_i = B p_i / sum p with p_i = d_i / t_i, rounded as in its
        Appendix A, with sums that hold.
    """

    name: ClassVar[str] = "dbs"
    least: int = 1

    def plan(
        self, workers: Sequence[WorkerLog], shares: tuple[int, ...], total: int
    ) -> tuple[int, ...]:
        """See Policy.plan; a worker without samples counts as one of middling speed."""
        del shares
        latest = [log.usable[-1] if log.usable else None for log in workers]
        speeds = [None if last is None else max(last.share, 1) / last.seconds for last in latest]
        middling = statistics.median([speed for speed in speeds if speed is not None] or [1.0])
        ideal = [middling if speed is None else speed for speed in speeds]
        return round_shares(ideal, total, _bounds(workers, self.least, total))


@dataclass(frozen=True)
class Balance(_Stated):
    """Fits each worker's seconds against its share, and lets all be done at once.

    Workers that measure alike share a law; one that changed suddenly is measured anew, on
    its own, and speeds that wander are followed. Shares stay where the gain is small, and
    keep to where, by the assumed shape, no worker is slower than the slowest one was with
    equal shares; seconds that fall or jump with the share can break that.

    Attributes:
        least: Smallest share of a worker.
        dead_band: Gain in log seconds of a step below which shares stay as they are.
    """

    name: ClassVar[str] = "balance"
    least: int = 1
    dead_band: float = 0.005

    def plan(
        self, workers: Sequence[WorkerLog], shares: tuple[int, ...], total: int
    ) -> tuple[int, ...]:
        """See Policy.plan; a worker without samples has the law of the mean worker."""
        bounds = _bounds(workers, self.least, total)
        present = _present(workers)
        if not any(present):
            return Equal().plan(workers, shares, total)
        changed = [k for k, own in enumerate(present) if own and own[0] != workers[k].usable[0]]
        times = _times(present, changed, bounds)
        wary = times.mean + CAUTION * times.sd
        points = [[(sample.share, sample.seconds) for sample in own] for own in present]
        equal = equal_shares(total, len(workers))
        safe = safe_bounds(points, equal, bounds, total, times.least_noise)
        rising, level = _rising(times.knots, wary, safe, total)
        planned = fill(times.knots, level, total, rising)
        if _fits(shares, safe, total):
            gain = _slowest(times.knots, wary, shares) - _slowest(times.knots, wary, planned)
            if gain <= self.dead_band:
                return shares
        return planned


POLICIES: tuple[type[Equal | DBS | Balance], ...] = (Equal, DBS, Balance)


def policy_from_state(data: Mapping[str, Any]) -> Equal | DBS | Balance:
    """Reads a policy that `to_state` wrote.

    Raises:
        InvalidStateError: If the data is of no policy, or a setting is unknown or no number.
    """
    settings = {key: value for key, value in data.items() if key != "name"}
    for kind in POLICIES:
        known = kind().to_state()
        if data.get("name") == kind.name and settings.keys() <= known.keys():
            read = {key: _READ[key](value) for key, value in settings.items()}
            if None not in read.values():
                return kind(**read)
    msg = f"a policy's state must have a name and its settings, got {dict(data)}"
    raise InvalidStateError(msg)


_READ: dict[str, Callable[[object], Any]] = {"least": read_whole, "dead_band": read_real}


def trimmed(log: WorkerLog, keep: int = KEEP) -> WorkerLog:
    """Returns the log with its newest samples only, so that a checkpoint stays small."""
    return replace(log, samples=log.samples[-keep:])


def _bounds(workers: Sequence[WorkerLog], least: int, total: int) -> Bounds:
    most = [total if log.most is None else min(log.most, total) for log in workers]
    return [(min(least, cap), cap) for cap in most]


def _present(workers: Sequence[WorkerLog]) -> list[list[Sample]]:
    """Returns the samples of each worker that were measured in its present state."""
    usable = [log.usable for log in workers]
    points = [
        [(math.log(max(sample.share, 1)), math.log(sample.seconds)) for sample in own]
        for own in usable
    ]
    noise = steadiness(points)
    return [
        [own[place] for place in current(of_own, noise)]
        for own, of_own in zip(usable, points, strict=True)
    ]


def _times(
    present: Sequence[Sequence[Sample]], changed: Sequence[int], bounds: Bounds
) -> WorkerTimes:
    told = [(worker, sample) for worker, own in enumerate(present) for sample in own]
    newest = max(sample.round for _, sample in told)
    timings = Timings(
        workers=np.array([worker for worker, _ in told]),
        log_shares=np.log([max(sample.share, 1) for _, sample in told]),
        log_seconds=np.log([sample.seconds for _, sample in told]),
        ages=np.array([float(newest - sample.round) for _, sample in told]),
    )
    least, most = min(ends[0] for ends in bounds), max(ends[1] for ends in bounds)
    ends = math.log(max(least, 1)), math.log(max(most, 1))
    return fit_times(timings, len(present), ends, changed)


def _rising(knots: Floats, wary: Floats, safe: Bounds, total: int) -> tuple[Bounds, Floats]:
    """Returns bounds from the fastest share on, and seconds that are level before it.

    Where seconds fall with the share, less than the fastest share saves nothing.
    """
    best = wary.argmin(axis=1)
    fastest = [math.ceil(share - 1e-9) for share in np.exp(knots[best])]
    rising = [
        (min(max(least, share), most), most)
        for (least, most), share in zip(safe, fastest, strict=True)
    ]
    if sum(least for least, _ in rising) > total:
        rising = safe
    before = np.arange(len(knots)) < best[:, None]
    return rising, np.where(before, wary.min(axis=1)[:, None], wary)


def _fits(shares: Sequence[int], bounds: Bounds, total: int) -> bool:
    return (
        len(shares) == len(bounds)
        and sum(shares) == total
        and all(least <= share <= most for share, (least, most) in zip(shares, bounds, strict=True))
    )


def _slowest(knots: Floats, log_seconds: Floats, shares: Sequence[int]) -> float:
    return max(
        float(np.interp(math.log(max(share, 1)), knots, own))
        for share, own in zip(shares, log_seconds, strict=True)
    )
