"""What a sweep is likely to cost, rehearsed before the first trial."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from raycosttune.core.decision import Answer, Continue, Decision, Run
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Observation, Recipe, Report
from raycosttune.core.prediction import Prediction
from raycosttune.core.proposer import Scored
from raycosttune.core.space import Allocation, Space

REHEARSALS = 7
MOST_TRIALS = 40


class Sweep(Protocol):
    """Is what a rehearsal needs of a session."""

    def ask(self, trial_id: str, *, free_workers: int | None = None) -> Answer:
        """Asks for a trial."""

    def tell(self, trial_id: str, observation: Observation) -> bool:
        """Tells what a trial showed."""

    def decide(self, trial_id: str) -> Decision:
        """Asks whether a trial goes on."""

    @property
    def spent(self) -> float:
        """Cost so far."""


class NumberedRecipes:
    """Proposes recipes that are only told apart, as many as are asked for."""

    def propose(self, index: int, records: Sequence[Scored]) -> Recipe:  # noqa: ARG002 - Protocol
        """Returns a recipe that holds its number."""
        return {"recipe": index}


@dataclass(frozen=True)
class Estimate:
    """Is what a sweep may cost.

    Attributes:
        trials: Trials likely to run, the spread over the rehearsals.
        cost: Likely cost in `unit`, or None where no deadline gives a scale.
        worst_cost: The most it can cost: the sweep's budget, and at most what one report
            of a running trial costs beyond it; None without a budget.
        spent: What it has cost so far.
        unit: Unit of the costs.
    """

    trials: Prediction
    cost: Prediction | None
    worst_cost: float | None
    spent: float
    unit: str

    def __str__(self) -> str:
        """Says the estimate in a sentence."""
        likely = (
            "cost unknown: set deadline_seconds for a scale"
            if self.cost is None
            else f"likely {self.cost.mid:.3g} {self.unit} ({self.cost.low:.3g} to "
            f"{self.cost.high:.3g})"
        )
        worst = (
            "no upper limit: set sweep_budget for one"
            if self.worst_cost is None
            else f"at worst {self.worst_cost:.3g} {self.unit}"
        )
        few, many = (f"{count:.0f}" for count in (self.trials.low, self.trials.high))
        trials = f"{few} trials" if few == many else f"{few} to {many} trials"
        return f"{trials}; {likely}; {worst}; spent so far {self.spent:.3g}"


def estimate(
    space: Space, goal: Goal, unit: str, *, spent: float, start: Callable[[], Sweep]
) -> Estimate:
    """Rehearses the sweep on surfaces drawn from the priors.

    Args:
        space: The legal cells.
        goal: Target and limits; its deadline gives the scale, the drawn surfaces need
            between a fifth and six fifths of it in their fastest cell, so that some jobs miss
            it with every recipe or but the best.
        unit: Unit of the costs.
        spent: What the real sweep has cost so far.
        start: Starts an empty session with the same arguments.

    Returns:
        Likely trials and cost, and the worst cost.
    """
    rng = np.random.default_rng(0)
    outcomes = [_rehearse(space, goal, start(), rng) for _ in range(REHEARSALS)]
    trials = _spread([float(count) for count, _ in outcomes])
    cost = _spread([max(total, spent) for _, total in outcomes])
    return Estimate(
        trials,
        None if goal.deadline_seconds is None else cost,
        goal.sweep_budget,
        spent,
        unit,
    )


def _rehearse(
    space: Space, goal: Goal, sweep: Sweep, rng: np.random.Generator
) -> tuple[int, float]:
    batches = [cell.batch_size for cell in space.cells]
    noise_scale = np.exp(rng.uniform(np.log(min(batches) / 2), np.log(max(batches) * 2)))
    step, recipe_sd = rng.uniform(1, 16), 0.5
    base = rng.uniform(8, 30)

    def epochs(cell: Allocation) -> float:
        return float(base * (1 + cell.batch_size / noise_scale))

    def relative(cell: Allocation) -> float:
        return float(1 / cell.workers + step / cell.batch_size)

    fastest = min(epochs(cell) * relative(cell) for cell in space.cells)
    scale = (goal.deadline_seconds or 1.0) * rng.uniform(0.2, 1.2) / fastest
    count = 0
    while count < MOST_TRIALS and isinstance(run := sweep.ask(f"{count}"), Run):
        needed = epochs(run.allocation) * np.exp(rng.normal(0, recipe_sd) if run.recipe else 0)
        _train(sweep, f"{count}", goal, float(needed), scale * relative(run.allocation))
        count += 1
    return count, sweep.spent


def _train(sweep: Sweep, trial_id: str, goal: Goal, needed: float, epoch_seconds: float) -> None:
    """Reports about a dozen evaluations to a session, until it stops the trial."""
    period = max(needed / 12, 1e-3)
    missed = goal.target - goal.sign
    for k in range(1, 100):
        value = goal.target if k * period >= needed * (1 - 1e-9) else missed
        sweep.tell(trial_id, Report(k * period, value, period * epoch_seconds))
        if not isinstance(sweep.decide(trial_id), Continue):
            break
    sweep.tell(trial_id, Ended(EndCause.STOPPED))


def _spread(values: list[float]) -> Prediction:
    return Prediction(min(values), float(np.median(values)), max(values))
