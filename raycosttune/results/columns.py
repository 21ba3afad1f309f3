"""The header line of a CSV file."""

from collections.abc import Sequence


def repeated(columns: Sequence[str]) -> list[str]:
    """Returns the names that come more than once: of their values one would be lost in silence."""
    return sorted({name for name in columns if name and columns.count(name) > 1})
