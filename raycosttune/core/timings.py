"""Seconds of epochs and start-ups, of first epochs without the one-off work in them."""

import math
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, Self, TypeVar

from raycosttune.core.digest import Digest
from raycosttune.core.duplicate import duplicate
from raycosttune.core.readings import Readings
from raycosttune.core.timed import FirstEpoch

Where = TypeVar("Where")
Key = TypeVar("Key")
Start = tuple[str, int]


class _First(NamedTuple, Generic[Where]):
    where: Where | None
    start: Start
    shown: FirstEpoch


class Timings(Generic[Where]):
    """Holds what trials and profiles timed, added in any order.

    A first epoch may hold one-off work: loading, compiling. What other attempts took for it, in
    the median, is taken off where an attempt made no second epoch, and counts as start-up. A first
    epoch of which that is more than half tells nothing of epochs.

    Attributes:
        epochs: Seconds of single epochs, by where they were made.
        starts: Seconds of start-ups by type of machine and worker count.
    """

    def __init__(self) -> None:
        self.epochs: dict[Where, Readings] = {}
        self.starts: dict[Start, Readings] = {}
        self._whole: dict[Where, Readings] = {}  # without the first epochs that stand alone
        self._plain: dict[Start, Readings] = {}
        self._firsts: tuple[_First[Where], ...] = ()
        self._extras: list[float] = []  # sorted

    def copy(self) -> Self:
        """Returns one to which more can be added while this one stays as it is."""
        other = duplicate(self)
        for name in ("epochs", "starts", "_whole", "_plain", "_extras"):
            vars(other)[name] = vars(self)[name].copy()
        return other

    def add(self, trial: Digest, where: Callable[[int], Where | None]) -> None:
        """Adds a trial.

        Args:
            trial: What it says.
            where: Returns the place of its epochs on so many workers, None for none.
        """
        before, node_type = self._usual, trial.record.allocation.node_type
        for extra in trial.extras:
            insort(self._extras, extra)
        if self._firsts and self._usual != before:
            self._renew()
        for workers in {**trial.epoch_seconds, **trial.startup_seconds}:
            place, start = where(workers), (node_type, workers)
            if workers in trial.firsts:
                for shown in trial.firsts[workers]:
                    self._add_first(_First(place, start, shown))
                continue
            self.add_epochs(place, trial.epoch_seconds.get(workers, ()))
            self.add_starts(start, trial.startup_seconds.get(workers, ()))

    def add_epochs(self, where: Where | None, seconds: Sequence[float]) -> None:
        """Adds seconds of epochs that hold nothing else; those of no place are left out."""
        if where is not None and seconds:
            _append(self._whole, where, seconds)
            _append(self.epochs, where, seconds)

    def add_starts(self, start: Start, seconds: Sequence[float]) -> None:
        """Adds seconds of start-ups."""
        if seconds:
            _append(self._plain, start, seconds)
            _append(self.starts, start, seconds)

    @property
    def is_sure(self) -> bool:
        """Whether any time of an epoch is surely nothing else."""
        return bool(self._whole)

    @property
    def _usual(self) -> float:
        """Seconds of one-off work, in steps of a tenth: each new one would change all firsts."""
        middle = self._extras[len(self._extras) // 2] if self._extras else 0.0
        return math.exp(round(math.log(middle), 1)) if middle > 0 else 0.0

    def _add_first(self, first: _First[Where]) -> None:
        self._firsts += (first,)
        self._count(first)

    def _count(self, first: _First[Where]) -> None:
        shown = first.shown
        extra = min(self._usual, shown.seconds)
        left = shown.seconds - extra
        _append(self.starts, first.start, (shown.startup_seconds + extra,))
        if first.where is not None and shown.epochs > 0 and left > 0 and left >= extra:
            _append(self.epochs, first.where, (left / shown.epochs,))

    def _renew(self) -> None:
        self.epochs, self.starts = self._whole.copy(), self._plain.copy()
        for first in self._firsts:
            self._count(first)


def _append(found: dict[Key, Readings], where: Key, more: Iterable[float]) -> None:
    found[where] = found.get(where, Readings()).plus(more)
