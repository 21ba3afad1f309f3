"""Which cells to time next, and whether that pays."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.node_type import Free, free_of
from raycosttune.core.outlook import Outlook
from raycosttune.core.planner import Planner
from raycosttune.core.profile import STEPS, Profile, ProfileRecord
from raycosttune.core.space import Allocation

SHARE = 0.4  # of the cost put at risk by an unknown epoch time that a profile saves
TOP = 2  # cells timed in one start
LEAST_SD, LEAST_TIMED_SD = 0.06, 0.02
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
    return next_profile(known, planner.outlook(recipe), free, left)


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
    known: Knowledge, outlook: Outlook, free: Free = None, left: Left = UNLIMITED
) -> Profile | None:
    """Returns the profile that pays best, or None where none pays.

    What an uncertain epoch time puts at risk is the chance that its cell is near the best, times
    the part of its deviation that a sample takes away, times what the runs still to be made cost.
    """
    samples = known.samples_per_epoch
    most = MOST_PROFILES * len(known.space.types)
    if len(known.profiles) >= most or known.remaining_runs == 0 or samples is None:
        return None
    shut = left_out(known.profiles)
    # A recipe that was not tried may be of any class: what one of them timed counts as timed.
    time = known.times if outlook.recipe is None else outlook.time
    is_timed = time.is_known[known.places]
    is_open = np.array([cell not in shut for cell in outlook.cells])
    is_open &= outlook.sd > np.where(is_timed, LEAST_TIMED_SD, LEAST_SD)
    if known.incumbent is None:  # the epochs are far less certain than any timed cell
        is_open &= ~is_timed
    if not is_open.any():
        return None
    near = outlook.near
    # One more sample takes away the less, the more is known. A timed cell is timed again only
    # once the epochs are known, too, and for what others may still take from it.
    noise = outlook.time.noise
    gone = 1 - noise / np.hypot(outlook.sd, noise)
    chance = np.where(is_timed, np.minimum(near.chance, 1 - near.chance), near.chance)
    risk = gone * (chance * np.minimum(outlook.sd, MOST_SD) + near.doubt)
    risk = np.where(is_open, risk, 0.0)
    steps = STEPS * np.exp(outlook.log_seconds) / samples
    steps = steps * np.array([cell.batch_size for cell in outlook.cells])
    saved = SHARE * known.remaining_runs * near.cost * risk
    best: tuple[float, Profile] | None = None
    for (node_type, workers), places in _by_workers(outlook).items():
        top = [k for k in sorted(places, key=lambda k: -risk[k])[:TOP] if risk[k] > 0]
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
