"""Which trials have ended since they were last looked at."""

from collections.abc import Mapping
from itertools import islice

from raycosttune.core.observation import TrialRecord

Placed = tuple[int, TrialRecord]  # a trial and its turn among all, by their start


class Roll:
    """Calls the trials of a sweep; it looks only at those that were open before.

    An ended trial never changes, and trials are only ever added.
    """

    def __init__(self) -> None:
        self._known = 0
        self._open: dict[str, Placed] = {}

    @property
    def open(self) -> list[Placed]:
        """The trials that were open when last called."""
        return list(self._open.values())

    def copy(self) -> "Roll":
        """Returns one that has called the same trials."""
        other = Roll()
        other._known, other._open = self._known, dict(self._open)
        return other

    def ended(self, records: Mapping[str, TrialRecord]) -> list[Placed]:
        """Returns the trials that ended since the last call."""
        if len(records) > self._known:
            new = islice(records.items(), self._known, None)
            for turn, (name, record) in enumerate(new, self._known):
                self._open[name] = turn, record
            self._known = len(records)
        ended = {name: placed for name, placed in self._open.items() if not placed[1].is_live}
        for name in ended:
            del self._open[name]
        return list(ended.values())
