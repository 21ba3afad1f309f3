"""Warnings of this package in a program that has set up no logging."""

import logging
import sys

NAME = "raycosttune fallback"


class Fallback(logging.Handler):
    """Writes warnings with the package's name, where no other handler takes them.

    Python's own last resort writes the bare message: among the lines of Ray nobody can tell
    whose it is.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.name = NAME
        self.setFormatter(logging.Formatter("raycosttune %(levelname)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a line to the standard error stream, whichever that is now."""
        if self._is_alone(record.name):
            try:
                sys.stderr.write(f"{self.format(record)}\n")
            except Exception:  # noqa: BLE001 - a closed stream must not end a sweep
                self.handleError(record)

    def _is_alone(self, name: str) -> bool:
        logger: logging.Logger | None = logging.getLogger(name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return False
            logger = logger.parent if logger.propagate else None
        return True


def set_up(logger: logging.Logger) -> None:
    """Gives a logger its fallback, in place of one that an earlier import of the package left."""
    for handler in [handler for handler in logger.handlers if handler.name == NAME]:
        logger.removeHandler(handler)
    logger.addHandler(Fallback())
