"""What the deadline and the last of the metric cost, in words."""

import math
from collections.abc import Iterator, Sequence

from raycosttune.core.cost import SECONDS_PER_HOUR
from raycosttune.core.figure import told_apart
from raycosttune.core.frontier import Point, cheapest, named
from raycosttune.core.incumbent import Incumbent
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.learning_curve import Points

UNITS = ((SECONDS_PER_HOUR, "hour"), (60.0, "minute"), (1.0, "second"))
STEPS = (0.002, 0.005, 0.01, 0.02, 0.05)  # of the metric, for a target from 0.1 to 1
SEVERAL = 2
EVEN = 1 + 1e-9  # 1 - 0.98 is more than 0.02 in floating point


def deadline_price(known: Knowledge, incumbent: Incumbent, among: Sequence[Point]) -> Iterator[str]:
    """Says whether the plan would change without the deadline, and what more of it saves."""
    limit = known.goal.deadline_seconds
    now = None if limit is None else cheapest(among, limit)
    if limit is None or now is None:
        return
    late = [point for point in among if point.deadline > limit]
    measured = [p for p in late if p.is_measured and p.cost < incumbent.cost.mid]
    likely = [p for p in late if p.cost < now.cost]
    best = min(measured or likely, key=lambda point: point.cost, default=None)
    if best is None:
        yield f"deadline: {limit:g} s does not bind: the plan would be the same without it"
        return
    cost, _ = told_apart(best.cost, incumbent.cost.mid)
    would = "would be the plan" if best.is_measured else "is predicted to do"
    what = named(known, best)
    yield f"deadline: {limit:g} s binds: without it {what} {would} for {cost} {known.cost.unit}"
    if likely:
        yield _saving(known, limit, now, likely)


def _saving(known: Knowledge, limit: float, now: Point, cheaper: Sequence[Point]) -> str:
    """Says what the least more of the deadline saves that saves anything."""
    seconds, unit = next((pair for pair in UNITS if limit >= pair[0]), UNITS[-1])
    nearest = min(point.deadline for point in cheaper)
    count = math.ceil((nearest - limit) / seconds)
    within = max(limit + count * seconds, nearest)
    then = min((p for p in cheaper if p.deadline <= within), key=lambda point: point.cost)
    more = (
        f"one more {unit} of deadline saves"
        if count == 1
        else f"{count} more {unit}s of deadline save"
    )
    before, after = told_apart(now.cost, then.cost)
    is_measured = now.is_measured and then.is_measured
    return (
        f"price: {more} {now.cost - then.cost:.3g} {known.cost.unit}, from {before} to {after} "
        f"({'measured' if is_measured else 'predicted'})"
    )


def metric_price(known: Knowledge, incumbent: Incumbent, trial_id: str) -> Iterator[str]:
    """Says what the last of the metric before the target cost, in the plan's cell.

    It is the least of a few steps that several evaluations of the trial lie in.
    """
    goal = known.goal
    gaps = next(digest.gaps for digest in known.digests if digest.record.trial_id == trial_id)
    reached = _first_within(gaps, 0.0)
    scale = 10.0 ** math.ceil(math.log10(abs(goal.target) or 1.0))
    for step in STEPS:
        short = _first_within(gaps, step * scale)
        if reached - short < SEVERAL:
            continue
        less, cost = (_cost_to(known, incumbent, gaps[k][0]) for k in (short, reached))
        if less < cost:
            yield (
                f"price: the last {step * scale:g} of {goal.metric} cost {cost - less:.3g} "
                f"{known.cost.unit} of the {cost:.3g}"
            )
        return


def _first_within(gaps: Points, step: float) -> int:
    """Returns the place of the first evaluation that close to the target."""
    return next((k for k, (_, gap) in enumerate(gaps) if gap <= step * EVEN), 0)


def _cost_to(known: Knowledge, incumbent: Incumbent, epoch: float) -> float:
    """Returns the cost of so many epochs in the cell of the plan."""
    cell, time = incumbent.allocation, known.time_of(incumbent.recipe)
    seconds = known.startup.predict(cell).mid + time.predict(cell).mid * epoch
    return known.cost_of(cell, seconds)
