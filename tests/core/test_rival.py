from dataclasses import replace

import pytest

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Continue, Finished, Run, Stop, StopCause
from raycosttune.core.experiment import worthwhile_experiments
from raycosttune.core.goal import Goal
from raycosttune.core.going import Going
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import TrialRecord
from raycosttune.core.profile import Profile, Profiled
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.core.stopping import decide
from raycosttune.errors import InvalidGoalError
from tests.core.drive import amdahl, goal

SPACE = Space((1, 2, 4), (32, 64, 128))
JOB = amdahl(SPACE)
GOAL = goal(planned_runs=1000)
CELL = SPACE.cells[-1]


def test_what_can_not_be_cheaper_than_a_rival_plan_is_not_worth_a_trial() -> None:
    done = JOB.record(GOAL, CELL, "done")
    for rival, pays in ((None, True), (10.0, True), (1e-6, False)):
        limits = replace(GOAL, rival_cost=rival)
        known = Knowledge([done], SPACE, limits, WorkerHours())
        assert known.incumbent is not None
        found = worthwhile_experiments(known, known.incumbent, recipes=False)
        assert bool(found) is pays
        least = min(rival or 1e9, known.incumbent.cost.mid)
        assert known.cost_to_beat(known.incumbent) == least


def test_a_run_that_can_not_beat_a_rival_plan_is_stopped() -> None:
    done = JOB.record(GOAL, CELL, "done")
    begun = JOB.record(GOAL, SPACE.cells[0], "t", epochs=2)
    record = TrialRecord("t", begun.allocation, {}, 1, begun.reports)
    goes = Going(record.allocation.workers, can_resize=False)
    free = Knowledge([done, record], SPACE, GOAL, WorkerHours())
    assert decide(free, record, goes) == Continue()
    limits = replace(GOAL, rival_cost=1e-6)
    decision = decide(Knowledge([done, record], SPACE, limits, WorkerHours()), record, goes)
    assert isinstance(decision, Stop)
    assert decision.cause is StopCause.COST


@pytest.mark.parametrize("rival", [None, 1e-6])
def test_whoever_plans_the_whole_bill_minds_the_rival_too(rival: float | None) -> None:
    limits = replace(GOAL, rival_cost=rival)
    able = Abilities(profile=True)
    sweep = Session(SPACE, limits, cost=WorkerHours(), abilities=able, clock=lambda: 0.0)
    sweep.adopt(JOB.record(GOAL, CELL, "done"))
    answer = sweep.ask("p0")
    for k in range(9):
        if not isinstance(answer, Profile):
            break
        epochs = {cell: JOB.epoch_seconds[cell] for cell in answer.cells}
        sweep.tell_profile(f"p{k}", Profiled(epochs, 10.0, 5.0))
        answer = sweep.ask(f"p{k + 1}")
    assert isinstance(answer, Run if rival is None else Finished)


@pytest.mark.parametrize("rival", [0, -1.0, float("nan"), "3"])
def test_a_rival_cost_must_be_positive(rival: float) -> None:
    with pytest.raises(InvalidGoalError, match="rival_cost must be"):
        Goal(target=1.0, rival_cost=rival)
