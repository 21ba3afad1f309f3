"""The limits of a whole sweep: its deadline, its budget, and trials that lead nowhere."""

import math

from raycosttune.core.experiment import Experiment
from raycosttune.core.knowledge import Knowledge

FAILURES_AT_START = 3


def reached_limit(known: Knowledge, *, spent: float, elapsed_seconds: float) -> str:
    """Says which limit of the sweep is reached, or nothing."""
    goal = known.goal
    deadline = goal.sweep_deadline_seconds
    if deadline is not None and elapsed_seconds >= deadline:
        return f"the sweep's deadline of {deadline:g} s is reached"
    if goal.sweep_budget is not None and spent >= goal.sweep_budget:
        return f"the sweep's budget of {goal.sweep_budget:g} {known.cost.unit} is spent"
    return ""


def hopeless(known: Knowledge) -> str:
    """Says why no further trial makes sense, or nothing."""
    records = known.records
    if any(record.is_live for record in records) or known.incumbent is not None:
        return ""
    if len(records) >= FAILURES_AT_START and not any(record.reports for record in records):
        return f"the first {len(records)} trials ended without a report: see their errors"
    if len(records) >= 2 * len(known.space.cells) + 3:
        return f"{len(records)} trials did not reach the target by the deadline"
    return ""


def is_affordable(
    known: Knowledge, experiment: Experiment, *, spent: float, elapsed_seconds: float
) -> bool:
    """Tells whether a run can be expected to end within the limits of the sweep.

    Before anything is measured there is nothing to expect, and the first run starts.
    """
    goal = known.goal
    if known.time.is_empty:
        return True
    deadline = goal.sweep_deadline_seconds
    if deadline is not None and elapsed_seconds + experiment.seconds > deadline:
        return False
    if goal.sweep_budget is None:
        return True
    return spent + _committed(known) + experiment.price <= goal.sweep_budget


def _committed(known: Knowledge) -> float:
    """Returns what the running trials are still expected to cost."""
    if known.incumbent is None:
        return 0.0
    whole = known.incumbent.cost.mid
    return math.fsum(
        max(whole - known.cost_of(record.allocation, record.seconds), 0.0)
        for record in known.records
        if record.is_live
    )
