"""Whether a running trial goes on."""

import math

from raycosttune.core.decision import Continue, Decision, Stop, StopCause
from raycosttune.core.digest import Digest
from raycosttune.core.figure import counted, told_apart
from raycosttune.core.held import present
from raycosttune.core.knowledge import Incumbent, Knowledge
from raycosttune.core.observation import TrialRecord
from raycosttune.core.planner import Planner
from raycosttune.core.proposer import recipe_key


def decide(known: Knowledge, record: TrialRecord, planner: Planner | None = None) -> Decision:
    """Decides on a trial after its latest report; without a planner bounds alone may stop it."""
    if not record.reports:
        return Continue()
    goal, last = known.goal, record.reports[-1]
    if any(goal.is_reached(report.value) for report in record.run):
        return Stop(StopCause.REACHED, f"reached the target {goal.target:g}")
    if goal.max_epochs is not None and last.epoch >= goal.max_epochs:
        why = f"not at the target after {counted(goal.max_epochs, 'epoch')}"
        return Stop(StopCause.EPOCHS, why)
    if planner is not None and present(record, known.space) in known.cells:
        return planner.next_step(record)
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
    alike = _alike(known, record)
    limit = known.goal.deadline_seconds or math.inf
    for other, needed in alike:
        if other.record.allocation == record.allocation and other.seconds_to_target <= limit:
            return Stop(StopCause.COST, _is_known(other, needed))
    left = _epochs_left(known, record)
    epochs = record.run[-1].epoch + left
    is_beyond = bool(alike) and epochs > max(needed for _, needed in alike)
    best = _best_case(known, record, epochs, is_beyond=is_beyond)
    price = known.cost_of(record.allocation, known.time.predict(record.allocation).mid * left)
    saving = known.remaining_runs * (incumbent.cost.mid - best)
    if saving > price:
        return None
    return Stop(StopCause.COST, _why(known, incumbent, best))


def _alike(known: Knowledge, record: TrialRecord) -> list[tuple[Digest, float]]:
    """Returns the runs of the same batch and recipe that reached the target, and in which epoch."""
    key, batch = recipe_key(record.recipe), record.allocation.batch_size
    return [
        (other, other.reached.epoch)
        for other in known.digests
        if other.reached is not None
        and other.recipe == key
        and other.record.allocation.batch_size == batch
    ]


def _best_case(known: Knowledge, record: TrialRecord, epochs: float, *, is_beyond: bool) -> float:
    """Returns the least cost of this batch and recipe on any number of workers.

    Beyond the epochs that they are known to need, a run can show something of its own cell
    alone: what the others cost is known better from the run that needed fewer.
    """
    limit = known.goal.deadline_seconds or math.inf
    costs = [math.inf]
    for cell in (record.allocation,) if is_beyond else known.cells:
        if cell.batch_size == record.allocation.batch_size:
            seconds = known.least_seconds(cell, epochs)
            if seconds <= limit:
                costs.append(known.cost_of(cell, seconds))
    return min(costs)


def _is_known(other: Digest, epoch: float) -> str:
    return (
        f"{other.record.trial_id} reached the target in the same cell with the same recipe at "
        f"epoch {epoch:g}: finishing it can save nothing"
    )


def _why(known: Knowledge, incumbent: Incumbent, best: float) -> str:
    if math.isinf(best):
        return "can't reach the target by the deadline on any number of workers"
    least, done = told_apart(best, incumbent.cost.mid)
    return (
        f"needs at least {least} {known.cost.unit} where {done} are known to do: finishing it "
        "costs more than it can save"
    )
