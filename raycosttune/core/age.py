"""How long a sweep has gone on."""

from collections.abc import Callable


class Age:
    """Counts the seconds of a sweep; time between a crash and a restore is not counted.

    Args:
        clock: Returns seconds that never fall.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._began, self._before = clock(), 0.0

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return self._before + self.clock() - self._began

    def resume(self, seconds: float) -> None:
        """Goes on from so many seconds."""
        self._before, self._began = seconds, self.clock()

    def reach(self, seconds: float) -> None:
        """Counts at least so many seconds as passed."""
        self._before += max(seconds - self.seconds, 0.0)
