import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from raycosttune.core.observation import Recipe
from raycosttune.core.proposer import Scored
from raycosttune.errors import InvalidSpaceError
from raycosttune.proposal.past import Past

LR = {"lr": FloatDistribution(0.0, 1.0)}
POOL: list[Recipe] = [{"lr": k / 4} for k in range(5)]
some_records = st.lists(
    st.builds(Scored, st.sampled_from(POOL), st.sampled_from([0.5, 1.0, 2.0])), max_size=8
)


def told(trials: list[FrozenTrial]) -> list[object]:
    return [(each.number, each.state, each.value, each.params) for each in trials]


@given(st.lists(some_records, min_size=1, max_size=5))
def test_trials_are_those_of_the_records_whatever_came_before(each: list[list[Scored]]) -> None:
    past = Past(LR)
    for records in each:
        trials = past.trials(records)
        assert told(trials) == [
            (k, TrialState.COMPLETE, math.log(record.score), record.recipe)
            for k, record in enumerate(records)
        ]
        assert all(trial.distributions == LR for trial in trials)


def test_the_trial_of_a_record_that_is_known_is_made_once() -> None:
    past, records = Past(LR), [Scored(recipe, 1.0) for recipe in POOL]
    first = past.trials(records[:3])
    assert past.trials([]) == []
    again = past.trials([*(Scored(record.recipe, 2.0) for record in records[:3]), records[3]])
    assert all(a is b for a, b in zip(first, again, strict=False))


def test_a_record_outside_the_space_leaves_the_trials_of_the_others() -> None:
    past, records = Past(LR), [Scored(recipe, 1.0) for recipe in POOL]
    past.trials(records)
    with pytest.raises(InvalidSpaceError, match=r"got {'lr': 2.0}"):
        past.trials([*records[:2], Scored({"lr": 2.0}, 3.0), *records[3:]])
    assert told(past.trials(records)) == told(Past(LR).trials(records))
