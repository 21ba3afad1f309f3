"""Why there is no plan: what was tried, how near it came, and the way out."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from raycosttune.core.digest import seconds_to_target
from raycosttune.core.figure import counted, spanned, whole
from raycosttune.core.frontier import infeasible
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.limits import last_end
from raycosttune.core.observation import EndCause, TrialRecord

NEAR = 0.25  # of the gap between the worst value seen and the target


@dataclass(frozen=True)
class Nearest:
    """Is the evaluation that came nearest to the target.

    Attributes:
        record: Its trial.
        epoch: Its epoch.
        value: Its value.
        counts: Whether it was made in time and keeps every bound on other metrics.
    """

    record: TrialRecord
    epoch: float
    value: float
    counts: bool


def shortfall(known: Knowledge, limit: str) -> str:
    """Says what was tried, how near it came and why no more is, without a full stop.

    Args:
        known: What the records say; there is no plan.
        limit: Which limit of the sweep has ended it, empty for none.
    """
    goal, records = known.goal, known.records
    running = sum(record.is_live for record in records)
    tried = counted(len(records), "trial") + (f", {running} running" if running else "")
    if not records:
        return "no trial has started"
    if not any(record.reports for record in records) and running:
        return f"{tried}, nothing reported yet"
    late = [seconds_to_target(r, goal) for r in records if any(map(goal.is_met, r.run))]
    best = nearest(records, goal)
    if late:
        near = f"the fastest one at the target took {whole(min(late))} s"
    elif best is not None:
        near = f"the best was {best.value:.4g}{'' if running else _where(best)}"
    elif any(record.reports for record in records):
        near = f"none reported a finite {goal.metric!r}"
    else:
        near = "nothing was reported"
    tried = f"{tried}, none reached {_wanted(goal)}; {near}"
    if running:
        return f"{tried}; the search ended: {limit}" if limit else tried
    return tried + _end(known, limit, "" if late else last_end(records)) + _way_out(best, known)


def nearest(records: Sequence[TrialRecord], goal: Goal) -> Nearest | None:
    """Returns the evaluation nearest to the target; where there is one, one that counts."""
    seen = (each for record in records for each in _evaluations(record, goal))
    return max(seen, key=lambda at: (at.counts, goal.sign * at.value), default=None)


def _evaluations(record: TrialRecord, goal: Goal) -> Iterator[Nearest]:
    limit, seconds = goal.deadline_seconds or math.inf, 0.0
    for report in record.run:
        seconds += report.seconds
        if report.value is not None:
            counts = seconds <= limit and goal.allows(report)
            yield Nearest(record, report.epoch, report.value, counts)


def _wanted(goal: Goal) -> str:
    bounds = "".join(f" with {constraint}" for constraint in goal.constraints)
    limit = goal.deadline_seconds
    within = "" if limit is None else f" within {limit:g} s"
    return f"{goal.metric} {goal.target:g}{bounds}{within}"


def _where(best: Nearest) -> str:
    record = best.record
    cell = record.allocation.named(record.recipe)
    made = counted(record.epoch, "epoch")
    when = made if best.epoch == record.epoch else f"{best.epoch:g} of the {made}"
    return f", after {when} of {record.trial_id} ({cell})"


def _end(known: Knowledge, limit: str, last: str) -> str:
    own = _own_ends(known.records, known.goal)
    if limit:
        return f"{own}; the search ended: {limit}"
    verdict = infeasible(known)
    return f"{own}; {verdict}" if verdict else own + last


def _own_ends(records: Sequence[TrialRecord], goal: Goal) -> str:
    """Says how many runs ended by themselves with time left, and when; nothing for none."""
    limit = goal.deadline_seconds or math.inf
    own = [
        record
        for record in records
        if record.ended is not None
        and record.ended.cause is EndCause.FINISHED
        and any(report.value is not None for report in record.reports)
        and record.run_seconds < limit
    ]
    if not own:
        return ""
    all_of_them = "it" if len(records) == 1 else f"all {len(records)}"
    who = all_of_them if len(own) == len(records) else f"{len(own)} of them"
    epochs = spanned([record.epoch for record in own], lambda epoch: f"{epoch:g}")
    seconds = spanned([record.run_seconds for record in own], whole)
    of = "" if math.isinf(limit) else f" of {limit:g}"
    return (
        f"; {who} ended by {'itself' if len(own) == 1 else 'themselves'} at epoch {epochs}, "
        f"after {seconds} s{of}: let a run go on until the search stops it"
    )


def _way_out(best: Nearest | None, known: Knowledge) -> str:
    """Says how to get a plan for what was reached, where that is near the target."""
    goal = known.goal
    if best is None or not best.counts or goal.budgets:
        return ""
    values = [r.value for record in known.records for r in record.run if r.value is not None]
    worst = max(goal.sign * (goal.target - value) for value in values)
    gap = goal.sign * (goal.target - best.value)
    if not 0 < gap <= NEAR * worst:
        return ""
    target = _rounded(best.value, gap, goal.sign)
    return f"; a plan for less needs no trial: raycosttune plan RUN --target {target:.12g}"


def _rounded(value: float, gap: float, sign: int) -> float:
    """Rounds to fewer digits, to the worse side, by less than the gap to the target."""
    step = Decimal(1).scaleb(math.floor(math.log10(gap)))
    side = ROUND_FLOOR if sign > 0 else ROUND_CEILING
    return float((Decimal(repr(value)) / step).to_integral_value(side) * step)
