import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.goal import Goal, Mode
from raycosttune.errors import InvalidGoalError, RayCostTuneError

VALUES = st.floats(-1e9, 1e9)
MODES = st.sampled_from(("max", "min"))


@given(target=VALUES, value=VALUES, mode=MODES)
def test_a_value_reaches_the_target_from_the_side_of_the_mode(
    target: float, value: float, mode: Mode
) -> None:
    is_reached = Goal(target=target, mode=mode).is_reached(value)
    assert is_reached is (value >= target if mode == "max" else value <= target)


@given(target=VALUES, mode=MODES, missing=st.sampled_from((None, math.nan)))
def test_no_number_never_reaches_the_target(
    target: float, mode: Mode, missing: float | None
) -> None:
    assert not Goal(target=target, mode=mode).is_reached(missing)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("target", math.nan, "a finite number"),
        ("target", math.inf, "a finite number"),
        ("target", "0.9", "a finite number"),
        ("target", True, "a finite number"),
        ("target", 10**400, "a finite number"),
        ("target", [1], "a finite number"),
        ("mode", ["max"], '"max" or "min"'),
        ("metric", "", "the name of a reported metric"),
        ("metric", 3, "the name of a reported metric"),
        ("mode", "maximum", '"max" or "min"'),
        *(
            (name, value, rule)
            for name in ("deadline_seconds", "sweep_deadline_seconds", "sweep_budget")
            for value, rule in (
                (0, "positive"),
                (-1.5, "positive"),
                (1e16, "at most 10**15"),
                (sys.float_info.max, "at most 10**15"),
                (math.nan, "a finite number"),
                (math.inf, "a finite number"),
                ("60", "a finite number"),
            )
        ),
        ("planned_runs", 0, "a whole number of at least 1"),
        ("planned_runs", None, "a whole number of at least 1"),
        ("planned_runs", 2.0, "a whole number of at least 1"),
        ("planned_runs", True, "a whole number of at least 1"),
        ("planned_runs", 10**13, "at most 10**12"),
        ("max_epochs", 0, "a whole number of at least 1"),
        ("max_epochs", 1.5, "a whole number of at least 1"),
        ("tolerance", -0.1, "[0, 1)"),
        ("tolerance", 1, "[0, 1)"),
        ("tolerance", math.nan, "a finite number"),
    ],
)
def test_a_bad_value_is_named_with_its_rule(name: str, value: object, rule: str) -> None:
    arguments: dict[str, Any] = {"target": 0.9, name: value}
    with pytest.raises(InvalidGoalError) as caught:
        Goal(**arguments)
    assert f"Goal.{name} must " in str(caught.value)
    assert rule in str(caught.value)
    assert f"got {value!r}" in str(caught.value)


def test_numpy_s_numbers_become_python_s_own() -> None:
    numbers: dict[str, Any] = {
        "target": np.float32(0.5),
        "deadline_seconds": np.int64(60),
        "planned_runs": np.int64(3),
        "max_epochs": np.int32(9),
    }
    goal = Goal(**numbers)
    assert goal == Goal(target=0.5, deadline_seconds=60, planned_runs=3, max_epochs=9)
    assert {type(getattr(goal, name)) for name in numbers} == {int, float}


def test_an_array_is_no_mode() -> None:
    modes: Any = np.array(["max", "min"])
    with pytest.raises(InvalidGoalError, match=r"Goal\.mode must be"):
        Goal(target=0.9, mode=modes)


def test_an_unusable_limit_says_how_to_have_none() -> None:
    with pytest.raises(InvalidGoalError, match="Leave it out for no limit"):
        Goal(target=0.9, deadline_seconds=0)


def test_a_tolerance_in_percent_is_told_how_to_be_written() -> None:
    with pytest.raises(InvalidGoalError, match=r"got 3\.0\. For 3 % write 0\.03\.$"):
        Goal(target=0.9, tolerance=3)
    with pytest.raises(InvalidGoalError, match=r"got 300\.0\.$"):
        Goal(target=0.9, tolerance=300)


def test_an_error_is_a_value_error_and_one_of_ours() -> None:
    assert issubclass(InvalidGoalError, ValueError)
    assert issubclass(InvalidGoalError, RayCostTuneError)


@given(
    limit=st.none() | st.floats(min_value=1e-9, max_value=1e9),
    count=st.none() | st.integers(1, 10**6),
    tolerance=st.floats(0, 1, exclude_max=True),
)
def test_every_good_value_is_kept(limit: float | None, count: int | None, tolerance: float) -> None:
    goal = Goal(
        target=1, deadline_seconds=limit, sweep_budget=limit, max_epochs=count, tolerance=tolerance
    )
    assert (goal.deadline_seconds, goal.sweep_budget) == (limit, limit)
    assert (goal.max_epochs, goal.tolerance) == (count, tolerance)
