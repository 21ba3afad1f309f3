"""One study of Optuna's, made at once of any number of trials that ended."""
# ruff: noqa: ARG002 - Optuna's signatures; there is one study

import copy
from collections.abc import Container, Sequence
from datetime import datetime
from typing import Any, NoReturn

from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial


class OneStudy(BaseStorage):
    """Stores one study, which minimises: trials that are lent to it, and those added since.

    See optuna.storages.BaseStorage. Optuna's own storage in memory copies every trial that it is
    given, which for a thousand of them takes longer than a sampler does.

    Args:
        ended: Complete trials, their numbers and ids from 0 on. They are held as they are.
    """

    def __init__(self, ended: Sequence[FrozenTrial]) -> None:
        self._ended, self._added = ended, list[FrozenTrial]()
        self._user_attrs, self._system_attrs = dict[str, Any](), dict[str, Any]()

    def create_new_study(self, *_: object, **__: object) -> NoReturn:
        """Refuses: there is one study."""
        raise NotImplementedError

    def delete_study(self, study_id: int) -> NoReturn:
        """Refuses likewise."""
        raise NotImplementedError

    def get_all_studies(self) -> NoReturn:
        """Refuses likewise."""
        raise NotImplementedError

    def get_study_id_from_name(self, study_name: str) -> int:
        """Returns 0 for any name."""
        return 0

    def get_study_name_from_id(self, study_id: int) -> str:
        """Returns a name."""
        return "recipes"

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        """Returns the one direction."""
        return [StudyDirection.MINIMIZE]

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        """Returns what was set."""
        return self._user_attrs

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        """Returns what was set."""
        return self._system_attrs

    def set_study_user_attr(self, study_id: int, key: str, value: object) -> None:
        """Sets a value of a key."""
        self._user_attrs = {**self._user_attrs, key: value}

    def set_study_system_attr(self, study_id: int, key: str, value: object) -> None:
        """Sets a value of a key."""
        self._system_attrs = {**self._system_attrs, key: value}

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """Adds a running trial or a copy of another, and returns its id."""
        given = template_trial or create_trial(state=TrialState.RUNNING)
        trial = numbered(given, len(self._ended) + len(self._added))
        self._added.append(trial)
        return trial.number

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """Returns a trial itself."""
        first = len(self._ended)
        return self._ended[trial_id] if trial_id < first else self._added[trial_id - first]

    def get_all_trials(
        self,
        study_id: int,
        deepcopy: bool = True,  # noqa: FBT001, FBT002 - Optuna's signature
        states: Container[TrialState] | None = None,
    ) -> list[FrozenTrial]:
        """Returns the trials in some states, all by default, or copies of them."""
        ended = self._ended if states is None or TrialState.COMPLETE in states else ()
        added = (each for each in self._added if states is None or each.state in states)
        found = [*ended, *added]
        return copy.deepcopy(found) if deepcopy else found

    def set_trial_param(
        self,
        trial_id: int,
        param_name: str,
        param_value_internal: float,
        distribution: BaseDistribution,
    ) -> None:
        """Sets a parameter."""
        value, trial = distribution.to_external_repr(param_value_internal), self._anew(trial_id)
        trial.params = {**trial.params, param_name: value}
        trial.distributions = {**trial.distributions, param_name: distribution}

    def set_trial_state_values(
        self, trial_id: int, state: TrialState, values: Sequence[float] | None = None
    ) -> bool:
        """Sets the state, and values if there are any; a running trial can't start once more."""
        trial = self._anew(trial_id)
        if state == TrialState.RUNNING and trial.state != TrialState.WAITING:
            return False
        trial.state = state
        if values is not None:
            trial.values = list(values)
        if state.is_finished():
            trial.datetime_complete = datetime.now()  # noqa: DTZ005 - as Optuna's
        return True

    def set_trial_intermediate_value(
        self, trial_id: int, step: int, intermediate_value: float
    ) -> None:
        """Sets the value at a step."""
        trial = self._anew(trial_id)
        trial.intermediate_values = {**trial.intermediate_values, step: intermediate_value}

    def set_trial_user_attr(self, trial_id: int, key: str, value: object) -> None:
        """Sets a value of a key."""
        trial = self._anew(trial_id)
        trial.user_attrs = {**trial.user_attrs, key: value}

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:  # noqa: ANN401
        """Sets a value of a key."""
        trial = self._anew(trial_id)
        trial.system_attrs = {**trial.system_attrs, key: value}

    def _anew(self, trial_id: int) -> FrozenTrial:
        """Puts a copy of a trial in its place, as who was given it before may still read it."""
        trial = copy.copy(self.get_trial(trial_id))
        self.check_trial_is_updatable(trial_id, trial.state)
        self._added[trial_id - len(self._ended)] = trial
        return trial


def numbered(trial: FrozenTrial, number: int) -> FrozenTrial:
    """Copies a trial and gives it a number, which is its id, too; shares what never changes."""
    return FrozenTrial(
        number=number,
        state=trial.state,
        value=None,
        values=trial.values,
        datetime_start=trial.datetime_start,
        datetime_complete=trial.datetime_complete,
        params=dict(trial.params),
        distributions=dict(trial.distributions),
        user_attrs=dict(trial.user_attrs),
        system_attrs=dict(trial.system_attrs),
        intermediate_values=dict(trial.intermediate_values),
        trial_id=number,
    )
