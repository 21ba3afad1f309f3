"""Values as others hand them over, made Python's own; None for what is of another kind."""

import math
import operator
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, TypeVar

Value = TypeVar("Value")
MOST_AMOUNT = 1e15
LEAST_AMOUNT = 1e-12  # seconds or epochs that no clock and no loop tells from none
MOST_COUNT = 10**12
NO_NUMBERS = tuple("bcmMSU")  # NumPy's truths, complex numbers, times and texts


def read_number(value: object) -> float | None:
    """Returns a finite float, or None for everything else: NaN, a text, nothing.

    Whatever `float` takes is a number here, such as a tensor of one element.
    """
    if type(value) is float:  # the usual case, of which a journal holds millions
        return value if math.isfinite(value) else None
    if isinstance(value, (bool, str, bytes)) or value is None:
        return None
    if getattr(getattr(value, "dtype", None), "kind", "") in NO_NUMBERS:
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # refused below
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def read_real(value: object) -> float | None:
    """Returns a finite float where the value is a number by type, NumPy's included."""
    return read_number(value) if isinstance(value, (float, Real)) else None


def read_amount(value: object) -> float | None:
    """Returns a number of at most 10**15; nobody trains for longer, in seconds or epochs."""
    number = read_number(value)
    return None if number is None or number > MOST_AMOUNT else number


def clean_amount(value: object) -> float:
    """Returns an amount of at least 0, which stands for next to nothing and everything else."""
    amount = read_amount(value) or 0.0
    return amount if amount >= LEAST_AMOUNT else 0.0


def read_whole(value: object) -> int | None:
    """Returns a whole number of at least 0 of any integer type, NumPy's included."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    return None if number is None or number < 0 else number


def read_count(value: object) -> int | None:
    """Returns a whole number from 1 to 10**12."""
    number = read_whole(value)
    return None if number is None or not 1 <= number <= MOST_COUNT else number


def read_text(value: object) -> str | None:
    """Returns a text, None for everything else."""
    return value if isinstance(value, str) else None


def read_name(value: object) -> str | None:
    """Returns a text that isn't empty."""
    return read_text(value) or None


def read_mapping(value: object) -> Mapping[str, Any] | None:
    """Returns a mapping, None for everything else."""
    return value if isinstance(value, Mapping) else None


KINDS: dict[Callable[[Any], object], str] = {
    read_count: "a whole number from 1 to 10**12",
    read_whole: "a whole number of at least 0",
    read_real: "a finite number",
    read_amount: "a finite number of at most 10**15",
    read_text: "a text",
    read_mapping: "an object",
}


def checked(data: Mapping[str, Any], key: str, read: Callable[[object], Value | None]) -> Value:
    """Reads a value that must be there.

    Args:
        data: Where it lies.
        key: Its key.
        read: One of `KINDS`.

    Raises:
        KeyError: If it is missing.
        ValueError: If it is of another kind.
    """
    value = read(data[key])
    if value is None:
        msg = f"{key} must be {KINDS[read]}, got {data[key]!r}"
        raise ValueError(msg)
    return value


def optional(
    data: Mapping[str, Any], key: str, read: Callable[[object], Value | None]
) -> Value | None:
    """Reads a value that may be missing or None; raises ValueError as `checked` does."""
    return None if data.get(key) is None else checked(data, key, read)
