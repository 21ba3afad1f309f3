import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.figure import counted, described, spanned, told_apart, whole


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=4))
def test_unequal_numbers_never_look_equal(values: list[float]) -> None:
    assert len(set(told_apart(*values))) == len(set(values))


def test_three_digits_are_written_where_they_suffice() -> None:
    assert told_apart(0.001442, 0.001451) == ("0.00144", "0.00145")
    assert told_apart(0.0014419, 0.0014421) == ("0.0014419", "0.0014421")
    assert told_apart(1234.5, 1234.5) == ("1.23e+03", "1.23e+03")
    assert told_apart(100001.0, 100002.0, digits=6) == ("100001", "100002")


def test_what_is_no_number_is_written_too() -> None:
    assert told_apart(math.nan, float("nan")) == ("nan", "nan")


def test_one_is_singular() -> None:
    assert [counted(n, "epoch") for n in (0, 1, 2.5, 3)] == [
        *("0 epochs", "1 epoch", "2.5 epochs", "3 epochs")
    ]


def test_a_configuration_is_written_compactly() -> None:
    assert described(1, 64, {}) == "1 worker, batch 64"
    recipe = {"lr": 0.0316227, "layers": 3, "optimizer/name": "adam", "nesterov": True}
    assert described(2, 64, recipe) == (
        "2 workers, batch 64, lr=0.0316, layers=3, optimizer/name=adam, nesterov=True"
    )


@pytest.mark.parametrize("value", ["two\nlines", "\x1b[31mred", "a\ttab"])
def test_a_text_that_would_break_its_line_is_written_as_python_does(value: str) -> None:
    assert described(1, 64, {"name": value}) == f"1 worker, batch 64, name={value!r}"


def test_a_span_is_one_number_where_its_ends_read_the_same() -> None:
    assert spanned([12.0, 50.4, 11.0], whole) == "11 to 50"
    assert spanned([50.4, 50.2], whole) == "50"
