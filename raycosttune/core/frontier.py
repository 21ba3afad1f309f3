"""What other deadlines would cost, and whether the deadline can be met at all."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from raycosttune.core.figure import counted, of_type, told_apart
from raycosttune.core.incumbent import Incumbent, cautious
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.space import Allocation

DIGITS = 3


@dataclass(frozen=True)
class Point:
    """Is a configuration and what a run of it takes.

    Attributes:
        allocation: Workers and batch.
        recipe: Key of the recipe.
        deadline: The least deadline in seconds that it counts as meeting.
        seconds: Start-up and training to the target.
        cost: What that costs.
        is_measured: Whether its epochs and its epoch time are both measured.
    """

    allocation: Allocation
    recipe: str
    deadline: float
    seconds: float
    cost: float
    is_measured: bool

    def is_of(self, plan: Incumbent | None) -> bool:
        """Tells whether it is the configuration of a plan."""
        return plan is not None and (plan.allocation, plan.recipe) == (self.allocation, self.recipe)


def points(known: Knowledge) -> tuple[Point, ...]:
    """Returns every measured configuration, and the other cells as predicted.

    They are predicted with the recipe of the plan, or of the cheapest measured configuration
    where there is no plan. Nothing is predicted before a run has reached the target. What costs
    too much in another unit is left out.
    """
    measured = [_measured(known, *pair) for pair in known.demonstrated]
    if not measured:
        return ()
    best = min(measured, key=lambda point: (not point.is_of(known.incumbent), point.cost))
    found = (*measured, *_predicted(known, best.recipe, measured))
    return tuple(point for point in found if known.affords(point.allocation, point.seconds))


def _measured(known: Knowledge, run: Incumbent, deadline: float) -> Point:
    seconds, cost = run.seconds.mid, run.cost.mid
    point = Point(run.allocation, run.recipe, deadline, seconds, cost, is_measured=True)
    if not point.is_of(known.incumbent):
        return point
    # A run that changed its workers can have met a deadline that its cell alone does not.
    return replace(point, deadline=min(deadline, known.goal.deadline_seconds or math.inf))


def _predicted(known: Knowledge, recipe: str, measured: Sequence[Point]) -> Iterator[Point]:
    done = {point.allocation for point in measured if point.recipe == recipe}
    batches, time = {cell.batch_size for cell in known.cells}, known.time_of(recipe)
    epochs = {batch: known.accuracy.samples(recipe, batch).mean for batch in batches}
    for cell in known.cells:
        if cell not in done:
            epoch = time.predict(cell).mid
            seconds = known.startup.predict(cell).mid + epoch * epochs[cell.batch_size]
            cost, deadline = known.cost_of(cell, seconds), cautious(time, cell, seconds)
            yield Point(cell, recipe, deadline, seconds, cost, is_measured=False)


def named(known: Knowledge, point: Point) -> str:
    """Names the configuration of a point."""
    cell = point.allocation
    return cell.named(known.recipes[point.recipe])


def cheapest(among: Sequence[Point], deadline: float) -> Point | None:
    """Returns the cheapest configuration that meets a deadline."""
    in_time = (point for point in among if point.deadline <= deadline)
    return min(in_time, key=lambda point: (point.cost, point.deadline), default=None)


def frontier(among: Sequence[Point]) -> list[Point]:
    """Returns the configurations that none is both faster and cheaper than, fastest first."""
    best: list[Point] = []
    for point in sorted(among, key=lambda point: (point.deadline, point.cost)):
        if not best or point.cost < best[-1].cost:
            best.append(point)
    return best


def thinned(line: Sequence[Point], most: int, kept: Sequence[Point | None]) -> list[Point]:
    """Leaves out of a frontier what saves least over the next faster one, but never its ends."""
    left = list(line)
    while len(left) > most:
        inner = [k for k in range(1, len(left) - 1) if left[k] not in kept]
        del left[min(inner, key=lambda k: left[k - 1].cost - left[k].cost)]
    return left


def infeasible(known: Knowledge) -> str:
    """Says that no cell can meet the deadline with the recipes tried, or nothing.

    It rests on the bounds alone, as the certificate of a plan does, and on evaluations that
    come no denser than they have come.
    """
    limit = known.goal.deadline_seconds
    recipes = {d.recipe for d in known.digests if d.epochs is not None or d.record.is_live}
    if limit is None or known.incumbent or not recipes or not known.cells:
        return ""
    visible = _visible_epochs(known)
    least: dict[Allocation, float] = {}
    for cell in known.cells:
        batch = cell.batch_size
        epochs = {
            recipe: max(known.accuracy.bounds(recipe, batch)[0], visible.get((batch, recipe), 0.0))
            for recipe in recipes
        }
        least[cell] = min(known.least_seconds(cell, epochs[key], key) for key in recipes)
        if least[cell] <= limit:
            return ""
    cell = min(least, key=lambda cell: least[cell])
    return _verdict(known, cell, least[cell], _most_seconds(known, cell, recipes))


def _verdict(known: Knowledge, cell: Allocation, least: float, most: float) -> str:
    done = min(known.demonstrated, key=lambda pair: pair[1], default=None)
    told = [known.goal.deadline_seconds or 0.0, least, most, *([done[1]] if done else [])]
    largest = max(seconds for seconds in told if math.isfinite(seconds))
    _, low, high, *measured = told_apart(*told, digits=max(DIGITS, len(f"{largest:.0f}")))
    verb = "needs" if cell.workers == 1 else "need"
    span = f"between {low} and {high}" if math.isfinite(most) else f"at least {low}"
    workers = f"{counted(cell.workers, 'worker')}{of_type(cell.node_type)}"
    among = " with the recipes tried" if any(known.recipes.values()) else ""
    text = (
        f"infeasible: even {workers} at batch {cell.batch_size} {verb} "
        f"{span} s{among}; a deadline of at least {low} s may do"
    )
    return f"{text}; measured: {measured[0]} s" if measured else text


def _most_seconds(known: Knowledge, cell: Allocation, recipes: set[str]) -> float:
    """Bounds the time to the target in a cell, with the best of the recipes, from above."""
    return known.startup.predict(cell).high + min(
        known.time_of(recipe).bounds(cell)[1] * known.accuracy.bounds(recipe, cell.batch_size)[1]
        for recipe in recipes
    )


def _visible_epochs(known: Knowledge) -> dict[tuple[int, str], float]:
    """Returns the least epochs after which a batch and recipe can be seen to reach the target.

    A run that has not reached it can do so at its next evaluation.
    """
    steps = (
        later - sooner
        for digest in known.digests
        for sooner, later in pairwise((0.0, *(report.epoch for report in digest.record.run)))
        if later > sooner
    )
    step = min(steps, default=0.0)
    visible: dict[tuple[int, str], float] = {}
    for digest in known.digests:
        if (seen := digest.epochs) is not None:
            key, least = (seen.batch_size, seen.recipe), min(seen.high, seen.low + step)
            visible[key] = min(visible.get(key, math.inf), least)
    return visible
