"""Whether a running trial goes on."""

import math

import numpy as np

from raycosttune.core.cost import checked_cost, may_fall
from raycosttune.core.decision import Continue, Decision, Resize, Stop, StopCause
from raycosttune.core.digest import Digest
from raycosttune.core.figure import counted, told_apart, whole
from raycosttune.core.going import Going
from raycosttune.core.guard import chances, guarded
from raycosttune.core.held import present
from raycosttune.core.incumbent import Incumbent
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.limits import reached_limit
from raycosttune.core.observation import TrialRecord
from raycosttune.core.planner import Planner
from raycosttune.core.space import Allocation
from raycosttune.core.turned import turned


def decide(
    known: Knowledge,
    record: TrialRecord,
    goes: Going,
    *,
    planner: Planner | None = None,
    forecast: Planner | None = None,
) -> Decision:
    """Decides on a trial after its latest report.

    Args:
        known: What the records say.
        record: The trial.
        goes: How it goes, and on which workers it may go on.
        planner: Plans the whole bill; without one only bounds, and the deadline, stop a trial.
        forecast: Tells how likely the deadline is met, None while nothing is known of times.
    """
    if not record.reports:
        return Continue()
    if (over := _over(known, record)) is not None:
        return over
    if not known.tally.is_timed and _is_within(known, record):
        return Continue()  # how much of a first epoch is loading shows in the second one
    is_known = known.is_open(present(record, known.space))
    if planner is not None and is_known:
        return planner.next_step(record, goes)
    late = _deadline(known, record, goes) or _budget(known, record, goes)
    stop = late or _elsewhere(known, record) or _worth(known, record)
    if stop is None and forecast is not None and is_known:
        return _guard(known, record, goes, forecast) or Continue()
    return stop or Continue()


def decide_without_cost(known: Knowledge, record: TrialRecord, elapsed_seconds: float) -> Decision:
    """Decides on a trial where the cost metric fails: what runs may reach the target in time."""
    if not record.reports:
        return Continue()
    cell = present(record, known.space)
    stays = Going(cell.workers, can_resize=False, node_type=cell.node_type)
    if (stop := _over(known, record) or _deadline(known, record, stays)) is not None:
        return stop
    late = reached_limit(known, spent=0.0, elapsed_seconds=elapsed_seconds)
    return Stop(StopCause.BUDGET, late) if late else Continue()


def _over(known: Knowledge, record: TrialRecord) -> Stop | None:
    """Stops a run at the target, after all the epochs that it may make, or that gets worse."""
    goal, last = known.goal, record.reports[-1]
    if (met := next(filter(goal.is_met, record.run), None)) is not None:
        why = f"reached the target of {goal.wanted} with {goal.metric} {met.value:.4g}"
        return Stop(StopCause.REACHED, why)
    if goal.max_epochs is not None and last.epoch >= goal.max_epochs:
        why = f"not at the target after {counted(goal.max_epochs, 'epoch')}"
        return Stop(StopCause.EPOCHS, why)
    return _turned(known, record)


def _turned(known: Knowledge, record: TrialRecord) -> Stop | None:
    """Stops a run whose metric has long been getting worse."""
    trial = next((each for each in known.live if each.record is record), None)
    since = None if trial is None else turned(trial.gaps)
    if trial is None or since is None:
        return None
    values = {epoch: known.goal.target - known.goal.sign * gap for epoch, gap in trial.gaps}
    epoch, best = max(values.items(), key=lambda pair: known.goal.sign * pair[1])
    last = values[trial.gaps[-1][0]]
    why = (
        f"{known.goal.metric} has got worse since epoch {epoch:g}: {best:.4g} there, {last:.4g} now"
    )
    return Stop(StopCause.EPOCHS, why)


def _guard(
    known: Knowledge, record: TrialRecord, goes: Going, forecast: Planner
) -> Resize | Stop | None:
    if known.goal.deadline_seconds is None or _is_surely_in_time(known, record):
        return None
    seen = chances(
        forecast.outlook(record.key),
        record.allocation.batch_size,
        epoch=record.run[-1].epoch,
        seconds_left=known.limit - record.run_seconds,
        going=goes,
    )
    return guarded(seen, goes)


def _is_surely_in_time(known: Knowledge, record: TrialRecord) -> bool:
    """Tells whether a run meets the deadline by the bounds alone, without a fit."""
    cell, batch = _cell(known, record), record.allocation.batch_size
    key = record.key
    _, seconds = known.time_of(key).bounds(cell)
    _, needed = known.accuracy.bounds(key, batch)
    left = needed - record.run[-1].epoch
    return left > 0 and record.run_seconds + seconds * left <= known.limit


def _cell(known: Knowledge, record: TrialRecord) -> Allocation:
    """Returns the cell that a trial holds now, its first one where that is none of the space."""
    cell = present(record, known.space)
    return cell if cell in known.grid.index else record.allocation


def _epochs_left(known: Knowledge, record: TrialRecord) -> float:
    """Bounds the epochs that the run still needs from below."""
    run = record.run
    period = run[-1].epoch - (run[-2].epoch if len(run) > 1 else 0.0)
    needed, _ = known.accuracy.bounds(record.key, record.allocation.batch_size)
    return max(needed - run[-1].epoch, period, 0.0)


def _deadline(known: Knowledge, record: TrialRecord, goes: Going) -> Stop | None:
    limit = known.goal.deadline_seconds
    if limit is None or _least_seconds(known, record, goes) <= limit:
        return None
    why = f"can't reach the target within {limit:g} s: {whole(record.run_seconds)} s have passed"
    return Stop(StopCause.DEADLINE, why)


def _is_within(known: Knowledge, record: TrialRecord) -> bool:
    """Tells whether a run has exceeded no limit of a run yet."""
    cell, seconds = _cell(known, record), record.run_seconds
    return seconds < known.limit and all(
        checked_cost(budget.cost, cell, seconds) <= budget.at_most for budget in known.goal.budgets
    )


def _budget(known: Knowledge, record: TrialRecord, goes: Going) -> Stop | None:
    """Stops a run that can't reach the target for what it may cost in other units."""
    for budget in known.goal.budgets:
        seconds = _least_seconds(known, record, goes)
        cell = known.space.cells[min(_ahead(known, record, goes))]
        if checked_cost(budget.cost, cell, seconds) > budget.at_most:
            why = f"can't reach the target for {budget}: {whole(record.run_seconds)} s have passed"
            return Stop(StopCause.DEADLINE, why)
    return None


def _ahead(known: Knowledge, record: TrialRecord, goes: Going) -> list[int]:
    """Returns the places of the cells in which a run may go on."""
    if not goes.can_resize:
        return [known.grid.index[_cell(known, record)]]
    cells, places = known.space.cells, known.grid.at_batch[record.allocation.batch_size].tolist()
    may = [place for place in places if goes.allows(cells[place])]
    return may or [known.grid.index[record.allocation]]


def _least_seconds(known: Knowledge, record: TrialRecord, goes: Going) -> float:
    """Bounds the time of the whole run to the target from below, on whatever workers it may."""
    ahead = known.time_of(record.key).log_least[_ahead(known, record, goes)]
    return record.run_seconds + float(np.exp(ahead.min())) * _epochs_left(known, record)


def _worth(known: Knowledge, record: TrialRecord) -> Stop | None:
    """Stops a run that can't save, over the planned runs, what finishing it costs."""
    if not known.tally.best:  # nothing has reached the target
        return None
    cell, key = _cell(known, record), record.key
    alike = known.tally.hits(cell.batch_size, key)
    left = _epochs_left(known, record)
    epochs = record.run[-1].epoch + left
    best = _best_case(known, record, epochs, is_beyond=alike is not None and epochs > alike.most)
    is_known = alike is not None and cell in alike.in_time
    if not is_known and _surely_saves(known, record, best, left):
        return None
    incumbent = known.incumbent
    if incumbent is None or incumbent.record is record:
        return None
    if alike is not None and is_known:
        return Stop(StopCause.COST, _is_known(alike.in_time[cell][1]))
    price = known.cost_of(cell, known.time_of(key).predict(cell).mid * left)
    saving = known.remaining_runs * (known.cost_to_beat(incumbent) - best)
    if saving > price:
        return None
    return Stop(StopCause.COST, _why(known, incumbent, best))


def _elsewhere(known: Knowledge, record: TrialRecord) -> Stop | None:
    """Stops a run that can show nothing but how long epochs take on its type of machine.

    Its batch and recipe have reached the target on another one. The first epoch may hold one-off
    work: it makes two.
    """
    alike = known.tally.hits(record.allocation.batch_size, record.key)
    types = set() if alike is None else {cell.node_type for cell in alike.own}
    is_shown = bool(types) and record.allocation.node_type not in types
    if alike is None or not is_shown or not known.is_delivered or len(record.run) == 1:
        return None
    other = alike.latest.record
    where = other.allocation.node_type or "machines of no named type"  # an earlier sweep's
    why = (
        f"{other.trial_id} reached the target at the same batch with the same recipe on {where}: "
        "its epochs are known, and those of this type are timed"
    )
    return Stop(StopCause.COST, why)


def _surely_saves(known: Knowledge, record: TrialRecord, best: float, left: float) -> bool:
    """Tells whether a run may save more than it costs by the bounds alone, without a fit.

    The likely epoch times lie within their bounds: what is known to do costs no less than by
    the lower ones, going on no more than by the upper one.
    """
    cell = _cell(known, record)
    _, most = known.time_of(record.key).bounds(cell)
    if not math.isfinite(most) or may_fall(known.cost):
        return False
    rival = known.goal.rival_cost or math.inf
    saving = known.remaining_runs * (min(known.plans.least_cost, rival) - best)
    return saving > known.cost_of(cell, most * left)


def _best_case(known: Knowledge, record: TrialRecord, epochs: float, *, is_beyond: bool) -> float:
    """Returns the least cost of this batch and recipe on any number of workers.

    Beyond the epochs that they are known to need, a run can show something of its own cell
    alone: what the others cost is known better from the run that needed fewer.
    """
    if is_beyond:
        places = np.array([known.grid.index[_cell(known, record)]])
    else:
        at_batch = known.grid.batches[known.places] == record.allocation.batch_size
        places = known.places[at_batch]
    time = known.time_of(record.key)
    seconds = known.least_seconds_of(places, epochs, time)
    in_time = known.keeps(places, seconds)
    costs = known.least_costs_of(places[in_time], seconds[in_time])
    return float(costs.min(initial=math.inf))


def _is_known(other: Digest) -> str:
    epoch = 0.0 if other.reached is None else other.reached.epoch
    return (
        f"{other.record.trial_id} reached the target in the same cell with the same recipe at "
        f"epoch {epoch:g}: finishing it can save nothing"
    )


def _why(known: Knowledge, incumbent: Incumbent, best: float) -> str:
    if math.isinf(best):
        return "can't reach the target by the deadline on any number of workers"
    least, done = told_apart(best, known.cost_to_beat(incumbent))
    return (
        f"needs at least {least} {known.cost.unit} where {done} are known to do: finishing it "
        "costs more than it can save"
    )
