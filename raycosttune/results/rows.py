"""Rows of the journal: observations as plain JSON objects, and back.

Every row has a `row` key that names its kind:

| row | keys |
|---|---|
| header | version, unit, goal |
| asked | trial_id, workers, batch_size, nodes, recipe, proposal |
| report | trial_id, epoch, value, seconds, startup_seconds, attempt, checkpoint |
| ended | trial_id, cause, reason, seconds |

`batch_size` is the global batch; `recipe` holds the hyperparameters as proposed, before any
learning-rate rule; `value` is null where the metric was missing or not a number. A reader
ignores keys that it doesn't know.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from raycosttune.core.goal import Goal
from raycosttune.core.observation import Ended, EndCause, Observation, Report, TrialRecord
from raycosttune.core.space import Allocation

VERSION = 1
Row = dict[str, Any]


def header_row(goal: Goal, unit: str) -> Row:
    """Returns the row that opens a journal."""
    return {"row": "header", "version": VERSION, "unit": unit, "goal": asdict(goal)}


def asked_row(record: TrialRecord) -> Row:
    """Returns the row of a trial that was asked for."""
    return {
        "row": "asked",
        "trial_id": record.trial_id,
        "workers": record.allocation.workers,
        "batch_size": record.allocation.batch_size,
        "nodes": record.allocation.nodes,
        "recipe": dict(record.recipe),
        "proposal": record.proposal,
    }


def observation_row(trial_id: str, observation: Observation) -> Row:
    """Returns the row of a report or an end."""
    kind = "report" if isinstance(observation, Report) else "ended"
    return {"row": kind, "trial_id": trial_id, **asdict(observation)}


def read_record(row: Mapping[str, Any]) -> TrialRecord:
    """Builds an empty trial record from an `asked` row.

    Raises:
        KeyError: If the row lacks a key.
    """
    allocation = Allocation(int(row["workers"]), int(row["batch_size"]), int(row["nodes"]))
    return TrialRecord(
        str(row["trial_id"]), allocation, dict(row["recipe"]), int(row["proposal"])
    )


def read_observation(row: Mapping[str, Any]) -> Observation:
    """Builds a report or an end from its row.

    Raises:
        KeyError: If the row lacks a key.
        ValueError: If a value is of the wrong kind.
    """
    if row["row"] == "ended":
        return Ended(EndCause(row["cause"]), str(row["reason"]), float(row["seconds"]))
    value = row["value"]
    return Report(
        epoch=float(row["epoch"]),
        value=None if value is None else float(value),
        seconds=float(row["seconds"]),
        startup_seconds=float(row["startup_seconds"]),
        attempt=int(row["attempt"]),
        checkpoint=row["checkpoint"],
    )
