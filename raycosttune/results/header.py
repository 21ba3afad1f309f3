"""The row that opens a journal: the goal, the space and the rate of its sweep."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from raycosttune.core.constraint import Constraint, RunBudget, read_bounds
from raycosttune.core.cost import CostMetric
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.node_type import NodeType
from raycosttune.core.space import Space
from raycosttune.core.value import read_count
from raycosttune.errors import InvalidStateError
from raycosttune.results.cost import BY_UNIT, cost_data, read_cost
from raycosttune.results.rows import VERSION, Row

SAMPLES = "num_samples"


def header_row(
    goal: Goal,
    unit: str,
    space: Space | None = None,
    rate: LearningRate | None = None,
    cost: CostMetric | None = None,
) -> Row:
    """Returns the row that opens a journal."""
    return {
        "row": "header",
        "version": VERSION,
        "unit": unit,
        "cost": None if cost is None else cost_data(cost),
        "goal": {
            **asdict(replace(goal, constraints=())),
            "constraints": [_constraint_data(constraint) for constraint in goal.constraints],
        },
        "cells": None if space is None else space.data(),
        "learning_rate": None if rate is None else asdict(rate),
    }


def read_header(row: Mapping[str, Any]) -> tuple[Goal, str | None]:
    """Returns the goal and the unit of the cost of a header; what a newer goal adds is left.

    A limit in another unit is left out, too, where its metric is none of this package's.

    Raises:
        InvalidStateError: If it holds no goal.
        InvalidGoalError: If a value of the goal breaks its rule.
    """
    goal, unit = row.get("goal"), row.get("unit")
    if not isinstance(goal, Mapping) or "target" not in goal:
        msg = f"a journal's header must hold a goal with a target, got {goal!r}"
        raise InvalidStateError(msg)
    known = {item.name for item in fields(Goal)}
    kept = {key: value for key, value in goal.items() if key in known}
    kept["constraints"] = tuple(_read_constraints(kept.get("constraints")))
    return Goal(**kept), unit if isinstance(unit, str) else None


def _constraint_data(constraint: Constraint) -> dict[str, Any]:
    budget = constraint if isinstance(constraint, RunBudget) else None
    return {**constraint.data(), **({} if budget is None else {"cost": cost_data(budget.cost)})}


def _read_constraints(data: object) -> Iterator[Constraint]:
    for item in data if isinstance(data, list) else ():
        yield from read_bounds([item])
        cost = read_cost(item.get("cost")) if isinstance(item, Mapping) else None
        if cost is not None:
            yield RunBudget(cost=cost, at_most=item.get("at_most"))


def read_header_cost(row: Mapping[str, Any]) -> CostMetric | None:
    """Returns the cost metric of a header, None where only whoever wrote it has it.

    An older journal has the unit alone, which tells node-hours and worker-hours.
    """
    unit = row.get("unit")
    metric = read_cost(row.get("cost"))
    if metric is None:
        return BY_UNIT.get(unit) if isinstance(unit, str) and row.get("cost") is None else None
    return metric if metric.unit == unit else None


def read_header_space(row: Mapping[str, Any]) -> Space | None:
    """Returns the space of a header, None where an older journal has none.

    Raises:
        InvalidStateError: If it can't be read.
    """
    data = row.get("cells")
    try:
        if data is None:
            return None
        known = {item.name: data[item.name] for item in fields(Space) if item.name in data}
        known["excluded"] = tuple(map(tuple, known.get("excluded", ())))
        known["node_types"] = tuple(map(_type, known.get("node_types", ())))
        known["affects_time"] = tuple(known.get("affects_time", ()))
        return Space(**known)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        msg = f"a journal's header must hold rules for cells, got {data!r}: {error}"
        raise InvalidStateError(msg) from error


def _type(data: Mapping[str, Any]) -> NodeType:
    known = {item.name: data[item.name] for item in fields(NodeType) if item.name in data}
    return NodeType(**{**known, "excluded": tuple(map(tuple, known.get("excluded", ())))})


def read_samples(rows: Iterable[Row]) -> float:
    """Returns Tune's `num_samples` as the last header has it, infinite where none was given."""
    headers = [row for row in rows if row["row"] == "header"]
    most = read_count(headers[-1].get(SAMPLES)) if headers else None
    return math.inf if most is None else float(most)


def read_header_rate(row: Mapping[str, Any]) -> LearningRate | None:
    """Returns how the learning rate follows the batch by a header; raises as its space does."""
    data = row.get("learning_rate")
    try:
        if data is None:
            return None
        keys = (item.name for item in fields(LearningRate))
        return LearningRate(**{key: data[key] for key in keys if key in data})
    except (TypeError, ValueError) as error:
        msg = f"a journal's header must hold a learning rate, got {data!r}: {error}"
        raise InvalidStateError(msg) from error
