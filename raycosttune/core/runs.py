"""What the runs of one recipe at one batch say together."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from raycosttune.core.digest import Digest, Points
from raycosttune.core.epochs import Epochs, Seen
from raycosttune.core.space import Allocation

DIGITS = 6  # of the epochs that runs need on the average


@dataclass(frozen=True, eq=False)
class Hits:
    """Is what the runs of one recipe at one batch say that reached the target.

    Attributes:
        recipe: Key of the recipe.
        batch_size: The batch.
        mid: Epochs to the target on the average.
        low: The fewest epochs that one of them made in vain.
        high: The most that one of them needed.
        most: The same, 0 for a target reached before the first epoch.
        first: Turn of the first one among the trials, by their start.
        last: Turn of the last one.
        latest: The last one.
        seconds: The least wall time to the target, on whatever workers.
        own: The least wall time by cell, of runs that stayed on their workers.
        in_time: The first one by cell that began in it and met the deadline, with its turn.
    """

    recipe: str
    batch_size: int
    mid: float
    low: float
    high: float
    most: float
    first: int
    last: int
    latest: Digest
    seconds: float
    own: Mapping[Allocation, float]
    in_time: Mapping[Allocation, tuple[int, Digest]]

    @classmethod
    def of(cls, run: Digest, epochs: Epochs, turn: int, limit: float) -> "Hits":
        """Returns what one run says; see `Runs.plus`."""
        cell, seconds = run.record.allocation, run.seconds_to_target
        return cls(
            recipe=run.recipe,
            batch_size=cell.batch_size,
            mid=epochs.high,
            low=epochs.low,
            high=epochs.high,
            most=0.0 if run.reached is None else run.reached.epoch,
            first=turn,
            last=turn,
            latest=run,
            seconds=seconds,
            own={} if run.is_resized else {cell: seconds},
            in_time={cell: (turn, run)} if seconds <= limit else {},
        )

    def plus(self, other: "Hits", mid: float) -> "Hits":
        """Returns these runs and some others, which on the average need `mid` epochs."""
        own, in_time = dict(self.own), dict(self.in_time)
        for cell, seconds in other.own.items():
            own[cell] = min(seconds, own.get(cell, math.inf))
        for cell, placed in other.in_time.items():
            in_time[cell] = min(placed, in_time.get(cell, placed), key=lambda pair: pair[0])
        return Hits(
            recipe=self.recipe,
            batch_size=self.batch_size,
            mid=mid,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            most=max(self.most, other.most),
            first=min(self.first, other.first),
            last=max(self.last, other.last),
            latest=(self if self.last > other.last else other).latest,
            seconds=min(self.seconds, other.seconds),
            own=own,
            in_time=in_time,
        )


@dataclass(frozen=True, eq=False)
class Runs:
    """Sums up the runs of one recipe at one batch.

    Attributes:
        seen: Their epochs.
        hits: What those say that reached the target, None where none did.
        longest: The longest of the others, the first one among equals.
        rank: Its epochs, and its turn with the sign changed: the longest ranks highest.
        scaled: Those that reached the target and measured noise scales.
    """

    seen: Seen
    hits: Hits | None = None
    longest: Digest | None = None
    rank: tuple[float, int] = (-1.0, 0)
    scaled: tuple[Digest, ...] = ()

    @property
    def gaps(self) -> Points:
        """Epoch and gap of the longest run in vain."""
        return () if self.longest is None else self.longest.gaps

    @cached_property
    def curve(self) -> Points:
        """Epoch and gap of the run that came nearest: the last one at the target, up to it."""
        run = self.longest if self.hits is None else self.hits.latest
        if run is None:
            return ()
        if run.reached is None:
            return run.gaps
        end = run.reached.epoch
        return (*(point for point in run.gaps if point[0] < end), (end, 0.0))

    @cached_property
    def progress(self) -> tuple[float, int]:
        """Ranks batches by how near to the target they came, the nearest lowest."""
        least = 0.0 if self.hits else min((gap for _, gap in self.curve), default=math.inf)
        return least, self.seen.batch_size

    def plus(self, run: Digest, epochs: Epochs, turn: int, limit: float) -> "Runs":
        """Returns these runs and one more.

        Args:
            run: A run.
            epochs: Its epochs to the target.
            turn: Its turn among the trials.
            limit: The deadline of a run, infinite without one.
        """
        seen, hits, longest, rank = self.seen.plus(epochs), self.hits, self.longest, self.rank
        if epochs.is_censored:
            if (own := (run.record.epoch, -turn)) > rank:
                longest, rank = run, own
            return Runs(seen, hits, longest, rank, self.scaled)
        mid = round(math.exp(seen.mean), DIGITS)
        more = Hits.of(run, epochs, turn, limit)
        hits = (more if hits is None else hits).plus(more, mid)
        return Runs(seen, hits, longest, rank, self.scaled + ((run,) if run.scales else ()))
