import pytest

from raycosttune.core import verdict
from raycosttune.core.decision import Finished
from raycosttune.core.frontier import infeasible
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import TrialRecord
from raycosttune.core.planner import Planner
from raycosttune.core.space import Allocation, Space
from raycosttune.core.verdict import LEAST_HOPE, hope, lost
from tests.core.drive import Job, amdahl, goal
from tests.core.told import begun, know, session, vain

SPACE = Space((1, 2, 4), (64, 128, 256))
JOB = amdahl(SPACE)
LONG = Job(JOB.epoch_seconds, dict.fromkeys(JOB.epochs, 500.0))
SMALL, LARGE = Allocation(4, 64), Allocation(4, 256)


def moment(limits: Goal, *records: TrialRecord, recipes: bool = False) -> tuple[Knowledge, Planner]:
    known = know(SPACE, LONG, SPACE.cells, records, limits=limits)
    return known, Planner(known, recipes=recipes, can_resize=True)


def said(limits: Goal, *records: TrialRecord) -> str:
    return lost(*moment(limits, *records), recipes=False)


def test_what_the_bounds_prove_ends_a_sweep_and_what_they_say_of_tried_recipes_does_not() -> None:
    known, planner = moment(goal(deadline_seconds=200.0), vain(LONG, LARGE, 60))
    for chooser in (planner, None):
        why = lost(known, chooser, recipes=False)
        assert why.startswith("infeasible: even ")
        assert "a deadline of at least" in why
    assert not lost(known, None, recipes=True)


def test_a_planner_that_holds_falling_epochs_possible_goes_on_where_bounds_would_not() -> None:
    known, planner = moment(goal(deadline_seconds=300.0), vain(LONG, SMALL, 20))
    assert infeasible(known)
    assert hope(planner.outlook("{}")) > LEAST_HOPE
    assert not lost(known, planner, recipes=False)


def test_a_chance_next_to_none_ends_a_sweep_and_a_deadline_that_may_do_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verdict, "infeasible", lambda _: "")
    why = said(goal(deadline_seconds=200.0), vain(LONG, LARGE, 60), vain(LONG, SMALL, 6))
    assert why.startswith("no configuration is likely to meet the deadline of 200 s")
    assert float(why.split("a deadline of about ")[1].split()[0]) > 200
    assert not said(goal(deadline_seconds=2000.0), vain(LONG, LARGE, 60))


@pytest.mark.parametrize(
    ("limits", "records"),
    [
        (goal(), [vain(LONG, LARGE, 60)]),
        (goal(deadline_seconds=200.0), []),
        (goal(deadline_seconds=200.0), [vain(LONG, LARGE, 60), begun(LONG, LARGE, 1)]),
        (goal(deadline_seconds=2000.0), [vain(LONG, LARGE, 60), JOB.record(goal(), SMALL, "r")]),
        (goal(deadline_seconds=2000.0), [vain(LONG, SMALL, 2)]),
    ],
)
def test_nothing_is_lost_before_a_run_was_in_vain_or_while_one_runs_or_may_do(
    limits: Goal, records: list[TrialRecord]
) -> None:
    assert not said(limits, *records)


def test_a_lost_sweep_ends_and_explains_itself() -> None:
    sweep = session(SPACE, goal(deadline_seconds=200.0))
    sweep.adopt(vain(LONG, LARGE, 60))
    answer = sweep.ask("next")
    assert isinstance(answer, Finished)
    assert answer.why.startswith("infeasible: even ")
    assert f"ended: {answer.why}" in sweep.explain()
