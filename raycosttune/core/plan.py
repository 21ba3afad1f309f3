"""What a sweep recommends."""

import math
from dataclasses import dataclass

from raycosttune.core.certificate import Certificate, certify
from raycosttune.core.digest import seconds_to_target
from raycosttune.core.knowledge import Incumbent, Knowledge
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.observation import Recipe, TrialRecord
from raycosttune.core.prediction import Prediction
from raycosttune.core.proposer import recipe_key
from raycosttune.core.space import Allocation

DECIMALS_BELOW = 10


@dataclass(frozen=True)
class Plan:
    """Is the cheapest configuration known to reach the target by the deadline.

    Attributes:
        allocation: Workers and batch.
        recipe: The other hyperparameters as a loop gets them.
        trial_id: The trial that reached the target with this batch and recipe.
        checkpoint: Where the model that reached the target lies, or None where the
            loop reported no checkpoint.
        epochs: Epochs to the target.
        predicted_seconds: Start-up and training to the target.
        predicted_cost: What a run is expected to cost, in `unit`.
        measured_seconds: What the trial took, None where it ran on other workers.
        measured_cost: What the trial cost up to the target, likewise.
        unit: Unit of the costs.
        certificate: What could still be saved.
        spent: What the search has cost.
    """

    allocation: Allocation
    recipe: Recipe
    trial_id: str
    checkpoint: str | None
    epochs: float
    predicted_seconds: Prediction
    predicted_cost: Prediction
    measured_seconds: float | None
    measured_cost: float | None
    unit: str
    certificate: Certificate
    spent: float

    def __str__(self) -> str:
        """Says the plan in two sentences."""
        workers = self.allocation.workers
        seconds, cost = self.predicted_seconds, self.predicted_cost
        ran = (
            "not run itself" if self.measured_cost is None else f"measured {self.measured_cost:.3g}"
        )
        return (
            f"{workers} {'worker' if workers == 1 else 'workers'}, "
            f"batch {self.allocation.batch_size}, {self.epochs:g} epochs: "
            f"{cost.mid:.3g} {self.unit} ({ran}), {_whole(seconds.mid)} s "
            f"({_whole(seconds.low)} to {_whole(seconds.high)}); {self.certificate}. "
            f"The search spent {self.spent:.3g} {self.unit}."
        )


def _whole(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds >= DECIMALS_BELOW else f"{seconds:.2g}"


@dataclass(frozen=True)
class NoPlan:
    """Says that no trial has reached the target by the deadline.

    Attributes:
        reason: What was tried and how near it came.
        spent: What the search has cost, NaN where the cost metric fails.
        unit: Unit of the cost.
    """

    reason: str
    spent: float
    unit: str

    def __str__(self) -> str:
        """Says it in a sentence."""
        spent = "" if math.isnan(self.spent) else f" The search spent {self.spent:.3g} {self.unit}."
        return f"no plan: {self.reason}.{spent}"


def make_plan(known: Knowledge, learning_rate: LearningRate | None, spent: float) -> Plan | NoPlan:
    """Turns the incumbent into a plan, or says why there is none."""
    incumbent = known.incumbent
    if incumbent is None:
        return NoPlan(_reason(known), spent, known.cost.unit)
    record = _demonstration(known, incumbent)
    recipe = record.recipe
    if learning_rate is not None:
        recipe = learning_rate.apply(recipe, incumbent.allocation.batch_size)
    is_same = record.allocation == incumbent.allocation
    measured = seconds_to_target(record, known.goal) if is_same else None
    return Plan(
        allocation=incumbent.allocation,
        recipe=recipe,
        trial_id=record.trial_id,
        checkpoint=_checkpoint(known, record),
        epochs=incumbent.epochs.mid,
        predicted_seconds=incumbent.seconds,
        predicted_cost=incumbent.cost,
        measured_seconds=measured,
        measured_cost=None if measured is None else known.cost_of(record.allocation, measured),
        unit=known.cost.unit,
        certificate=certify(known, incumbent),
        spent=spent,
    )


def _demonstration(known: Knowledge, incumbent: Incumbent) -> TrialRecord:
    """Returns the trial that ran the incumbent itself, or one at its batch and recipe."""
    same = (
        record
        for record in known.records
        if record.allocation == incumbent.allocation
        and recipe_key(record.recipe) == incumbent.recipe
        and any(known.goal.is_reached(report.value) for report in record.run)
    )
    return next(same, incumbent.record)


def _checkpoint(known: Knowledge, record: TrialRecord) -> str | None:
    reached = (r.checkpoint for r in record.run if known.goal.is_reached(r.value) and r.checkpoint)
    return next(reached, None)


def _reason(known: Knowledge) -> str:
    goal = known.goal
    values = [r.value for record in known.records for r in record.reports if r.value is not None]
    if not known.records:
        return "no trial has started"
    tried = f"{len(known.records)} trials, none reached {goal.metric} {goal.target:g}"
    if goal.deadline_seconds is not None:
        tried += f" within {goal.deadline_seconds:g} s"
    if not values:
        return f"{tried}; none reported {goal.metric}"
    best = max(values, key=lambda value: goal.sign * value)
    return f"{tried}; the best was {best:.4g}"
