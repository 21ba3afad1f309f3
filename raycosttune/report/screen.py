"""Where progress is shown: a panel that is drawn anew in a terminal, lines elsewhere."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from raycosttune.core.session import Session
from raycosttune.report.glance import Glance
from raycosttune.report.lines import Lines


class Screen:
    """Shows how a sweep goes.

    Args:
        is_live: Whether to draw a panel; by default where standard output is a terminal, or a
            notebook that has ipywidgets, and rich is installed.
        say: Prints a line.
        reports: Whether each report is a line, too.
    """

    def __init__(
        self,
        *,
        is_live: bool | None = None,
        say: Callable[[str], None] = print,
        reports: bool = False,
    ) -> None:
        self._live: Any = _live() if is_live is None or is_live else None
        if self._live is not None and is_live is None and not _draws(self._live.console):
            self._live = None
        self._lines, self._say = Lines(reports=reports), say
        self._width = 0

    @property
    def is_live(self) -> bool:
        """Whether a panel is drawn."""
        return self._live is not None

    def show(self, glance: Glance, session: Session) -> None:
        """Shows how the sweep goes now."""
        if self._live is None:
            for line in self._lines(session):
                self._say(line)
            return
        from raycosttune.report.panel import fitted  # noqa: PLC0415 - rich is an extra

        console = self._live.console
        if not self._live.is_started:
            self._live.start()
        elif console.width < self._width:
            console.clear()  # the terminal has wrapped what is there: it can't be drawn over
        self._width = console.width
        self._live.update(fitted(glance, console), refresh=True)

    def close(self) -> None:
        """Leaves the last panel where it is and gives the terminal back."""
        if self._live is not None and self._live.is_started:
            self._live.stop()


def _draws(console: Any) -> bool:  # noqa: ANN401 - rich is an extra
    """Tells whether a panel can be drawn anew in place; a notebook is no terminal to rich."""
    if console.is_jupyter:
        return find_spec("ipywidgets") is not None
    return bool(console.is_interactive)


def _live() -> Any:  # noqa: ANN401 - rich is an extra
    try:
        from rich.console import Console  # noqa: PLC0415 - rich is an extra
        from rich.live import Live  # noqa: PLC0415 - as above
    except ImportError:
        return None
    return Live(console=Console(file=sys.stdout), auto_refresh=False)
