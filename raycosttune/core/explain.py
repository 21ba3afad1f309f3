"""Why the trials ran, what comes next, what bounds the plan and what that costs, in words."""

import math
from collections.abc import Iterator, Mapping, Sequence

from raycosttune.core.audit import against
from raycosttune.core.class_pace import class_paces
from raycosttune.core.decision import FOUND
from raycosttune.core.experiment import Experiment
from raycosttune.core.figure import counted, of_type, whole
from raycosttune.core.frontier import Point, cheapest, frontier, infeasible, named, points, thinned
from raycosttune.core.held import is_additive, paid, paid_for
from raycosttune.core.in_time import best_in_time
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.metric_surface import MetricSurface
from raycosttune.core.observation import Resized, TrialRecord
from raycosttune.core.plan import NoPlan, Plan
from raycosttune.core.price import deadline_price, metric_price
from raycosttune.core.prior import Prior
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.shortfall import nearest

RUNNERS_UP = 3
ROWS = 5  # with its heading the frontier has six lines


def explain(
    known: Knowledge,
    why: Mapping[str, str],
    ahead: Experiment | Profile | str,
    plan: Plan | NoPlan,
    prior: Prior | None = None,
    surface: MetricSurface | None = None,
    *,
    early: str = "",
) -> str:
    """Says what each trial showed and why it ran, what comes next, the plan and its limits.

    Args:
        known: What the records say.
        why: Why each trial was started, by its id.
        ahead: The run or profile that comes next, or why none does.
        plan: The plan, or why there is none.
        prior: What an earlier sweep showed, if anything.
        surface: What is likely of the metric, None where nothing tells.
        early: What has ended a search that would go on, empty for nothing.

    Returns:
        What an earlier sweep brought, one line a profile and a trial, what these cost by
        themselves where the sweep is billed as a whole, then the next step, the plan, and as far
        as each is known: how epoch times differ among recipes, the verdict that no cell can meet
        the deadline, how near to the target runs come by it, whether it binds, what it and the
        last of the accuracy cost, the runner-up plans, what speaks against the assumptions of
        the bounds, and the frontier.
    """
    lines = begun_with(prior)
    lines += [profile_line(known, record) for record in known.profiles]
    lines += [_line(known, record, why.get(record.trial_id, "")) for record in known.records]
    lines += _apart(known)
    lines.append(next_step(known, ahead))
    lines.append(str(plan) if isinstance(plan, NoPlan) else f"plan: {plan}")
    among = points(known)
    lines += class_paces(known)
    lines += limits(known, plan, among, surface)
    lines += against(known)
    lines += _frontier(known, among)
    lines += [f"ended early: {early}"] if early else []
    return "\n".join(lines)


def begun_with(prior: Prior | None) -> list[str]:
    """Says what the sweep began with, nothing where that was nothing."""
    has_any = prior is not None and (prior.records or prior.profiles)
    return [f"known from an earlier sweep: {prior}"] if has_any else []


def limits(
    known: Knowledge,
    plan: Plan | NoPlan,
    among: Sequence[Point],
    surface: MetricSurface | None = None,
) -> list[str]:
    """Says what bounds a plan, what that costs, and the runner-up plans; see `explain`."""
    lines: list[str] = []
    verdict = infeasible(known)
    if verdict and verdict not in str(plan):
        lines.append(verdict)
    if isinstance(plan, NoPlan) and surface is not None:
        lines += best_in_time(known, surface)
    incumbent = known.incumbent
    if incumbent is not None and isinstance(plan, Plan):
        lines += deadline_price(known, incumbent, among)
        lines += metric_price(known, incumbent, plan.trial_id)
    return [*lines, *_runners_up(known, among)]


def next_step(known: Knowledge, ahead: Experiment | Profile | str) -> str:
    """Says which run comes next, or why none does."""
    if isinstance(ahead, Profile):
        return f"next: {_named(ahead)}, which {ahead.why}"
    if isinstance(ahead, str):
        runs = any(record.is_live for record in known.records)
        is_over = not runs and not any(record.is_live for record in known.profiles)
        return f"ended: {ahead}" if is_over else f"next: none, as {ahead}"
    recipe = {} if ahead.recipe is None else known.recipes.get(ahead.recipe, {})
    fresh = ", other hyperparameters" if ahead.recipe is None else ""
    cell = ahead.allocation
    return f"next: {cell.named(recipe)}{fresh}, which {ahead.why}"


def _named(profile: Profile) -> str:
    cells = counted(len(profile.cells), "cell")
    held = profile.held
    return f"a profile of {cells} on {counted(held.workers, 'worker')}{of_type(held.node_type)}"


def profile_line(known: Knowledge, record: ProfileRecord) -> str:
    """Says what a profile was for, what it cost and how it ended."""
    end = "running"
    if record.shown is not None:
        end = f"timed {len(record.epoch_seconds)} of them"
    elif record.ended is not None:
        end = record.ended.reason.rstrip(".") or record.ended.cause.value
    cost = f"{paid_for(record, known.cost):.3g} {known.cost.unit}"
    begun = f" Started because it {record.profile.why}." if record.profile.why else ""
    return f"{record.trial_id}: {_named(record.profile)}, {cost}: {end}.{begun}"


def _line(known: Knowledge, record: TrialRecord, why: str) -> str:
    cell = record.allocation
    cost = paid(record, known.space, known.cost)
    end = "running"
    if record.ended is not None:
        end = record.ended.reason.rstrip(".") or record.ended.cause.value
    best = None if any(map(known.goal.is_met, record.run)) else nearest([record], known.goal)
    shown = "" if best is None else f"best {known.goal.metric} {best.value:.4g}, "
    begun = " Found in the journal." if why == FOUND else f" Started because it {why}."
    return (
        f"{record.trial_id}: {cell.named(record.recipe)}, "
        f"{counted(record.epoch, 'epoch')}, {shown}{cost:.3g} {known.cost.unit}: {end}."
        f"{begun if why else ''}{_moved(record.resized)}"
    )


def _apart(known: Knowledge) -> list[str]:
    """Says that trials by themselves cost something else than the sweep, nothing where they don't.

    Machines that are held for several trials are billed once, with the time between.
    """
    own = [paid(record, known.space, known.cost) for record in known.records]
    own += [paid_for(record, known.cost) for record in known.profiles]
    if is_additive(known.cost) or len(own) <= 1:
        return []
    alone = f"{math.fsum(own):.3g} {known.cost.unit}"
    return [f"each by itself they cost {alone}; the sweep is billed as a whole"]


def _moved(change: Resized | None) -> str:
    if change is None:
        return ""
    because = f": {change.reason.rstrip('.')}" if change.reason else ""
    return f" Moved to {counted(change.workers, 'worker')}{because}."


def _runners_up(known: Knowledge, among: Sequence[Point]) -> Iterator[str]:
    """Says which other configurations are measured, those in time first."""
    limit = known.goal.deadline_seconds
    others = [p for p in among if p.is_measured and not p.is_of(known.incumbent)]
    others.sort(key=lambda point: (point.deadline > (limit or math.inf), point.cost))
    for point in others[:RUNNERS_UP]:
        judged = "" if limit is None else f", {_judged(point, limit)}"
        yield (
            f"runner-up: {named(known, point)}: {point.cost:.3g} {known.cost.unit}, "
            f"{whole(point.seconds)} s{judged}"
        )


def _judged(point: Point, limit: float) -> str:
    if point.deadline <= limit:
        return "meets the deadline"
    return "misses the deadline" if point.seconds > limit else "too near the deadline"


def _frontier(known: Knowledge, among: Sequence[Point]) -> Iterator[str]:
    """Tabulates what each deadline costs."""
    line = frontier(among)
    if len(line) == 1 or not line:
        return
    now = cheapest(among, known.goal.deadline_seconds or math.inf)
    plan = next((point for point in line if point.is_of(known.incumbent)), None)
    rows = [("deadline", "workers x batch", known.cost.unit, "")]
    for point in thinned(line, ROWS, (now, plan)):
        cell = point.allocation
        where = "the plan" if point is plan else "measured" if point.is_measured else "predicted"
        size = f"{cell.workers} x {cell.batch_size}{of_type(cell.node_type)}"
        rows.append((f"{whole(point.deadline)} s", size, f"{point.cost:.3g}", where))
    first, second, third = (max(len(row[k]) for row in rows) for k in range(3))
    for deadline, size, cost, where in rows:
        text = f"{deadline:>{first}}  {size:>{second}}  {cost:>{third}}  {where}"
        yield text.rstrip()
