import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.goal import Goal
from raycosttune.simulate.workload import Curve

VALUES = st.lists(st.floats(-5, 5), max_size=8)


def made(values: list[float]) -> Curve:
    return Curve(tuple(map(float, range(1, len(values) + 1))), tuple(values))


@given(values=VALUES, target=st.floats(-5, 5))
def test_the_epochs_to_a_target_are_those_of_the_first_value_at_it(
    values: list[float], target: float
) -> None:
    epochs = made(values).epochs_to(Goal(target=target, mode="max"))
    if math.isinf(epochs):
        assert all(value < target for value in values)
    else:
        assert values[int(epochs) - 1] >= target
        assert all(value < target for value in values[: int(epochs) - 1])


@given(values=VALUES, target=st.floats(-5, 5))
def test_a_metric_that_falls_is_the_mirror_of_one_that_rises(
    values: list[float], target: float
) -> None:
    falling = made([-value for value in values]).epochs_to(Goal(target=-target, mode="min"))
    assert falling == made(values).epochs_to(Goal(target=target, mode="max"))


def test_a_curve_has_as_many_values_as_epochs() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Curve((1.0, 2.0), (0.5,)).epochs_to(Goal(target=1, mode="max"))
