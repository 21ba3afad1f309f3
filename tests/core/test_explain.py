import pytest

from raycosttune.core.decision import Finished
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Report
from raycosttune.core.space import Space
from tests.core.drive import Simulation, amdahl, goal

SPACE = Space((1, 2), (64, 128))


def test_before_a_trial_only_the_next_step_and_the_lack_of_a_plan_are_said() -> None:
    session = Simulation(SPACE, goal(), amdahl(SPACE)).session
    ahead, plan = session.explain().splitlines()
    assert ahead.startswith("next: it reaches the target in time with an estimated chance of ")
    assert plan.startswith("plan: no plan: no trial has started")


def test_each_trial_has_a_line_with_its_end_and_its_reason() -> None:
    session = Simulation(SPACE, goal(), amdahl(SPACE), max_concurrent=3).session
    for trial_id, end in (
        ("a", Ended(EndCause.FAILED)),
        ("b", Ended(EndCause.STOPPED, "was too slow")),
        ("c", None),
    ):
        session.ask(trial_id)
        session.tell(trial_id, Report(2.0, 0.0, 36.0))
        if end is not None:
            session.tell(trial_id, end)
    lines = session.explain().splitlines()
    assert len(lines) == 5
    for line, record in zip(lines, session.records.values(), strict=False):
        cell = record.allocation
        workers = "1 worker" if cell.workers == 1 else f"{cell.workers} workers"
        assert line.startswith(
            f"{record.trial_id}: {workers}, batch {cell.batch_size}, 2 epochs, 0.01 node-hours: "
        )
        assert "Started because it reaches the target in time" in line
    assert ": failed. " in lines[0]
    assert ": was too slow. " in lines[1]
    assert ": running. " in lines[2]


@pytest.mark.parametrize(
    "limits",
    [
        goal(planned_runs=1),
        goal(sweep_budget=0.01),
        goal(sweep_deadline_seconds=40),
        goal(planned_runs=100, sweep_budget=1),
        goal(max_epochs=1),
    ],
)
def test_what_comes_next_is_what_asking_answers(limits: Goal) -> None:
    sweep = Simulation(SPACE, limits, amdahl(SPACE))
    finished = sweep.run()
    assert isinstance(finished, Finished)
    lines = sweep.session.explain().splitlines()
    assert lines[-2] == f"next: {finished.why}"
    assert lines[-1] == f"plan: {sweep.session.plan()}"
