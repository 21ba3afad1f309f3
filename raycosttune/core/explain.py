"""Why the trials ran, and what comes next, in words."""

from collections.abc import Mapping

from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import TrialRecord


def explain(known: Knowledge, why: Mapping[str, str], ahead: str, plan: object) -> str:
    """Says what each trial showed and why it ran, what comes next, and the plan.

    Args:
        known: What the records say.
        why: Why each trial was started, by its id.
        ahead: What comes next, or why nothing does.
        plan: The plan, or why there is none.

    Returns:
        One line a trial, then the next step and the plan.
    """
    lines = [_line(known, record, why.get(record.trial_id, "")) for record in known.records]
    return "\n".join([*lines, f"next: {ahead}", f"plan: {plan}"])


def _line(known: Knowledge, record: TrialRecord, why: str) -> str:
    workers, batch = record.allocation.workers, record.allocation.batch_size
    cost = known.cost_of(record.allocation, record.seconds)
    end = "running"
    if record.ended is not None:
        end = record.ended.reason or record.ended.cause.value
    return (
        f"{record.trial_id}: {workers} {'worker' if workers == 1 else 'workers'}, "
        f"batch {batch}, {record.epoch:g} epochs, "
        f"{cost:.3g} {known.cost.unit}: {end}. Started because it {why}."
    )
