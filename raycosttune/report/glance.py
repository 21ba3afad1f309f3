"""A sweep at a glance: what it has, what runs, what comes next."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from raycosttune.core.decision import FOUND
from raycosttune.core.explain import next_step
from raycosttune.core.figure import counted, whole
from raycosttune.core.goal import Goal
from raycosttune.core.held import paid, present
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import TrialRecord
from raycosttune.core.plan import NoPlan, Plan
from raycosttune.core.prediction import Prediction
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation
from raycosttune.results.replay import why_started

REHEARSED = 50  # trials up to which what is still to come is estimated
REHEARSED_CELLS = 1000  # and cells: some 3 s


@dataclass(frozen=True)
class Running:
    """Is a trial that runs.

    Attributes:
        trial_id: Tune's name of it.
        what: Its configuration in words, on the workers that it holds now.
        why: Why it was started, the end of a sentence.
        moved: Why it holds other workers than those it started on, a sentence, empty where not.
        epoch: Epochs done.
        value: Last value of the metric, None before the first.
        expected: Epochs to the target as far as is known, None before the first report.
        seconds: Wall time paid up to its last report.
        seconds_left: Likely seconds to the target, None before the first report.
        cost: What it has cost.
    """

    trial_id: str
    what: str
    why: str
    moved: str
    epoch: float
    value: float | None
    expected: float | None
    seconds: float
    seconds_left: float | None
    cost: float


@dataclass(frozen=True)
class Best:
    """Is the plan so far.

    Attributes:
        what: Its configuration in words.
        cost: What a run costs.
        seconds: What a run takes.
        gap: Largest fraction of the cost that anything untried could save.
        saving: The same in words.
    """

    what: str
    cost: Prediction
    seconds: Prediction
    gap: float
    saving: str


@dataclass(frozen=True)
class Glance:
    """Is what there is to see of a sweep on a few lines.

    Attributes:
        name: Name of the run.
        goal: Target and limits.
        unit: Unit of the costs.
        spent: What the search has cost.
        elapsed_seconds: Wall time of the sweep.
        workers: Workers that trials hold.
        trials: Trials started.
        ends: How many of them ended how.
        best: The plan so far, None while there is none.
        nothing: Why there is no plan.
        running: The trials that run.
        profiles: Profiles that run.
        last: The trial started last that has ended, and why it did, empty before the first.
        ahead: What comes next, or why nothing does, a sentence.
        to_come: What is likely still to come, empty where it isn't worked out.
    """

    name: str
    goal: Goal
    unit: str
    spent: float
    elapsed_seconds: float
    workers: int
    trials: int
    ends: dict[str, int]
    best: Best | None
    nothing: str
    running: tuple[Running, ...]
    profiles: int
    last: str
    ahead: str
    to_come: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing runs and nothing comes."""
        return not self.running and not self.profiles and self.ahead.startswith("ended: ")


def glance_of(session: Session, *, name: str = "", to_come: str = "") -> Glance:
    """Looks at a session; it is asked for nothing that changes it.

    Args:
        session: The session.
        name: Name of the run.
        to_come: See `Glance`.
    """
    known, plan = session.known, session.plan()
    found = plan if isinstance(plan, Plan) else None
    ends = Counter(r.ended.cause.value for r in known.records if r.ended is not None)
    return Glance(
        name=name,
        goal=session.goal,
        unit=session.cost.unit,
        spent=session.spent,
        elapsed_seconds=session.elapsed_seconds,
        workers=session.committed_workers,
        trials=len(known.records),
        ends=dict(ends),
        best=None if found is None else _best(found),
        nothing=plan.reason if isinstance(plan, NoPlan) else "",
        running=tuple(_running(session, known, record) for record in session.live),
        profiles=len(session.live_profiles),
        last=_last(session, known.records),
        ahead=next_step(known, session.ahead),
        to_come=to_come,
    )


def to_come(session: Session) -> str:
    """Says what is likely still to come; nothing of a sweep that is large or over."""
    if len(session.records) > REHEARSED or len(session.space.cells) > REHEARSED_CELLS:
        return ""
    estimate = session.estimate()
    if estimate.over or estimate.remaining is None:
        return ""
    likely = f"likely {estimate.remaining.mid:.3g} {estimate.unit}"
    few, many = (f"{count:.0f}" for count in (estimate.trials.low, estimate.trials.high))
    if many == "0":
        return f"{likely} for what runs"
    trials = counted(estimate.trials.low, "trial") if few == many else f"{few} to {many} trials"
    return f"{trials}, {likely}"


def _last(session: Session, records: Sequence[TrialRecord]) -> str:
    record = next((record for record in reversed(records) if record.ended is not None), None)
    if record is None or record.ended is None:
        return ""
    cell, end = present(record, session.space), record.ended
    cause = end.cause.value.replace("_", " ")
    is_said = end.reason.startswith(cause)
    why = end.reason if is_said else f"{cause}: {end.reason}" if end.reason else cause
    return f"{record.trial_id}: {cell.named(record.recipe)}: {why}"


def _best(plan: Plan) -> Best:
    cell = plan.allocation
    what = cell.named(plan.recipe)
    certificate = plan.certificate
    seconds, cost = plan.predicted_seconds, plan.predicted_cost
    return Best(what, cost, seconds, certificate.gap, certificate.saving)


def _running(session: Session, known: Knowledge, record: TrialRecord) -> Running:
    held = present(record, session.space)
    why = why_started(session, record.trial_id)
    values = [report.value for report in record.run if report.value is not None]
    expected = expected_epochs(known, record) if values else None
    return Running(
        trial_id=record.trial_id,
        what=held.named(record.recipe),
        why="" if why == FOUND else why,
        moved=_moved(record, held.workers),
        epoch=record.epoch,
        value=values[-1] if values else None,
        expected=expected,
        seconds=record.seconds,
        seconds_left=None if expected is None else _left(known, record, held, expected),
        cost=paid(record, session.space, session.cost),
    )


def _moved(record: TrialRecord, workers: int) -> str:
    started = record.allocation.workers
    if workers == started:
        return ""
    because = "" if record.resized is None else record.resized.reason
    return f"it began on {counted(started, 'worker')}{f': {because}' if because else ''}"


def expected_epochs(known: Knowledge, record: TrialRecord) -> float | None:
    """Returns the epochs after which a trial is likely at the target, None of a foreign batch."""
    batch = record.allocation.batch_size
    if all(cell.batch_size != batch for cell in known.space.cells):
        return None
    return max(known.accuracy.samples(record.key, batch).mean, record.epoch)


def _left(known: Knowledge, record: TrialRecord, held: Allocation, expected: float) -> float | None:
    """Returns the likely seconds to the target at the pace of the run on its present workers."""
    pace = _pace(record, held.workers)
    if pace is None and held in known.space.cells and not known.time.is_empty:
        pace = known.time_of(record.key).predict(held).mid
    return None if pace is None else (expected - record.epoch) * pace


def _pace(record: TrialRecord, workers: int) -> float | None:
    """Returns the seconds of an epoch on so many workers, None before one is done on them."""
    before, epochs, seconds, now = 0.0, 0.0, 0.0, record.allocation.workers
    for report in record.run:
        now = report.workers or now
        if now == workers:
            epochs += report.epoch - before
            seconds += report.training_seconds
        before = report.epoch
    return seconds / epochs if epochs > 0 else None


def told(running: Running, goal: Goal) -> str:
    """Says how far a running trial was at its last report."""
    name = f"{running.trial_id}: {running.what}"
    if running.value is None:
        return f"{name}: starting"
    metric = goal.metric or "metric"
    so_far = f"{name}: {counted(running.epoch, 'epoch')}, {metric} {running.value:.4g}"
    if running.expected is None or running.seconds_left is None:
        return so_far
    ahead = f"target expected at epoch {running.expected:.3g}, in {whole(running.seconds_left)} s"
    if goal.deadline_seconds is None:
        return f"{so_far}; {ahead}"
    left = max(goal.deadline_seconds - running.seconds, 0.0)
    return f"{so_far}; {ahead}; deadline in {whole(left)} s"
