"""Rows of the journal: observations as plain JSON objects, and back.

Every row has a `row` key that names its kind:

| row | keys |
|---|---|
| header | version, unit, goal, [space, cells, learning_rate, num_samples] |
| renamed | trial_id, record |
| asked | trial_id, workers, batch_size, nodes, [node_type], recipe, proposal, [started, why] |
| report | trial_id, epoch, value, seconds, startup_seconds, attempt, checkpoint, [more] |
| resized | trial_id, workers, attempt, reason |
| ended | trial_id, cause, reason, seconds |
| profile | trial_id, steps, why, cells: [{workers, batch_size, nodes, [node_type]}], [more] |
| profiled | trial_id, seconds, startup_seconds, cells: [{the same, epoch_seconds, [failed]}] |
| over | why |
| known | samples, is_elsewhere, records, profiles |

[node_type] is the type of machine, which a search among several has alone.

`resized` says that the trial goes on with other workers at the same global batch; `attempt` is
its last start before. Older journals have none.

[space] is the search space as Tune has it, [cells] the rules for workers and batches, and
[learning_rate] how the rate follows the batch, null for none; older journals lack them.
[num_samples] is there where Tune was given one; a later header says that it has changed.

[more] of a report are `workers`, `noise_scale` and `others`, which older journals lack, as they
do [started, why]; of a profile `started`, and `recipe`: the hyperparameters that it times steps
with, where some affect time. `over` says that the search gives no further trial.

`known`, behind the header, is what a sweep began with: the trials and profiles of an earlier one as
its own state holds them, the samples of this sweep's data over those of the earlier one's, and
whether that ran on other machines.

`profile` asks for a profile, which is no training run and has no other rows than `profiled`, its
result, or `ended` without one. [failed] are `reason` and `out_of_memory` of a cell that was not
timed; its `epoch_seconds` is null. A run's own journal holds its `profiled` too.

`renamed` says that Tune, which had forgotten a trial in a crash, knows it by a new id; `record`
is the id that every other row goes by.

A run's own journal (`trials/<trial_id>.jsonl`) has reports with `metrics`, every reported
number by its path joined with "/", in place of `value`: a run doesn't know the goal. `lists` holds
the reported lists of numbers likewise. `requested` has `time`, the seconds since 1970 at which a
start of the trial asked for its workers: what passed before is not paid. `begun` follows where they
began to train.

Rows of the sweep's journal also have `elapsed_seconds`, the wall time of the sweep so far.

`batch_size` is the global batch; `recipe` holds the hyperparameters as proposed, before any
learning-rate rule; `value` is null where the metric was missing or not a number. A reader
ignores keys that it doesn't know.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from raycosttune.core.goal import Goal
from raycosttune.core.observation import Observation, Report, TrialRecord
from raycosttune.core.profile import Profiled, ProfileRecord, profile_from_data, timed_with
from raycosttune.core.space import Allocation
from raycosttune.core.state import read_ended, read_report, read_resized, read_trial
from raycosttune.core.value import checked, read_mapping, read_number

VERSION = 1
ELAPSED = "elapsed_seconds"
LONGEST_LIST = 4096  # one number a worker; whole data sets stay out of the journal
Row = dict[str, Any]
READERS: Mapping[str, Callable[[Row], Observation]] = {
    "report": read_report,
    "resized": read_resized,
    "ended": read_ended,
}


def over_row(why: str) -> Row:
    """Returns the row of a search that gives no further trial."""
    return {"row": "over", "why": why}


def run_header_row(trial_id: str) -> Row:
    """Returns the row that opens a run's own journal."""
    return {"row": "header", "version": VERSION, "trial_id": trial_id}


def requested_row(trial_id: str, time: float) -> Row:
    """Returns the row of a start that asks for its workers.

    Args:
        trial_id: The trial.
        time: When, in seconds since 1970.
    """
    return {"row": "requested", "trial_id": trial_id, "time": time}


def begun_row(trial_id: str) -> Row:
    """Returns the row of workers that begin to train."""
    return {"row": "begun", "trial_id": trial_id}


def run_report_row(trial_id: str, report: Report, metrics: Mapping[str, Any]) -> Row:
    """Returns the row of a report in a run's own journal.

    Args:
        trial_id: The trial.
        report: The report; its value is left out.
        metrics: What the loop reported, possibly nested.
    """
    row = observation_row(trial_id, report)
    del row["value"]
    lists = dict(_lists(metrics))
    return {**row, "metrics": dict(_numbers(metrics)), **({"lists": lists} if lists else {})}


def read_run_report(row: Mapping[str, Any], metric: str, goal: Goal | None = None) -> Report:
    """Builds a report from a row of a run's own journal.

    Raises:
        KeyError: If the row lacks a key.
        ValueError: If a value is of the wrong kind.
    """
    metrics = checked(row, "metrics", read_mapping)
    others = () if goal is None else goal.others(metrics)
    return read_report({**row, "value": metrics.get(metric), "others": others})


def asked_row(record: TrialRecord, why: str = "") -> Row:
    """Returns the row of a trial that was asked for, and why it was."""
    row = {
        "row": "asked",
        "trial_id": record.trial_id,
        **record.allocation.data(),
        "recipe": dict(record.recipe),
        "proposal": record.proposal,
        "started": record.started,
    }
    return {**row, "why": why} if why else row


def profile_row(record: ProfileRecord) -> Row:
    """Returns the row of a profile that was asked for."""
    return {
        "row": "profile",
        "trial_id": record.trial_id,
        **timed_with(record.profile),
        "started": record.started,
        "steps": record.profile.steps,
        "why": record.profile.why,
        "cells": [cell.data() for cell in record.profile.cells],
    }


def profiled_row(
    trial_id: str, profiled: Profiled, failed: Mapping[Allocation, Mapping[str, Any]] | None = None
) -> Row:
    """Returns the row of what a profile showed.

    Args:
        trial_id: The trial.
        profiled: What it showed.
        failed: The `reason` and `out_of_memory` of cells that were not timed.
    """
    timed = [{**c.data(), "epoch_seconds": s} for c, s in profiled.epoch_seconds.items()]
    lost = failed or {cell: {"out_of_memory": True} for cell in profiled.out_of_memory}
    untimed = [{**c.data(), "epoch_seconds": None, **f} for c, f in lost.items()]
    return {
        "row": "profiled",
        "trial_id": trial_id,
        "seconds": profiled.seconds,
        "startup_seconds": profiled.startup_seconds,
        "cells": [*timed, *untimed],
    }


def renamed_row(trial_id: str, record_id: str) -> Row:
    """Returns the row of a forgotten trial that Tune knows by a new id."""
    return {"row": "renamed", "trial_id": trial_id, "record": record_id}


def observation_row(trial_id: str, observation: Observation) -> Row:
    """Returns the row of a report, a change of workers or an end."""
    kind = type(observation).__name__.lower()
    return {"row": kind, "trial_id": trial_id, **asdict(observation)}


def read_record(row: Mapping[str, Any]) -> TrialRecord:
    """Builds an empty trial record from an `asked` row.

    Raises:
        KeyError: If the row lacks a key.
        ValueError: If a value is of the wrong kind.
    """
    return read_trial(row)


def read_observation(row: Row) -> Observation:
    """Builds a report, a change of workers or an end from its row.

    Raises:
        KeyError: If the row lacks a key.
        ValueError: If a value is of the wrong kind.
    """
    return READERS[row["row"]](row)


def read_profile(row: Mapping[str, Any]) -> ProfileRecord:
    """Builds the record of a profile, without its result, from a `profile` row.

    Raises:
        KeyError: If the row lacks a key.
        ValueError: If a value is of the wrong kind.
    """
    return _profile({**row, "seconds": None})


def read_profiled(row: Mapping[str, Any]) -> Profiled:
    """Builds what a profile showed from a `profiled` row; raises as `read_profile` does."""
    shown = _profile({**row, "steps": 1, "why": ""}).shown
    if shown is None:
        msg = f"a profiled row must have seconds, got {row!r}"
        raise ValueError(msg)
    return shown


def failed_cells(row: Mapping[str, Any]) -> list[Row]:
    """Returns the cells of a `profiled` row that were not timed, with their reasons."""
    return [cell for cell in row["cells"] if cell.get("reason") is not None]


def _profile(row: Mapping[str, Any]) -> ProfileRecord:
    try:
        return profile_from_data(row)
    except (TypeError, AttributeError) as error:
        msg = f"cells must be a list of objects: {error}"
        raise ValueError(msg) from error


def _numbers(metrics: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, float]]:
    for key, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{parent}{key}/")
        elif (number := read_number(value)) is not None:
            yield f"{parent}{key}", number


def _lists(metrics: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, list[float]]]:
    for key, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _lists(value, f"{parent}{key}/")
        elif isinstance(value, list | tuple) and 0 < len(value) <= LONGEST_LIST:
            numbers = [number for item in value if (number := read_number(item)) is not None]
            if len(numbers) == len(value):
                yield f"{parent}{key}", numbers
