"""Warnings that are said once a sweep."""

import logging


class Once:
    """Logs each kind of warning once."""

    def __init__(self, logger: logging.Logger) -> None:
        """Has said nothing yet."""
        self._logger = logger
        self._said: set[str] = set()

    def warning(self, kind: str, message: str, *values: object) -> None:
        """Logs a warning unless one of its kind was logged before."""
        if kind not in self._said:
            self._said.add(kind)
            self._logger.warning(message, *values)
