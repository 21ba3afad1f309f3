"""Whether a running trial goes on."""

import math

from raycosttune.core.decision import Continue, Decision, Stop, StopCause
from raycosttune.core.knowledge import Incumbent, Knowledge
from raycosttune.core.observation import TrialRecord
from raycosttune.core.proposer import recipe_key


def decide(known: Knowledge, record: TrialRecord) -> Decision:
    """Decides on a trial after its latest report; bounds alone may stop it, no extrapolation."""
    if not record.reports:
        return Continue()
    goal, last = known.goal, record.reports[-1]
    if any(goal.is_reached(report.value) for report in record.run):
        return Stop(StopCause.REACHED, f"reached the target {goal.target:g}")
    if goal.max_epochs is not None and last.epoch >= goal.max_epochs:
        return Stop(StopCause.EPOCHS, f"not at the target after {goal.max_epochs} epochs")
    return _deadline(known, record) or _worth(known, record) or Continue()


def _epochs_left(known: Knowledge, record: TrialRecord) -> float:
    """Bounds the epochs that the run still needs from below."""
    run = record.run
    period = run[-1].epoch - (run[-2].epoch if len(run) > 1 else 0.0)
    needed, _ = known.accuracy.bounds(recipe_key(record.recipe), record.allocation.batch_size)
    return max(needed - run[-1].epoch, period, 0.0)


def _deadline(known: Knowledge, record: TrialRecord) -> Stop | None:
    limit = known.goal.deadline_seconds
    if limit is None:
        return None
    ahead = known.time.least(record.allocation) * _epochs_left(known, record)
    if record.run_seconds + ahead <= limit:
        return None
    why = f"can't reach the target within {limit:g} s: {record.run_seconds:.0f} s have passed"
    return Stop(StopCause.DEADLINE, why)


def _worth(known: Knowledge, record: TrialRecord) -> Stop | None:
    """Stops a run that can't save, over the planned runs, what finishing it costs."""
    incumbent = known.incumbent
    if incumbent is None or incumbent.record is record:
        return None
    left = _epochs_left(known, record)
    best = _best_case(known, record, record.run[-1].epoch + left)
    price = known.cost_of(record.allocation, known.time.predict(record.allocation).mid * left)
    saving = known.remaining_runs * (incumbent.cost.mid - best)
    if saving > price:
        return None
    return Stop(StopCause.COST, _why(known, incumbent, best))


def _best_case(known: Knowledge, record: TrialRecord, epochs: float) -> float:
    """Returns the least cost of this batch and recipe on any number of workers."""
    limit = known.goal.deadline_seconds or math.inf
    costs = [math.inf]
    for cell in known.cells:
        if cell.batch_size == record.allocation.batch_size:
            seconds = known.least_seconds(cell, epochs)
            if seconds <= limit:
                costs.append(known.cost_of(cell, seconds))
    return min(costs)


def _why(known: Knowledge, incumbent: Incumbent, best: float) -> str:
    return (
        f"needs at least {best:.3g} {known.cost.unit} where {incumbent.cost.mid:.3g} are known "
        "to do: finishing it costs more than it can save"
    )
