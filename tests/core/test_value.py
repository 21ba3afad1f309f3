import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.value import (
    KINDS,
    MOST_AMOUNT,
    MOST_COUNT,
    checked,
    clean_amount,
    optional,
    read_amount,
    read_count,
    read_mapping,
    read_name,
    read_number,
    read_real,
    read_text,
    read_whole,
)

NUMBERS = (read_number, read_real, read_amount, read_whole, read_count)


@pytest.mark.parametrize("read", NUMBERS)
@pytest.mark.parametrize("value", [None, True, "1", b"1", [1], {}, math.nan, math.inf, 10**400, 1j])
def test_what_is_no_number_is_none(read: Callable[[object], object], value: object) -> None:
    is_whole = read is read_whole and value == 10**400
    assert is_whole or read(value) is None


@pytest.mark.parametrize("read", NUMBERS)
@pytest.mark.parametrize(
    "value",
    [np.ones(1, bool)[0], np.array("1"), np.complex128(1), np.timedelta64(1, "s"), np.array(b"1")],
)
def test_what_is_no_number_is_none_of_numpy_either(
    read: Callable[[object], object], value: object
) -> None:
    assert read(value) is None


@given(st.floats(-1e15, 1e15))
def test_a_number_of_any_float_type_is_kept(value: float) -> None:
    for read in (read_number, read_real, read_amount):
        assert read(value) == read(np.float64(value)) == value
        assert type(read(np.float64(value))) is float


@given(st.integers(1, MOST_COUNT))
def test_a_count_of_any_integer_type_is_kept(value: int) -> None:
    for read in (read_whole, read_count):
        assert read(value) == read(np.int64(value)) == value
        assert type(read(np.int64(value))) is int


def test_what_no_clock_tells_from_nothing_is_nothing() -> None:
    assert [clean_amount(x) for x in (1e-320, 1e-13, -1.0, math.nan, None)] == [0.0] * 5
    assert [clean_amount(x) for x in (1e-9, 3)] == [1e-9, 3.0]


def test_amounts_and_counts_have_ends() -> None:
    assert read_amount(MOST_AMOUNT) == MOST_AMOUNT
    assert read_amount(MOST_AMOUNT * 1.1) is None
    assert (read_count(0), read_count(MOST_COUNT + 1), read_whole(0)) == (None, None, 0)
    assert read_whole(-1) is None


def test_a_value_with_one_element_is_a_number_but_not_by_type() -> None:
    class Tensor:
        def __float__(self) -> float:
            return 0.5

    assert read_number(Tensor()) == 0.5
    assert read_real(Tensor()) is None


def test_texts_and_mappings_are_taken_as_they_are() -> None:
    assert (read_text(""), read_name(""), read_name("a"), read_text(1)) == ("", None, "a", None)
    assert (read_mapping({"a": 1}), read_mapping([1])) == ({"a": 1}, None)


@pytest.mark.parametrize("read", KINDS)
def test_a_checked_value_is_named_with_its_kind(read: Callable[[Any], object]) -> None:
    with pytest.raises(ValueError, match="k must be a") as caught:
        checked({"k": 1j}, "k", read)
    assert KINDS[read] in str(caught.value)
    assert "got 1j" in str(caught.value)
    with pytest.raises(KeyError):
        checked({}, "k", read)


def test_an_optional_value_may_be_missing_but_not_of_another_kind() -> None:
    assert optional({}, "k", read_text) is None
    assert optional({"k": None}, "k", read_text) is None
    assert optional({"k": "v"}, "k", read_text) == "v"
    with pytest.raises(ValueError, match="k must be a text, got 1"):
        optional({"k": 1}, "k", read_text)
