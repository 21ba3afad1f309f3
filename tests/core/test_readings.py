import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.readings import Readings

VALUES = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=7)


@given(VALUES, VALUES)
def test_each_figure_is_that_of_all_values(values: list[float], more: list[float]) -> None:
    readings, every = Readings(values).plus(more), [*values, *more]
    assert readings == tuple(every)
    assert readings.median == np.median(every)
    assert (readings.least, readings.most) == (min(every), max(every))
    assert readings.log_median == pytest.approx(np.median(np.log(every)), abs=1e-12)
    off = np.log(every) - np.median(np.log(every))
    np.testing.assert_allclose(readings.log_off, off, atol=1e-12)


def test_readings_of_readings_are_the_same_object() -> None:
    readings = Readings([1.0, 2.0])
    assert Readings(readings) is readings
    assert readings.log_off is readings.log_off
