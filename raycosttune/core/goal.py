"""What a sweep is for: a target, its limits, and how often the result will be used."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn

from raycosttune.core.constraint import Bound, Constraint, RunBudget
from raycosttune.core.observation import Report
from raycosttune.core.value import (
    MOST_AMOUNT,
    read_count,
    read_name,
    read_number,
    read_real,
    read_text,
)
from raycosttune.errors import InvalidGoalError

Mode = Literal["max", "min"]
MODES = ("max", "min")


@dataclass(frozen=True, kw_only=True)
class Goal:
    """Names the target of a training job and the limits that hold.

    Attributes:
        target: Value of the metric that a run must reach.
        metric: Name of the reported metric, nested with "/" (`"val/accuracy"`). May be
            left to Tune's own `metric`.
        mode: Whether the metric must rise to the target ("max") or fall to it ("min").
            May be left to Tune's own `mode`.
        deadline_seconds: Limit for one training run, from the request for workers to
            the target. It bounds neither the sweep nor its price.
        sweep_deadline_seconds: Limit for the whole sweep, wall time.
        sweep_budget: Limit for what the whole sweep may cost, in the cost metric's unit.
        planned_runs: How often the training will run in all: 1 when it is needed only
            now, 100 for a nightly retraining of a quarter. The search stops where a
            further trial would cost more than it could save over these runs.
        max_epochs: A run that has not reached the target by then is stopped.
        tolerance: The search stops when nothing untried can save more than this
            fraction of the best cost.
        constraints: Bounds on other metrics and limits in other units that a run must keep to.
        rival_cost: What a run costs by a plan that is known already, on other machines say, in
            the cost metric's unit: what can't be cheaper is not worth a trial.

    Raises:
        InvalidGoalError: If a value breaks its rule.
    """

    target: float
    metric: str | None = None
    mode: Mode | None = None
    deadline_seconds: float | None = None
    sweep_deadline_seconds: float | None = None
    sweep_budget: float | None = None
    planned_runs: int = 10
    max_epochs: int | None = None
    tolerance: float = 0.03
    constraints: tuple[Constraint, ...] = ()
    rival_cost: float | None = None

    def __post_init__(self) -> None:
        """Checks every value and makes NumPy's numbers Python's own."""
        self._take_real("target")
        if self.metric is not None and read_name(self.metric) is None:
            _refuse("metric", "be the name of a reported metric", self.metric)
        if self.mode is not None and read_text(self.mode) not in MODES:
            _refuse("mode", 'be "max" or "min"', self.mode)
        for name in ("deadline_seconds", "sweep_deadline_seconds", "sweep_budget", "rival_cost"):
            value = getattr(self, name)
            if value is not None:
                self._take_real(name)
                if not 0 < value <= MOST_AMOUNT:
                    rule = "be positive and at most 10**15"
                    _refuse(name, rule, value, " Leave it out for no limit.")
        self._take_constraints()
        self._take_count("planned_runs")
        if self.max_epochs is not None:
            self._take_count("max_epochs")
        self._take_real("tolerance")
        if not 0 <= self.tolerance < 1:
            cure = f" For {self.tolerance:g} % write {self.tolerance / 100:g}."
            is_percent = 1 <= self.tolerance < 100  # noqa: PLR2004 - of a hundred
            _refuse("tolerance", "lie in [0, 1)", self.tolerance, cure if is_percent else "")

    @property
    def sign(self) -> int:
        """1 where larger values are better, -1 where smaller ones are."""
        return -1 if self.mode == "min" else 1

    def is_reached(self, value: float | None) -> bool:
        """Tells whether a reported value reaches the target; NaN never does."""
        return value is not None and self.sign * value >= self.sign * self.target

    @property
    def wanted(self) -> str:
        """Says what a value must be: at least 0.97."""
        return f"at {'most' if self.sign < 0 else 'least'} {self.target:g}"

    @property
    def is_limited(self) -> bool:
        """Whether the whole sweep has a deadline or a budget."""
        return self.sweep_deadline_seconds is not None or self.sweep_budget is not None

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The bounds on other metrics."""
        return tuple(item for item in self.constraints if isinstance(item, Bound))

    @property
    def budgets(self) -> tuple[RunBudget, ...]:
        """The limits of a run in other units."""
        return tuple(item for item in self.constraints if isinstance(item, RunBudget))

    def others(self, values: Mapping[str, object]) -> tuple[tuple[str, float], ...]:
        """Returns those of some reported values that are bounded, with their names."""
        read = ((bound.metric, read_number(values.get(bound.metric))) for bound in self.bounds)
        return tuple((name, value) for name, value in read if value is not None)

    def allows(self, report: Report) -> bool:
        """Tells whether an evaluation keeps to every bound on other metrics."""
        found = dict(report.others)
        return all(bound.holds(found.get(bound.metric)) for bound in self.bounds)

    def is_met(self, report: Report) -> bool:
        """Tells whether an evaluation is at the target and keeps to every bound."""
        return self.is_reached(report.value) and self.allows(report)

    def _take_constraints(self) -> None:
        given: object = self.constraints
        if not isinstance(given, list | tuple):
            _refuse("constraints", "be a list of Bound and RunBudget", given)
        for item in given:
            if not isinstance(item, Bound | RunBudget):
                _refuse("constraints", "be a list of Bound and RunBudget", item)
        object.__setattr__(self, "constraints", tuple(given))

    def _take_real(self, name: str) -> None:
        value = getattr(self, name)
        number = read_real(value)
        if number is None:
            _refuse(name, "be a finite number", value)
        object.__setattr__(self, name, number)

    def _take_count(self, name: str) -> None:
        value = getattr(self, name)
        number = read_count(value)
        if number is None:
            _refuse(name, "be a whole number of at least 1 and at most 10**12", value)
        object.__setattr__(self, name, number)


def check_named(goal: Goal) -> None:
    """Refuses a goal without a metric or a mode.

    Raises:
        InvalidGoalError: If one is missing.
    """
    if goal.metric is None or goal.mode is None:
        msg = 'Goal.metric and Goal.mode must be set: metric="accuracy", mode="max"'
        raise InvalidGoalError(msg)


def _refuse(name: str, rule: str, value: object, cure: str = "") -> NoReturn:
    msg = f"Goal.{name} must {rule}, got {value!r}.{cure}"
    raise InvalidGoalError(msg)
