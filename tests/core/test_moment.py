from collections.abc import Sequence

import pytest

from raycosttune.core.abilities import Abilities
from raycosttune.core.decision import Continue, Decision, Resize
from raycosttune.core.moment import Moment
from raycosttune.core.observation import Recipe, Report, TrialRecord
from raycosttune.core.proposer import NoHyperparameters, Scored
from raycosttune.core.space import Space
from tests.core.drive import Job, amdahl, goal
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


def decide(now: Moment, record: TrialRecord, *, can_resize: bool = True) -> Decision:
    return now.decide(record, None, can_resize=can_resize)


def test_the_guard_needs_no_profile() -> None:
    """An hour an epoch leaves no time on one worker, and enough on two."""
    job = Job({cell: 3600.0 / cell.workers for cell in SPACE.cells}, {64: 9.0, 128: 9.0}, 10.0)
    reports = [Report(k, 0.0, 3600.0, checkpoint="c", workers=1) for k in (1.0, 2.0)]
    run = TrialRecord("t", SPACE.cells[0], {}, 0, reports)
    known = know(SPACE, job, (), [run], limits=goal(deadline_seconds=8 * 3600.0))
    able = Moment(known, NoHyperparameters(), Abilities(resize=True))
    assert able.forecast is able.forecast is not None
    decision = decide(able, run)
    assert isinstance(decision, Resize)
    assert decision.workers == 2
    assert not isinstance(decide(able, run, can_resize=False), Resize)
    unable = Moment(known, NoHyperparameters(), Abilities())
    assert not isinstance(decide(unable, run), Resize)


def test_without_a_deadline_nothing_is_at_risk() -> None:
    run = TrialRecord("t", SPACE.cells[0], {}, 0, [Report(1.0, 0.0, 3600.0, checkpoint="c")])
    known = know(SPACE, JOB, (), [run])
    assert decide(Moment(known, NoHyperparameters(), Abilities(resize=True)), run) == Continue()
