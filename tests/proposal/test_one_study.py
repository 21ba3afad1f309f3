from typing import Any

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import BaseStorage, InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from raycosttune.proposal.one_study import OneStudy, numbered

LR = FloatDistribution(0.0, 1.0)
Step = tuple[Any, ...]


def ended(count: int) -> list[FrozenTrial]:
    params = [k / 10 for k in range(count)]
    each = [create_trial(params={"lr": x}, distributions={"lr": LR}, value=x) for x in params]
    return [numbered(trial, k) for k, trial in enumerate(each)]


def optunas(trials: list[FrozenTrial]) -> BaseStorage:
    storage = InMemoryStorage()
    study = storage.create_new_study([StudyDirection.MINIMIZE])
    for trial in trials:
        storage.create_new_trial(study, trial)
    return storage


def told(storage: BaseStorage, states: tuple[TrialState, ...] | None = None) -> list[object]:
    trials = storage.get_all_trials(0, states=states)
    attrs = storage.get_study_user_attrs(0), storage.get_study_system_attrs(0)
    shown = [
        (
            *(trial.number, trial.state, trial.values, trial.params, trial.distributions),
            *(trial.user_attrs, trial.system_attrs, trial.intermediate_values),
            trial.datetime_complete is not None,
        )
        for trial in trials
    ]
    return [*shown, *attrs, storage.get_n_trials(0), storage.get_study_directions(0)]


keys, numbers = st.sampled_from("ab"), st.floats(0.0, 1.0)
others = st.sampled_from([state for state in TrialState if state != TrialState.COMPLETE])
steps = st.one_of(
    st.just(("create_new_trial",)),
    st.just(("create_new_trial", create_trial(state=TrialState.WAITING))),
    st.tuples(st.just("set_trial_param"), st.just("lr"), numbers, st.just(LR)),
    st.tuples(st.just("set_trial_intermediate_value"), st.integers(0, 2), numbers),
    st.tuples(st.just("set_trial_state_values"), others),
    st.tuples(st.just("set_trial_state_values"), st.just(TrialState.COMPLETE), st.tuples(numbers)),
    *(
        st.tuples(st.just(f"set_{whose}_{kind}_attr"), keys, numbers)
        for whose in ("trial", "study")
        for kind in ("user", "system")
    ),
)


def done(step: Step, storage: BaseStorage) -> object:
    """Takes a step, where it is about a trial with the last one."""
    name, *arguments = step
    whose = storage.get_n_trials(0) - 1 if name.startswith("set_trial") else 0
    try:
        return getattr(storage, name)(whose, *arguments)
    except UpdateFinishedTrialError:
        return "ended"
    except (IndexError, KeyError):  # there is no trial
        return "none"


@given(st.integers(0, 3), st.lists(steps, max_size=12))
def test_it_tells_what_optunas_own_storage_would(count: int, each: list[Step]) -> None:
    ours, theirs = OneStudy(ended(count)), optunas(ended(count))
    for step in each:
        assert done(step, ours) == done(step, theirs)
    for states in (None, (TrialState.WAITING,), (TrialState.COMPLETE, TrialState.RUNNING)):
        assert told(ours, states) == told(theirs, states)


@given(st.integers(1, 3), st.lists(steps, max_size=12))
def test_what_is_lent_to_it_stays_as_it_is(count: int, each: list[Step]) -> None:
    lent = ended(count)
    storage, before = OneStudy(lent), [numbered(trial, k) for k, trial in enumerate(lent)]
    for step in each:
        done(step, storage)
    for copy in storage.get_all_trials(0):
        copy.params["lr"] = 2.0
    assert lent == before
    assert all(storage.get_trial(k) is trial for k, trial in enumerate(lent))


def test_what_was_read_before_a_change_stays_as_it_was() -> None:
    storage = OneStudy([])
    trial = storage.get_trial(storage.create_new_trial(0))
    storage.set_trial_param(0, "lr", 0.5, LR)
    assert (trial.params, storage.get_trial(0).params) == ({}, {"lr": 0.5})


def test_an_ended_trial_is_not_changed() -> None:
    storage = OneStudy(ended(2))
    with pytest.raises(UpdateFinishedTrialError):
        storage.set_trial_user_attr(1, "a", 1)
    assert storage.get_trial(1).user_attrs == {}


def test_a_study_of_it_is_one_of_optunas() -> None:
    study = optuna.load_study(study_name="any", storage=OneStudy(ended(3)))
    assert study.best_trial.number == 0
    trial: Any = study.ask({"lr": LR})
    assert trial.number == 3
    study.tell(trial, -1.0)
    assert study.best_trial.number == 3
    assert study.best_params == {"lr": trial.params["lr"]}


@pytest.mark.parametrize("refused", ["create_new_study", "delete_study", "get_all_studies"])
def test_there_is_no_other_study(refused: str) -> None:
    arguments = {"create_new_study": ([StudyDirection.MINIMIZE],), "delete_study": (0,)}
    with pytest.raises(NotImplementedError):
        getattr(OneStudy([]), refused)(*arguments.get(refused, ()))
