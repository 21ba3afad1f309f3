"""Log messages that are said once a sweep."""

import logging


class Once:
    """Logs each kind of message once."""

    def __init__(self, logger: logging.Logger) -> None:
        """Has said nothing yet."""
        self._logger = logger
        self._said: set[str] = set()

    def log(self, level: int, kind: str, message: str, *values: object) -> None:
        """Logs a message unless one of its kind was logged before."""
        if kind not in self._said:
            self._said.add(kind)
            self._logger.log(level, message, *values)

    def warning(self, kind: str, message: str, *values: object) -> None:
        """Warns once of a kind."""
        self.log(logging.WARNING, kind, message, *values)

    def info(self, kind: str, message: str, *values: object) -> None:
        """Informs once of a kind."""
        self.log(logging.INFO, kind, message, *values)
