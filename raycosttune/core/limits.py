"""The limits of a whole sweep: its deadline, its budget, and trials that lead nowhere."""

import math
from collections.abc import Callable, Mapping, Sequence

from raycosttune.core.decision import Stop, StopCause
from raycosttune.core.experiment import Experiment
from raycosttune.core.figure import whole
from raycosttune.core.held import paid
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, TrialRecord
from raycosttune.core.profile import ProfileRecord

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
    if known.incumbent is not None:
        return ""
    ended = [record for record in records if not record.is_live]
    misnamed = [r for r in ended if r.ended and r.ended.cause is EndCause.MISNAMED]
    if misnamed or len(ended) >= FAILURES_AT_START:
        if not any(record.reports for record in records):
            end = last_end(ended) or ": see their errors"
            return f"the first {len(ended)} trials ended without a report{end}"
        if not any(report.value is not None for record in records for report in record.reports):
            return f"{_none_usable(known, len(ended))}{last_end(misnamed or ended)}"
    if len(ended) < len(records):
        return ""
    if len(records) >= 2 * len(known.space.cells) + 3:
        late = "" if known.goal.deadline_seconds is None else " by the deadline"
        if all(record.ended and record.ended.cause is EndCause.FINISHED for record in records):
            late = " before they ended by themselves"
        return f"{len(records)} trials did not reach the target{late}"
    return ""


def used_up(known: Knowledge, num_samples: float, ahead: Callable[[], object]) -> str:
    """Says that no further trial may begin in a sweep whose search would go on, or nothing.

    Args:
        known: What the records say.
        num_samples: Most trials and profiles that may begin.
        ahead: Returns what comes next, a text where nothing does.
    """
    begun: list[TrialRecord | ProfileRecord] = [*known.records, *known.profiles]
    is_open = len(begun) < num_samples or any(record.is_live for record in begun)
    if is_open or isinstance(ahead(), str):
        return ""
    return (
        f"num_samples={num_samples:g} allowed no further trial; with -1 the search ends by itself"
    )


def last_end(records: Sequence[TrialRecord]) -> str:
    """Says, as the rest of a sentence, how the last trial ended, where that is known."""
    end = records[-1].ended if records else None
    return "" if end is None or not end.reason else f"; the last one: {end.reason.rstrip('.')}"


def limit_met(known: Knowledge, spent: float) -> str:
    """Says which limit of the sweep has ended it as far as its records tell, or nothing."""
    late = reached_limit(known, spent=0.0, elapsed_seconds=math.inf)
    ends = [record.ended.reason for record in known.records if record.ended]
    if late and any(reason.startswith(late) for reason in ends):
        return late
    return reached_limit(known, spent=spent, elapsed_seconds=0.0)


def _none_usable(known: Knowledge, ended: int) -> str:
    which = "the first trial never" if ended == 1 else f"none of the first {ended} trials"
    return f"{which} reported a finite {known.goal.metric!r}"


def overdue(
    known: Knowledge, unheard: Mapping[str, float], *, spent: float | None, elapsed_seconds: float
) -> dict[str, Stop]:
    """Returns the trials and profiles that a limit ends though they say nothing, and why.

    Args:
        known: What the records say.
        unheard: Seconds since the last report of each, by trial.
        spent: What the reports have cost, None where the cost metric fails.
        elapsed_seconds: Wall time of the sweep.
    """
    goal, live = known.goal, [trial.record for trial in known.live]
    is_counted = spent is not None and goal.sweep_budget is not None
    spent = spent or 0.0
    for record in live if is_counted else ():
        so_far = (known.space, known.cost)
        since = unheard.get(record.trial_id, 0.0)
        spent += paid(record, *so_far, unheard=since) - paid(record, *so_far)
    if reason := reached_limit(known, spent=spent, elapsed_seconds=elapsed_seconds):
        profiles = [record.trial_id for record in known.profiles if record.is_live]
        names = [*(record.trial_id for record in live), *profiles]
        return dict.fromkeys(names, Stop(StopCause.BUDGET, reason))
    late = {}
    for record in live if goal.deadline_seconds is not None else ():
        seconds = record.run_seconds + unheard.get(record.trial_id, 0.0)
        if seconds > known.limit:
            silent = unheard[record.trial_id]
            why = f"{whole(seconds)} s have passed, {whole(silent)} s since a report"
            late[record.trial_id] = Stop(StopCause.DEADLINE, why)
    return late


def affordable(
    known: Knowledge, ranked: Sequence[Experiment], *, spent: float, elapsed_seconds: float
) -> list[Experiment]:
    """Returns the runs that can be expected to end within the limits of the sweep.

    Before anything is measured there is nothing to expect, and the first run starts.
    """
    if not known.goal.is_limited or known.time.is_empty:
        return list(ranked)
    return [run for run in ranked if _is_affordable(known, run, spent, elapsed_seconds)]


def _is_affordable(
    known: Knowledge, experiment: Experiment, spent: float, elapsed_seconds: float
) -> bool:
    goal = known.goal
    deadline = goal.sweep_deadline_seconds
    if deadline is not None and elapsed_seconds + experiment.seconds > deadline:
        return False
    if goal.sweep_budget is None:
        return True
    whole = experiment.price if known.incumbent is None else known.incumbent.cost.mid
    return spent + _committed(known, whole) + experiment.price <= goal.sweep_budget


def _committed(known: Knowledge, whole: float) -> float:
    """Returns what the running trials are still expected to cost, where one costs `whole`."""
    return math.fsum(
        max(whole - paid(trial.record, known.space, known.cost), 0.0) for trial in known.live
    )
