import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.exact_sum import plus

NUMBERS = st.lists(st.floats(-1e100, 1e100), max_size=40)


@given(NUMBERS)
def test_a_sum_that_grows_one_by_one_is_exact(numbers: list[float]) -> None:
    parts: tuple[float, ...] = ()
    for number in numbers:
        parts = plus(parts, number)
    assert sum(map(Fraction, parts)) == sum(map(Fraction, numbers))
    assert math.fsum(parts) == math.fsum(numbers)


@pytest.mark.parametrize("numbers", [[0.1] * 10, [1e16, 1.0, -1e16], [1.0, 1e100, 1.0, -1e100]])
def test_no_digit_is_lost(numbers: list[float]) -> None:
    parts: tuple[float, ...] = ()
    for number in numbers:
        parts = plus(parts, number)
    assert sum(map(Fraction, parts)) == sum(map(Fraction, numbers))
