import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.constraint import Bound, RunBudget, read_bounds
from raycosttune.core.cost import NodeHours, WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.observation import Report
from raycosttune.errors import InvalidCostError, InvalidGoalError

LATENCY = Bound(metric="latency", at_most=20)
GAP = Bound(metric="fair/gap", at_least=-0.1, at_most=0.1)
VALUES = st.floats(-50, 50)


def test_a_value_that_was_not_reported_keeps_to_no_bound() -> None:
    aim = Goal(target=1.0, metric="m", mode="max", constraints=(LATENCY,))
    assert aim.others({"latency": 20, "x": 1.0}) == (("latency", 20.0),)
    assert aim.others({"latency": None}) == ()
    assert LATENCY.holds(20.0)
    assert not LATENCY.holds(None)


@given(VALUES, VALUES, VALUES)
def test_a_bound_holds_between_its_ends(value: float, low: float, high: float) -> None:
    assert Bound(metric="m", at_most=high).holds(value) is (value <= high)
    assert Bound(metric="m", at_least=low).holds(value) is (value >= low)
    low, high = sorted((low, high))
    both = Bound(metric="m", at_least=low, at_most=high)
    assert both.holds(value) is (low <= value <= high)
    assert not both.holds(None)


@given(st.none() | VALUES, st.none() | VALUES, st.none() | VALUES)
def test_the_target_is_met_where_every_bound_holds(
    value: float | None, latency: float | None, gap: float | None
) -> None:
    goal = Goal(target=1.0, metric="m", mode="max", constraints=(LATENCY, GAP))
    others = goal.others({"latency": latency, "fair/gap": gap, "x": 1.0})
    assert dict(others).keys() == {
        name for name, found in (("latency", latency), ("fair/gap", gap)) if found is not None
    }
    report = Report(1.0, value, 1.0, others=others)
    is_met = value is not None and value >= 1 and LATENCY.holds(latency) and GAP.holds(gap)
    assert goal.is_met(report) is is_met
    assert Goal(target=1.0, mode="max").is_met(report) is (value is not None and value >= 1)


def test_constraints_say_what_they_are() -> None:
    assert str(LATENCY) == "latency <= 20"
    assert str(GAP) == "-0.1 <= fair/gap <= 0.1"
    assert str(Bound(metric="m", at_least=2)) == "2 <= m"
    assert str(RunBudget(cost=NodeHours(), at_most=3)) == "at most 3 node-hours a run"


def test_bounds_are_read_back_and_budgets_are_not() -> None:
    budget = RunBudget(cost=NodeHours(), at_most=3)
    data = json.loads(json.dumps([item.data() for item in (LATENCY, budget, GAP)]))
    assert read_bounds(data) == (LATENCY, GAP)
    assert read_bounds(None) == ()


def test_a_goal_sorts_its_constraints_by_kind() -> None:
    budget = RunBudget(cost=WorkerHours(), at_most=3)
    given_as_a_list: Any = [LATENCY, budget]
    goal = Goal(target=1.0, constraints=given_as_a_list)
    assert goal.constraints == (LATENCY, budget)
    assert (goal.bounds, goal.budgets) == ((LATENCY,), (budget,))
    assert replace(goal, target=2.0).constraints == goal.constraints


@pytest.mark.parametrize("wrong", [LATENCY, "latency <= 20", 3, [LATENCY, {"metric": "m"}]])
def test_what_is_no_list_of_constraints_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidGoalError, match="be a list of Bound and RunBudget"):
        Goal(target=1.0, constraints=wrong)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"metric": ""}, "name of a reported metric"),
        ({"metric": 3, "at_most": 1}, "name of a reported metric"),
        ({"metric": "m"}, "at_most, at_least or both"),
        ({"metric": "m", "at_most": math.nan}, "finite number"),
        ({"metric": "m", "at_least": "1"}, "finite number"),
    ],
)
def test_a_bound_without_name_or_ends_is_refused(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidGoalError, match=why):
        Bound(**wrong)


class Rebate(WorkerHours):
    monotone = False


def test_a_budget_that_limits_nothing_is_refused() -> None:
    for wrong in (0, -1.0, math.inf, "3"):
        with pytest.raises(InvalidGoalError, match="at_most must be a positive number"):
            RunBudget(cost=NodeHours(), at_most=wrong)  # type: ignore[arg-type]  # as above
    with pytest.raises(InvalidGoalError, match="must not fall"):
        RunBudget(cost=Rebate(), at_most=3)
    with pytest.raises(InvalidCostError, match=r"Write NodeHours\(\)"):
        RunBudget(cost=NodeHours, at_most=3)  # type: ignore[arg-type]  # a class


def test_numbers_of_numpy_become_pythons_own() -> None:
    half: Any = np.float32(0.5)
    bound, budget = Bound(metric="m", at_most=half), RunBudget(cost=NodeHours(), at_most=half)
    assert json.loads(json.dumps([bound.data(), budget.data()]))[0]["at_most"] == 0.5


def test_a_bound_that_nothing_keeps_to_is_refused() -> None:
    with pytest.raises(InvalidGoalError, match="at_least <= at_most, got 2 and 1"):
        Bound(metric="m", at_least=2, at_most=1)
