"""Checks of the numbers that advice is given on."""

import math
import operator
from typing import NoReturn

from raycosttune.errors import InvalidAdviceError

MOST_COUNT = 10**12
MOST_MEASURED = 1e100
MOST_SHOWN = 200  # letters of a refused value
ROUNDING = 1e-9  # by which a quotient of floats may exceed the whole number that it stands for


def count(name: str, value: object) -> int:
    """Returns a whole number from 1 to 10**12.

    Args:
        name: What the error calls it.
        value: Of any integer type, NumPy's included.

    Raises:
        InvalidAdviceError: If it is something else.
    """
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if not 1 <= number <= MOST_COUNT:
        refuse(name, "be a whole number from 1 to 10**12", value)
    return number


def amount(name: str, value: object) -> float:
    """Returns a finite number of at least 0.

    Raises:
        InvalidAdviceError: If it is something else.
    """
    number = _number(value)
    if not 0 <= number < math.inf:
        refuse(name, "be a finite number of at least 0", value)
    return number


def positive(name: str, value: object) -> float:
    """Returns a finite number above 0.

    Raises:
        InvalidAdviceError: If it is something else.
    """
    number = _number(value)
    if not 0 < number < math.inf:
        refuse(name, "be a finite number above 0", value)
    return number


def measured(name: str, value: object, least: float = 1e-100) -> float:
    """Returns a number from the least to 1e100, whose squares and quotients are numbers, too.

    Raises:
        InvalidAdviceError: If it is something else.
    """
    number = _number(value)
    if not least <= number <= MOST_MEASURED:
        refuse(name, f"be a number from {least:g} to {MOST_MEASURED:g}", value)
    return number


def part(name: str, value: object) -> float:
    """Returns a number from 0 to 1.

    Raises:
        InvalidAdviceError: If it is something else.
    """
    number = _number(value)
    if not 0 <= number <= 1:
        refuse(name, "be a number from 0 to 1", value)
    return number


def overlap_power(value: object) -> float:
    """Returns how far an exchange hides, a number from 1 to infinity.

    Raises:
        InvalidAdviceError: If it is something else.
    """
    number = _number(value)
    if not number >= 1:
        refuse("overlap", "be a number of at least 1", value)
    return number


def of_kind(name: str, value: object, kind: type) -> None:
    """Checks the type of a value.

    Raises:
        InvalidAdviceError: If it is of another.
    """
    if not isinstance(value, kind):
        refuse(name, f"be of type {kind.__name__}", value)


def rounded_up(quotient: float) -> int:
    """Returns the smallest whole number that is no less, but for rounding; at least 1."""
    return max(1, math.ceil(quotient * (1 - ROUNDING)))


def refuse(name: str, rule: str, value: object) -> NoReturn:
    """Raises the error that says which rule a value breaks.

    Raises:
        InvalidAdviceError: Always.
    """
    try:
        shown = repr(value)
    except ValueError:  # a whole number of more digits than Python prints
        shown = f"a {type(value).__name__} too long to print"
    if len(shown) > MOST_SHOWN:
        shown = f"{shown[:MOST_SHOWN]}..."
    msg = f"{name} must {rule}, got {shown}"
    raise InvalidAdviceError(msg)


def _number(value: object) -> float:
    if isinstance(value, (bool, str, bytes)):
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]  # refused where it is no number
    except (TypeError, ValueError, OverflowError):
        return math.nan
