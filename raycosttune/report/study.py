"""A sweep as an Optuna study, for the tools that open one."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from raycosttune.report.given import of_sweep
from raycosttune.report.view import Trial, View

STATES = {
    "reached": TrialState.COMPLETE,
    "finished": TrialState.COMPLETE,
    "misnamed": TrialState.FAIL,
    "stopped": TrialState.PRUNED,
    "failed": TrialState.FAIL,
    "out_of_memory": TrialState.FAIL,
    "running": TrialState.RUNNING,
    "broken_off": TrialState.FAIL,
}
WIDE = 100.0  # largest over smallest value from which a hyperparameter is shown on a log scale


@of_sweep
def write_study(sweep: View, storage: str, name: str | None = None) -> optuna.Study:
    """Writes a sweep's trials into an Optuna study, for optuna-dashboard and the like.

    Each trial has workers, batch and the other hyperparameters as parameters, the best value
    of the metric as its own, its learning curve as intermediate values, and what it cost,
    where and why it ended as attributes. The study is for looking: the search does not read it.

    Args:
        sweep: What there is to see.
        storage: Where to, as Optuna writes it: `sqlite:///sweep.db`.
        name: Name of the study, which must be new there; the sweep's own by default.

    Raises:
        optuna.exceptions.DuplicatedStudyError: If the storage has a study of this name.
    """
    is_falling = sweep.goal.mode == "min"
    direction = StudyDirection.MINIMIZE if is_falling else StudyDirection.MAXIMIZE
    study = optuna.create_study(
        storage=storage, study_name=name or sweep.name or "sweep", direction=direction
    )
    study.set_user_attr("plan", sweep.summary)
    study.set_user_attr("unit", sweep.unit)
    study.set_user_attr("metric", sweep.goal.metric)
    domains = _domains(sweep)
    study.add_trials([_trial(sweep, trial, domains) for trial in sweep.trials])
    return study


def _parameters(trial: Trial) -> dict[str, Any]:
    """Returns a trial's parameters; what Optuna has no kind for is its text."""
    recipe = {key: _plain(value) for key, value in trial.recipe.items()}
    kind = {"node_type": trial.node_type} if trial.node_type else {}
    return {"workers": trial.workers, "batch_size": trial.batch_size, **kind, **recipe}


def _plain(value: object) -> object:
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return value if isinstance(value, bool | str | None) or is_number else str(value)


def _domains(sweep: View) -> dict[str, BaseDistribution]:
    seen: dict[str, list[Any]] = {}
    for trial in sweep.trials:
        for key, value in _parameters(trial).items():
            seen.setdefault(key, []).append(value)
    return {key: _domain(values) for key, values in seen.items()}


def _domain(values: list[Any]) -> BaseDistribution:
    kinds = {type(value) for value in values}
    if not kinds <= {int, float}:
        return CategoricalDistribution(list(dict.fromkeys(values)))
    low, high = min(values), max(values)
    is_log = low > 0 and high / low >= WIDE
    if kinds == {int}:
        return IntDistribution(low, high, log=is_log)
    return FloatDistribution(float(low), float(high), log=is_log)


def _trial(sweep: View, trial: Trial, domains: Mapping[str, BaseDistribution]) -> FrozenTrial:
    values = dict(_values(trial))
    best = max(values.values(), key=lambda value: sweep.goal.sign * value, default=None)
    state = STATES[trial.end]
    if state is TrialState.COMPLETE and best is None:
        state = TrialState.FAIL
    parameters = _parameters(trial)
    return create_trial(
        state=state,
        value=best if state in (TrialState.COMPLETE, TrialState.PRUNED) else None,
        params=parameters,
        distributions={key: domains[key] for key in parameters},
        intermediate_values=values,
        user_attrs={
            "trial_id": trial.trial_id,
            f"cost ({sweep.unit})": trial.cost,
            "seconds": trial.seconds,
            "epochs to the target": trial.reached,
            "ended": trial.reason or trial.end,
            "started because it": trial.why,
        },
    )


def _values(trial: Trial) -> Iterator[tuple[int, float]]:
    """Yields values by epoch; Optuna's steps are whole, so of several in one the last counts."""
    for epoch, value in zip(trial.epochs, trial.values, strict=True):
        if value is not None:
            yield math.ceil(epoch), value
