"""A view of a session."""

from collections.abc import Iterator, Mapping

from raycosttune.core.audit import audit
from raycosttune.core.class_pace import scores
from raycosttune.core.decision import FOUND
from raycosttune.core.explain import begun_with, limits, next_step, profile_line
from raycosttune.core.figure import counted, listed
from raycosttune.core.frontier import Point, frontier, named, points
from raycosttune.core.held import paid, paid_for, parts
from raycosttune.core.incumbent import bounded_cost
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import TrialRecord
from raycosttune.core.plan import Plan
from raycosttune.core.prediction import Prediction
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.report.glance import expected_epochs
from raycosttune.report.times import Times
from raycosttune.report.view import (
    Assumption,
    Cell,
    Choice,
    Held,
    Need,
    Planned,
    Profiled,
    Status,
    Trial,
    View,
    Workers,
)

RECIPES = 12  # a heat map's rows
CHOICES = 1000  # points of a figure
EXPECTED = 100  # trials whose end is predicted


def view_of(
    session: Session,
    times: Times,
    *,
    name: str = "",
    why: Mapping[str, str] | None = None,
    workers: Mapping[str, Workers] | None = None,
) -> View:
    """Looks at a session.

    Args:
        session: What is known; it is asked for nothing that changes it.
        times: When things happened.
        name: Name of the run.
        why: Why each trial was started, by its id.
        workers: What the workers of trials did, by their ids.
    """
    known, plan = session.known, session.plan()
    among = points(known)
    found = plan if isinstance(plan, Plan) else None
    status, note = _status(session, times)
    return View(
        name=name,
        status=status,
        note=note,
        goal=session.goal,
        unit=session.cost.unit,
        summary=str(plan),
        plan=None if found is None else _planned(found),
        spent=session.spent,
        elapsed_seconds=times.elapsed_seconds,
        is_timed=times.is_timed,
        trials=tuple(_trials(session, times, why or {}, workers or {})),
        cells=tuple(_cells(known, among)),
        needs=tuple(_needs(known)),
        choices=tuple(_choices(known, among)),
        assumptions=tuple(Assumption(a.name, a.slack, a.breaks) for a in audit(known)),
        notes=(
            *begun_with(session.prior),
            ahead_of(session, times),
            *limits(known, plan, among, session.moment.surface),
        ),
        profiles=tuple(
            Profiled(
                profile_line(known, record),
                paid_for(record, session.cost),
                tuple(times.held.get(record.trial_id, ())),
            )
            for record in session.profiles.values()
        ),
    )


def ahead_of(session: Session, times: Times) -> str:
    """Says which run comes next, or why none does: as the search itself has said, if it has."""
    is_over = times.over and not session.live and not session.live_profiles
    return f"ended: {times.over}" if is_over else next_step(session.known, session.ahead)


def _status(session: Session, times: Times) -> tuple[Status, str]:
    live = len(session.live) + len(session.live_profiles)
    if not session.records and not session.profiles:
        return Status.EMPTY, "no trial has started"
    if live:
        return Status.RUNNING, f"{counted(live, 'trial')} running"
    return Status.FINISHED, times.over or "nothing runs"


def _planned(plan: Plan) -> Planned:
    cell = plan.allocation
    return Planned(
        what=cell.named(plan.recipe),
        config={
            "workers": cell.workers,
            "batch_size": cell.batch_size,
            **({"node_type": cell.node_type} if cell.node_type else {}),
            **plan.recipe,
        },
        trial_id=plan.trial_id,
        checkpoint=plan.checkpoint,
        epochs=plan.epochs,
        seconds=plan.predicted_seconds,
        cost=plan.predicted_cost,
        gap=plan.certificate.gap,
        untried=plan.certificate.untried,
        likely_saving=plan.likely_saving,
    )


def _trials(
    session: Session, times: Times, why: Mapping[str, str], workers: Mapping[str, Workers]
) -> Iterator[Trial]:
    known, last = session.known, len(session.records) - EXPECTED
    own = known.digests[len(known.earlier) :]
    for turn, (digest, record) in enumerate(zip(own, known.records, strict=True)):
        cell, ended = record.allocation, record.ended
        may_reach = digest.reached is None and record.reports
        is_told = may_reach and (record.is_live or turn >= last)
        reason = why.get(record.trial_id, "")
        yield Trial(
            trial_id=record.trial_id,
            what=_what(record, session.space),
            workers=cell.workers,
            batch_size=cell.batch_size,
            nodes=cell.nodes,
            recipe=dict(record.recipe),
            why="" if reason == FOUND else reason,
            end="running" if ended is None else ended.cause.value,
            reason="" if ended is None else ended.reason,
            reached=None if digest.reached is None else digest.reached.epoch,
            expected=expected_epochs(known, record) if is_told else None,
            epochs=tuple(report.epoch for report in record.run),
            values=tuple(report.value for report in record.run),
            seconds=record.seconds,
            cost=paid(record, session.space, session.cost),
            attempts=max((report.attempt for report in record.reports), default=1),
            held=tuple(times.held.get(record.trial_id) or _unseen(record)),
            checkpoint=next((r.checkpoint for r in reversed(record.run) if r.checkpoint), None),
            measured=workers.get(record.trial_id),
            node_type=cell.node_type,
        )


def _what(record: TrialRecord, space: Space) -> str:
    cell, (_, *later) = record.allocation, (held.workers for held, _ in parts(record, space))
    moved = "".join(f", then {counted(workers, 'worker')}" for workers in later)
    return cell.named(record.recipe) + moved


def _unseen(record: TrialRecord) -> list[Held]:
    return [Held(0.0, record.seconds, record.allocation.workers)]


def _reference(known: Knowledge) -> str | None:
    """Returns the recipe that predictions are made with: the plan's, else the best reported."""
    if known.incumbent is not None:
        return known.incumbent.recipe
    scored = zip(scores(known), known.accuracy.recipes, strict=True)
    return min(scored, default=(0.0, None))[1]


def _cells(known: Knowledge, among: tuple[Point, ...]) -> Iterator[Cell]:
    recipe, is_timed = _reference(known), not known.time.is_empty
    time = known.time_of(recipe)
    done = {point.allocation: point for point in among if point.recipe == recipe}
    for cell in known.space.cells:
        point = done.get(cell)
        epoch = _within(time.predict(cell).mid, *time.bounds(cell))
        run = _seconds(known, cell, recipe) if is_timed and recipe is not None else None
        yield Cell(
            cell.workers,
            cell.batch_size,
            cell.nodes,
            epoch if is_timed else None,
            None if run is None else bounded_cost(known.cost, cell, run),
            run,
            is_timed=is_timed and time.is_measured(cell),
            is_measured=point is not None and point.is_measured,
            node_type=cell.node_type,
        )


def _seconds(known: Knowledge, cell: Allocation, recipe: str) -> Prediction:
    low, high = known.accuracy.bounds(recipe, cell.batch_size)
    time = known.time_of(recipe)
    epoch, (least, most) = time.predict(cell).mid, time.bounds(cell)
    start, epochs = known.startup.predict(cell), known.accuracy.samples
    mid = start.mid + epoch * epochs(recipe, cell.batch_size).mean
    return _within(mid, start.low + least * low, start.high + most * high)


def _within(mid: float, low: float, high: float) -> Prediction:
    return Prediction(min(low, mid), mid, max(high, mid))


def _needs(known: Knowledge) -> Iterator[Need]:
    scored = sorted(zip(scores(known), known.accuracy.recipes, strict=True))
    first = [] if known.incumbent is None else [known.incumbent.recipe]
    keys = list(dict.fromkeys([*first, *(key for _, key in scored)]))[:RECIPES]
    batches = sorted({cell.batch_size for cell in known.space.cells})
    for key in keys:
        seen = known.tally.epochs[key].seen
        for batch in batches:
            mid = known.accuracy.samples(key, batch).mean
            epochs = _within(mid, *known.accuracy.bounds(key, batch))
            reached = batch in seen and bool(seen[batch].reached)
            yield Need(listed(known.recipes[key]), batch, epochs, reached)


def _choices(known: Knowledge, among: tuple[Point, ...]) -> Iterator[Choice]:
    best = set(map(id, frontier(among)))
    kept = [p for p in among if id(p) in best or p.is_of(known.incumbent)]
    others = sorted((p for p in among if p not in kept), key=lambda p: p.cost)
    for point in sorted([*kept, *others[:CHOICES]], key=lambda p: (p.seconds, p.cost)):
        yield Choice(
            what=named(known, point),
            seconds=point.seconds,
            deadline=point.deadline,
            cost=point.cost,
            is_measured=point.is_measured,
            is_plan=point.is_of(known.incumbent),
            is_best=id(point) in best,
        )
