"""What a sweep recommends."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from raycosttune.core.certificate import Certificate, certify
from raycosttune.core.digest import seconds_to_target
from raycosttune.core.figure import counted, whole
from raycosttune.core.held import was_resized
from raycosttune.core.incumbent import Incumbent
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.limits import limit_met
from raycosttune.core.observation import Recipe, TrialRecord
from raycosttune.core.prediction import Prediction
from raycosttune.core.shortfall import shortfall
from raycosttune.core.space import Allocation


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
        limit: Which limit of the sweep, or of Tune's, has ended the search, empty for none.
        likely_saving: Largest fraction of the cost that an untried configuration is likely to
            save, each but for a chance of about 2 %; an estimate beside the certificate's bound.
            None where nothing tells.
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
    limit: str = ""
    likely_saving: float | None = None

    def __str__(self) -> str:
        """Says the plan in two sentences."""
        seconds, cost = self.predicted_seconds, self.predicted_cost
        ran = (
            "not run itself" if self.measured_cost is None else f"measured {self.measured_cost:.3g}"
        )
        what = self.allocation.named(self.recipe)
        return (
            f"{what}, {counted(self.epochs, 'epoch')}: "
            f"{cost.mid:.3g} {self.unit} ({ran}), {whole(seconds.mid)} s "
            f"({whole(seconds.low)} to {whole(seconds.high)}); {self.certificate}{self._likely}. "
            f"The search spent {self.spent:.3g} {self.unit}{_early(self.limit)}."
        )

    @property
    def _likely(self) -> str:
        certificate, saving = self.certificate, self.likely_saving
        if saving is None or certificate.untried == 0 or not certificate.is_bounded:
            return ""
        return f", and likely none saves more than {math.ceil(saving * 100)}%"


def _early(limit: str) -> str:
    return f" and ended early: {limit}" if limit else ""


@dataclass(frozen=True)
class NoPlan:
    """Says that no trial has reached the target by the deadline.

    Attributes:
        reason: What was tried and how near it came.
        spent: What the search has cost, NaN where the cost metric fails.
        unit: Unit of the cost.
        checkpoint: Where the best model that was saved lies, made within the deadline of its
            run; None where none was.
    """

    reason: str
    spent: float
    unit: str
    checkpoint: str | None = None

    def __str__(self) -> str:
        """Says it in a sentence."""
        spent = "" if math.isnan(self.spent) else f" The search spent {self.spent:.3g} {self.unit}."
        saved = "" if self.checkpoint is None else f" The best model lies in {self.checkpoint}."
        return f"no plan: {self.reason}.{spent}{saved}"


def cut_short(plan: Plan | NoPlan, early: str) -> Plan | NoPlan:
    """Returns a plan, or why there is none, with what else has ended its sweep, if anything."""
    if isinstance(plan, Plan):
        return replace(plan, limit=plan.limit or early)
    return replace(plan, reason=f"{plan.reason}; ended early: {early}") if early else plan


def unbegun(plan: Plan | NoPlan, known: Knowledge, ahead: Callable[[], object]) -> Plan | NoPlan:
    """Returns why there is no plan, with why nothing was tried where the search is over.

    Args:
        plan: The plan, or why there is none.
        known: What the records say.
        ahead: Returns what comes next, a text where nothing does.
    """
    if isinstance(plan, Plan) or known.records or known.profiles:
        return plan
    told = ahead()
    ended = f"; the search ended: {told}" if isinstance(told, str) else ""
    return replace(plan, reason=f"{plan.reason}{ended}")


def make_plan(
    known: Knowledge,
    learning_rate: LearningRate | None,
    spent: float,
    likely_saving: float | None = None,
) -> Plan | NoPlan:
    """Turns the incumbent into a plan, or says why there is none.

    Args:
        known: What the records say.
        learning_rate: The rule of the base rate.
        spent: What the search has cost.
        likely_saving: What an untried cell is likely to save at most, None where nothing tells.
    """
    incumbent = known.incumbent
    if incumbent is None:
        reason = shortfall(known, limit_met(known, spent))
        return NoPlan(reason, spent, known.cost.unit, _best_checkpoint(known))
    record, certificate = _demonstration(known, incumbent), certify(known, incumbent)
    recipe = record.recipe
    if learning_rate is not None:
        recipe = learning_rate.apply(recipe, incumbent.allocation.batch_size)
    is_same = record.allocation == incumbent.allocation and not was_resized(record)
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
        certificate=certificate,
        spent=spent,
        limit=limit_met(known, spent),
        likely_saving=None if likely_saving is None else min(likely_saving, certificate.gap),
    )


def _demonstration(known: Knowledge, incumbent: Incumbent) -> TrialRecord:
    """Returns the trial that ran the incumbent itself, or one at its batch and recipe."""
    same = (
        record
        for record in known.records
        if record.allocation == incumbent.allocation
        and record.key == incumbent.recipe
        and any(map(known.goal.is_met, record.run))
    )
    return next(same, incumbent.record)


def _checkpoint(known: Knowledge, record: TrialRecord) -> str | None:
    reached = (r.checkpoint for r in record.run if known.goal.is_met(r) and r.checkpoint)
    return next(reached, None)


def _best_checkpoint(known: Knowledge) -> str | None:
    best, found = -math.inf, None
    for record in known.records:
        seconds = 0.0
        for report in record.run:
            seconds += report.seconds
            if seconds > known.limit or report.value is None or report.checkpoint is None:
                continue
            if known.goal.sign * report.value > best:
                best, found = known.goal.sign * report.value, report.checkpoint
    return found
