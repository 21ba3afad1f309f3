from collections.abc import Sequence

import pytest

from raycosttune.core.abilities import Abilities
from raycosttune.core.moment import Moment
from raycosttune.core.observation import Recipe
from raycosttune.core.proposer import NoHyperparameters, Scored
from raycosttune.core.space import Space
from tests.core.drive import amdahl, goal
from tests.core.told import know

SPACE = Space((1, 2), (64, 128))
JOB = amdahl(SPACE)


class Other:
    """Proposes one recipe."""

    def propose(self, index: int, records: Sequence[Scored]) -> Recipe:
        del index, records
        return {"lr": 0.1}


def moment(*, profile: bool = True, timed: bool = True) -> Moment:
    known = know(SPACE, JOB, SPACE.cells[:1] if timed else ())
    return Moment(known, NoHyperparameters(), Abilities(profile=profile, resize=True))


def test_each_answer_is_worked_out_once() -> None:
    now = moment()
    assert now.ranked is now.ranked
    assert now.planner is now.planner
    assert now.profile(None) is now.profile(None)
    assert now.profile(1) is now.profile(1)
    assert now.profile(None) is not None


@pytest.mark.parametrize(("profile", "timed"), [(False, True), (True, False)])
def test_nothing_is_planned_without_profiles_or_before_one(profile: bool, timed: bool) -> None:
    now = moment(profile=profile, timed=timed)
    assert now.planner is None
    assert (now.profile(None) is None) is not profile
    assert now.ranked


def test_a_proposer_makes_runs_of_new_recipes() -> None:
    known = know(SPACE, JOB, SPACE.cells[:1])
    now = Moment(known, Other(), Abilities())
    assert {run.recipe for run in now.ranked} == {None}
    assert goal() == known.goal
