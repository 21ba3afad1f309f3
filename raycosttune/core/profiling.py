"""Which cells to time next, and whether that pays."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.fresh import Fresh
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.next_run import worth_before
from raycosttune.core.node_type import Free, free_of
from raycosttune.core.outlook import Outlook
from raycosttune.core.planner import Planner
from raycosttune.core.profile import STEPS, Profile, ProfileRecord
from raycosttune.core.retiming import worth_timing
from raycosttune.core.space import Allocation

SHARE = 0.4  # of the cost put at risk by an unknown epoch time that a profile saves
TOP = 2  # cells timed in one start
LEAST_SD = 0.06
MOST_SD = 0.7
MOST_PROFILES = 40
MOST_CELLS = 8
LEAST_PRICE = 0.1  # of a start's price is counted at least
MOST_FAILED = 2


@dataclass(frozen=True)
class Left:
    """Is what a sweep may still cost and take.

    Attributes:
        cost: Of its budget.
        seconds: Until its deadline.
    """

    cost: float
    seconds: float


UNLIMITED = Left(math.inf, math.inf)


def left_of(goal: Goal, *, spent: float, elapsed_seconds: float) -> Left:
    """Returns what a sweep may still cost and take."""
    budget, deadline = goal.sweep_budget, goal.sweep_deadline_seconds
    cost = math.inf if budget is None else budget - spent
    return Left(cost, math.inf if deadline is None else deadline - elapsed_seconds)


def choose_profile(
    known: Knowledge, planner: Planner | None, free: Free, left: Left = UNLIMITED
) -> Profile | None:
    """Returns the profile to make now; none where some failed, and none that doesn't fit.

    Args:
        known: What the records say.
        planner: Plans from it; None while no epoch time is known.
        free: Workers that are free, by type of machine where there are several.
        left: What the sweep may still cost and take. Before an epoch time is known nobody can
            tell whether a profile fits, and the first one starts.
    """
    failed = Counter(r.profile.node_type for r in known.profiles if r.is_failed)
    free = {
        kind.name: free_of(free, kind.name) if failed[kind.name] < MOST_FAILED else 0
        for kind in known.space.types
    }
    if not known.cells:
        return None
    if planner is None:
        profile = first_profile(known, free)
        return profile if profile.held.workers <= free_of(free, profile.held.node_type) else None
    incumbent = known.incumbent
    recipe = planner.new_recipe if incumbent is None else incumbent.recipe
    fresh = planner.fresh(recipe) if incumbent is None else None
    return next_profile(known, planner.outlook(recipe), free, left, fresh=fresh)


def first_profile(known: Knowledge, free: Free = None) -> Profile:
    """Times the fewest workers at a small, a middle and a larger batch.

    A worker's share of a batch is no larger than in half of all cells: that fits into memory
    if most do. It is on the type of machine that costs the least, where there are several.

    Args:
        known: What the records say.
        free: Workers that are free.
    """
    fit = [k for k, c in enumerate(known.cells) if c.workers <= free_of(free, c.node_type)]
    fit = fit or list(range(len(known.cells)))
    types = {known.cells[k].node_type for k in fit}
    if len(types) > 1:
        types = {known.cells[min(fit, key=lambda k: known.rates[k])].node_type}
    open_cells = [cell for cell in known.cells if cell.node_type in types]
    fewest = min(cell.workers for cell in open_cells)
    shares = sorted(cell.local_batch for cell in open_cells)
    cells = sorted(cell for cell in open_cells if cell.workers == fewest)
    cells = [c for c in cells if c.local_batch <= shares[len(shares) // 2]] or cells[:1]
    picked = sorted({cells[0], cells[len(cells) // 2], cells[-1]})
    return Profile(tuple(picked), why="times a few steps on the fewest workers")


def next_profile(
    known: Knowledge,
    outlook: Outlook,
    free: Free = None,
    left: Left = UNLIMITED,
    *,
    fresh: Fresh | None = None,
) -> Profile | None:
    """Returns the profile that pays best, or None where none pays.

    Where a batch has reached the target, a sample is worth what the plan is expected to fall by;
    where none has and a run must be in time, at least what the next one is expected to. Elsewhere
    an uncertain epoch time puts at risk the chance that its cell is near the best,
    times the part of its deviation that a sample takes away, times what runs still cost. Until
    the target is reached that is the next run alone: what later ones need can be timed then,
    when the epochs are known.

    Args:
        known: What the records say.
        outlook: What runs may cost.
        free: Workers that are free.
        left: What the sweep may still cost and take.
        fresh: What the next run may cost, None where something has reached the target.
    """
    samples = known.samples_per_epoch
    most = MOST_PROFILES * len(known.space.types)
    if len(known.profiles) >= most or known.remaining_runs == 0 or samples is None:
        return None
    saved = _saved(known, outlook, fresh)
    if not saved.any():
        return None
    steps = STEPS * np.exp(outlook.log_seconds) / samples
    steps = steps * np.array([cell.batch_size for cell in outlook.cells])
    best: tuple[float, Profile] | None = None
    for (node_type, workers), places in _by_workers(outlook).items():
        top = [k for k in sorted(places, key=lambda k: -saved[k])[:TOP] if saved[k] > 0]
        if not top or workers > free_of(free, node_type):
            continue
        saving, seconds = float(saved[places].sum()), outlook.startups[top[0]] + steps[top].sum()
        rate = outlook.rates[top].max()
        price = float(seconds * rate)
        if saving <= price or price > left.cost or seconds > left.seconds:
            continue
        guests = _guests(outlook, top, saved, steps)
        if price + steps[guests].sum() * rate > left.cost:
            guests = []
        if seconds + steps[guests].sum() > left.seconds:
            guests = []
        # Starts of their own that the guests need no more make this one cheaper.
        spared = {outlook.cells[k].workers: outlook.startups[k] * outlook.rates[k] for k in guests}
        value = saving / max(price - sum(spared.values()), LEAST_PRICE * price)
        if best is None or value > best[0]:
            total = price + float(steps[guests].sum() * rate)
            gain = saving + float(saved[guests].sum())
            why = f"is expected to save {gain:.3g} {known.cost.unit} for {total:.3g}"
            cells = tuple(sorted(outlook.cells[k] for k in [*top, *guests]))
            best = value, Profile(cells, why=why)
    return None if best is None else best[1]


def _saved(known: Knowledge, outlook: Outlook, fresh: Fresh | None) -> Floats:
    """What one more sample of each cell is expected to save, 0 where none is to be taken."""
    sd, near, incumbent = outlook.sd, outlook.near, known.incumbent
    # A recipe that was not tried may be of any class: what one of them timed counts as timed.
    time = known.times if outlook.recipe is None else outlook.time
    # One more sample takes away the less, the more is known.
    gone = 1 - outlook.time.noise / np.hypot(sd, outlook.time.noise)
    runs = 1 if incumbent is None else known.remaining_runs
    risk = gone * (near.chance * np.minimum(sd, MOST_SD) + near.doubt)
    is_open = (sd > LEAST_SD) & ~time.is_known[known.places]  # epochs are less certain
    saved = np.where(is_open, SHARE * runs * near.cost * risk, 0.0)
    if incumbent is not None:
        worth = runs * worth_timing(outlook, incumbent)
        saved = np.where(np.isnan(worth), saved, worth)
    if fresh is not None and math.isfinite(outlook.limit):
        saved = np.maximum(saved, worth_before(outlook, fresh, is_open))
    shut = left_out(known.profiles)
    return np.where([cell in shut for cell in outlook.cells], 0.0, saved)


def left_out(profiles: Sequence[ProfileRecord]) -> frozenset[Allocation]:
    """Returns the cells that a profile left out which timed others."""
    timed = (record for record in profiles if record.epoch_seconds)
    return frozenset(
        cell for each in timed for cell in each.profile.cells if cell not in each.epoch_seconds
    )


def _guests(outlook: Outlook, hosts: list[int], saved: Floats, steps: Floats) -> list[int]:
    """Returns cells of fewer workers that the start of `hosts` times for less than their own."""
    held, node_type = max((outlook.cells[k].workers, outlook.cells[k].node_type) for k in hosts)
    price = steps * outlook.rates[hosts].max()
    alone = (outlook.startups + steps) * outlook.rates
    pays = np.flatnonzero((saved > price) & (alone > price))
    alike = (int(k) for k in pays if outlook.cells[k].node_type == node_type)
    fewer = [k for k in alike if outlook.cells[k].workers < held]
    return sorted(fewer, key=lambda k: price[k] - saved[k])[: MOST_CELLS - len(hosts)]


def _by_workers(outlook: Outlook) -> dict[tuple[str, int], list[int]]:
    places: dict[tuple[str, int], list[int]] = defaultdict(list)
    for k, cell in enumerate(outlook.cells):
        places[cell.node_type, cell.workers].append(k)
    return places
