"""What a sweep has cost, and what is likely still to come."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from raycosttune.core.cost import checked_cost
from raycosttune.core.decision import Finished
from raycosttune.core.figure import counted
from raycosttune.core.prediction import Prediction
from raycosttune.core.rehearsal import (
    Clock,
    LearnedSurface,
    PriorSurface,
    Sweep,
    rehearse,
    trial_name,
)

REHEARSALS = 7


@dataclass(frozen=True)
class Estimate:
    """Is what a sweep may cost.

    Attributes:
        trials: Trials and profiles likely still to start, the spread over the rehearsals.
        cost: Likely cost of the whole sweep in `unit`, what is spent included, at most
            `worst_cost`; None where neither a measurement nor a deadline gives a scale.
        worst_cost: The most the whole sweep can cost in `unit`, beside what running trials
            cost until their next reports; None without `sweep_budget` and
            `sweep_deadline_seconds`.
        spent: What it has cost so far, up to the last reports, in `unit`.
        unit: Unit of the costs.
        worst_means: What `worst_cost` assumes beside the limits themselves.
        running: Trials and profiles that run.
        over: Why nothing remains to be run, empty while something does.
    """

    trials: Prediction
    cost: Prediction | None
    worst_cost: float | None
    spent: float
    unit: str
    worst_means: str = ""
    running: int = 0
    over: str = ""

    @property
    def remaining(self) -> Prediction | None:
        """Likely cost still to come, None where `cost` is."""
        if self.cost is None:
            return None
        return Prediction(*(x - self.spent for x in (self.cost.low, self.cost.mid, self.cost.high)))

    def __str__(self) -> str:
        """Says the estimate in a sentence."""
        spent = f"spent so far {self.spent:.3g} {self.unit}"
        if self.over:
            return f"{spent}; nothing remains: {self.over}"
        few, many = (f"{count:.0f}" for count in (self.trials.low, self.trials.high))
        trials = counted(self.trials.low, "trial") if few == many else f"{few} to {many} trials"
        if self.running:
            trials += f" beside {self.running} running"
        likely = "cost unknown: set deadline_seconds for a scale"
        if self.remaining is not None:
            low, mid, high = self.remaining.low, self.remaining.mid, self.remaining.high
            likely = f"likely {mid:.3g} {self.unit} ({low:.3g} to {high:.3g})"
        worst = "no upper limit: set sweep_budget or sweep_deadline_seconds for one"
        if self.worst_cost is not None:
            worst = f"in all at worst {self.worst_cost:.3g} {self.unit}{self.worst_means}"
            if self.cost is not None and self.cost.mid >= self.worst_cost:
                worst += ", and that limit is likely to end it; it is looked at in each report"
        return f"{spent}; still to come: {trials}, {likely}; {worst}"


class Copy(Protocol):
    """Copies a sweep."""

    def __call__(self, clock: Clock, *, has_own_recipes: bool) -> Sweep:
        """Returns a sweep that knows the same, with its own proposer or numbered recipes."""


def estimate(sweep: Sweep, copy: Copy) -> Estimate:
    """Rehearses a sweep from where it stands, on surfaces drawn from what it knows.

    While nothing is measured the surfaces come from priors, and the goal's deadline gives
    their scale. Rehearsed trials run one after the other.

    Args:
        sweep: The sweep.
        copy: Copies it; the copies are used up.

    Raises:
        InvalidCostError: If the cost metric fails.
    """
    spent, now = sweep.spent, Prediction(sweep.spent, sweep.spent, sweep.spent)
    unit, running = sweep.cost.unit, len(sweep.live) + len(sweep.live_profiles)
    answer = copy(Clock(), has_own_recipes=True).ask(trial_name(0))
    if isinstance(answer, Finished) and not running:
        return Estimate(Prediction(0, 0, 0), now, spent, spent, unit, over=answer.why)
    rng, known = np.random.default_rng(0), sweep.known
    outcomes = []
    for _ in range(REHEARSALS):
        clock = Clock()
        surface = (
            PriorSurface(sweep.space, sweep.goal, rng)
            if known.time.is_empty
            else LearnedSurface(known, rng)
        )
        outcomes.append(rehearse(copy(clock, has_own_recipes=False), surface, clock))
    trials = _spread([float(count) for count, _ in outcomes])
    cost = _spread([max(total, spent) for _, total in outcomes])
    has_scale = sweep.goal.deadline_seconds is not None or not known.time.is_empty
    worst, means = _worst(sweep)
    if worst is not None:
        cost = Prediction(*(min(total, worst) for total in (cost.low, cost.mid, cost.high)))
    return Estimate(trials, cost if has_scale else None, worst, spent, unit, means, running)


def _worst(sweep: Sweep) -> tuple[float | None, str]:
    """Bounds the cost by the sweep's limits, and says what that assumes."""
    goal, limits = sweep.goal, list[tuple[float, str]]()
    if goal.sweep_budget is not None:
        limits.append((max(goal.sweep_budget, sweep.spent), ""))
    if goal.sweep_deadline_seconds is not None:
        left = max(goal.sweep_deadline_seconds - sweep.elapsed_seconds, 0.0)
        ahead, held = _dearest(sweep, left)
        limits.append((sweep.spent + ahead, f" ({held} until the sweep's deadline)"))
    return min(limits, default=(None, ""))


def _dearest(sweep: Sweep, seconds: float) -> tuple[float, str]:
    """Bounds what trials can cost that run for so long at once, and says which."""
    costs = [(cell, checked_cost(sweep.cost, cell, seconds)) for cell in sweep.space.cells]
    dearest = max(cost for _, cost in costs)
    at_once, bounds, workers = sweep.max_concurrent, list[float](), 0
    for kind in sweep.space.types:
        own = [(cell, cost) for cell, cost in costs if cell.node_type == kind.name]
        if kind.max_workers is None:
            if at_once is None:
                return dearest, "if one trial at a time runs"
            return at_once * dearest, f"with {counted(at_once, 'trial')} at once"
        if own:
            fit = kind.max_workers // min(cell.workers for cell, _ in own)
            trials = fit if at_once is None else min(fit, at_once)
            each = max(cost / cell.workers for cell, cost in own)
            bounds.append(min(max(cost for _, cost in own) * trials, each * kind.max_workers))
            workers += kind.max_workers
    busy = "the only worker" if workers == 1 else f"all {workers} workers"
    most = sum(bounds) if at_once is None else min(sum(bounds), at_once * dearest)
    return most, f"with {busy} of the cluster busy"


def _spread(values: list[float]) -> Prediction:
    return Prediction(min(values), float(np.median(values)), max(values))
