import math
from typing import Any

import numpy as np
import pytest
from optuna.samplers import TPESampler

from raycosttune.core.cost import NodeHours
from raycosttune.errors import InvalidCostError, InvalidGoalError, InvalidSpaceError
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL

WRONG: dict[str, tuple[object, ...]] = {
    "max_concurrent": (0, -1, "2", 1.5, True),
    "seed": (-1, "x", 1.5, None, True),
    "workers_per_node": (0, "2", 1.5),
    "min_local_batch": (0, None, "1"),
    "max_local_batch": (0, "3"),
    "divisible": ("no", None, 1),
    "profile": ("no", None, 1),
    "batch": ("Global", None, 64, ["global"]),
    "affects_time": ("precision", None, 3, ("a", 3), ("",), ("a", "a"), {"a": 1}),
    "learning_rate": ("linear", 0.1),
    "sampler": ("tpe", 3, TPESampler()),
    "space": ([1, 2], "x"),
    "workers_key": (None, 3, ""),
    "batch_key": (None, 3, ""),
    "resources_per_worker": (
        *({"CPU": amount} for amount in (0, -1, "1", None, True, math.nan, math.inf)),
        *("CPU", [1], [], 3, 0, {1: 1}),
    ),
}


@pytest.mark.parametrize(("name", "value"), [(n, value) for n in WRONG for value in WRONG[n]])
def test_an_argument_of_the_wrong_kind_is_refused_at_once_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidSpaceError, match=f"{name} must ") as caught:
        CostAwareSearch(GOAL, **{name: value})
    assert f"got {value!r}. " in str(caught.value)


@pytest.mark.parametrize("goal", ["accuracy", {"target": 0.9}, None])
def test_a_goal_must_be_one(goal: Any) -> None:
    with pytest.raises(InvalidGoalError, match=r"goal must be a Goal, got .*Write Goal\(target"):
        CostAwareSearch(goal)


@pytest.mark.parametrize(
    ("cost", "message"),
    [(NodeHours, r"Write NodeHours\(\)"), ("node-hours", "a str `unit`"), (min, "a str `unit`")],
)
def test_a_cost_must_be_a_metric(cost: Any, message: str) -> None:
    with pytest.raises(InvalidCostError, match=message):
        CostAwareSearch(GOAL, cost=cost)


def test_what_numpy_counts_is_taken() -> None:
    three: Any = np.int64(3)
    CostAwareSearch(GOAL, max_concurrent=three, seed=three, max_local_batch=three)
    half: Any = np.float32(0.5)
    CostAwareSearch(GOAL, resources_per_worker={"CPU": 0, "GPU": half})
