import math

import pytest

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Finished
from raycosttune.core.experiment import Experiment
from raycosttune.core.explain import _frontier, explain
from raycosttune.core.frontier import Point
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, Resized, TrialRecord
from raycosttune.core.plan import NoPlan, Plan, make_plan
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Factors, Job, Simulation, amdahl, goal

SPACE = Space((1, 2), (64, 128))
ONE, TWO = Allocation(1, 64), Allocation(2, 64)
PAIR = Space((1, 2), (64,))
# 10 epochs: 360 s and 0.1 worker-hours on one worker, 200 s and 0.111 worker-hours on two.
JOB = Job({ONE: 36.0, TWO: 20.0}, {64: 10.0})
BOTH = (JOB.record(goal(), ONE, "one"), JOB.record(goal(), TWO, "two"))
GUESS = "is the cheapest guess before any accuracy is seen"


def test_before_a_trial_only_the_next_step_and_the_lack_of_a_plan_are_said() -> None:
    session = Simulation(SPACE, goal(), amdahl(SPACE)).session
    ahead, plan = session.explain().splitlines()
    assert ahead == f"next: 2 workers, batch 64, which {GUESS}"
    assert plan.startswith("no plan: no trial has started")


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
            f"{record.trial_id}: {workers}, batch {cell.batch_size}, 2 epochs, best accuracy 0, "
            "0.01 node-hours: "
        )
    assert lines[0].endswith(f"Started because it {GUESS}.")
    assert lines[1].endswith("Started because it is expected to reach the target.")
    assert ": failed. " in lines[0]
    assert ": was too slow. " in lines[1]
    assert ": running. " in lines[2]


@pytest.mark.parametrize(
    ("reason", "said"),
    [("2 meet the deadline.", " workers: 2 meet the deadline."), ("", " workers.")],
)
def test_a_trial_that_was_moved_says_where_to_and_why(reason: str, said: str) -> None:
    session = Simulation(PAIR, goal(), JOB).session
    session.ask("a")
    session.tell("a", Report(2.0, 0.0, 36.0, checkpoint="c"))
    session.tell("a", Resized(2, 1, reason))
    (line,) = (line for line in session.explain().splitlines() if line.startswith("a: "))
    assert line.endswith(f" Moved to 2{said}")


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
    plan = sweep.session.plan()
    place = lines.index(f"plan: {plan}" if isinstance(plan, Plan) else str(plan))
    assert lines[place - 1] == f"ended: {finished.why}"


def test_a_search_that_ends_before_it_begins_says_why_in_its_plan() -> None:
    late = Session(SPACE, goal(sweep_deadline_seconds=1), clock=lambda: 0.0)
    assert str(late.plan()) == "no plan: no trial has started. The search spent 0 node-hours."
    late.advance(2.0)
    told = "no plan: no trial has started; the search ended: the sweep's deadline of 1 s is reached"
    assert str(late.plan()).startswith(told)


def test_what_comes_next_has_its_hyperparameters() -> None:
    proposer = Factors([2.0, 1.0])
    sweep = Simulation(SPACE, goal(planned_runs=1000), amdahl(SPACE), proposer=proposer)
    assert ", other hyperparameters, which is the cheapest guess" in sweep.session.explain()
    sweep.session.ask("t")
    sweep.train("t")
    known, plan = sweep.session.known, sweep.session.plan()
    (recipe,) = known.recipes
    run = Experiment(SPACE.cells[0], recipe, 1.0, 2.0, 3.0, "pays")
    line, ahead, *_ = explain(known, {}, run, plan).splitlines()
    assert ", factor=2, lr=0.1, " in line
    assert line.endswith(": reached the target of at least 1 with accuracy 1.")
    assert ahead == "next: 1 worker, batch 64, factor=2, lr=0.1, which pays"


def test_while_something_runs_the_search_has_not_ended() -> None:
    session = Simulation(SPACE, goal(sweep_budget=0.01), amdahl(SPACE)).session
    session.ask("t")
    session.tell("t", Report(1.0, 0.0, 3600.0))
    ahead = session.explain().splitlines()[1]
    assert ahead.startswith("next: none, as the sweep's budget of 0.01 node-hours is ")


def test_a_trial_found_in_the_journal_and_a_reason_with_a_stop_read_well() -> None:
    session = Simulation(SPACE, goal(), amdahl(SPACE)).session
    end = Ended(EndCause.FAILED, "TypeError: no arguments.")
    session.adopt(TrialRecord("t", SPACE.cells[0], {}, 0, [Report(1.0, 0.0, 36.0)], end))
    line = session.explain().splitlines()[0]
    assert "1 epoch, " in line
    assert line.endswith(": TypeError: no arguments. Found in the journal.")


def told(*records: TrialRecord, space: Space = PAIR, limits: Goal) -> list[str]:
    """Returns the lines after the plan."""
    known = Knowledge(records, space, limits, WorkerHours())
    plan = make_plan(known, None, 1.0)
    lines = explain(known, {}, "over", plan).splitlines()
    assert lines[len(records)] == "ended: over"
    assert lines[len(records) + 1] == (str(plan) if isinstance(plan, NoPlan) else f"plan: {plan}")
    return lines[len(records) + 2 :]


def test_a_deadline_that_keeps_a_cheaper_measured_configuration_out_binds() -> None:
    binds, price, *rest = told(*BOTH, limits=goal(deadline_seconds=250))
    assert binds == (
        "deadline: 250 s binds: without it 1 worker, batch 64 would be the plan for "
        "0.1 worker-hours"
    )
    # The cheaper one needs 110 s more, that is 2 minutes.
    assert price.startswith("price: 2 more minutes of deadline save 0.011")
    assert price.endswith(" worker-hours, from 0.111 to 0.1 (measured)")
    assert rest == [
        "runner-up: 1 worker, batch 64: 0.1 worker-hours, 360 s, misses the deadline",
        "deadline  workers x batch  worker-hours",
        "   200 s           2 x 64         0.111  the plan",
        "   360 s           1 x 64           0.1  measured",
    ]


def test_a_deadline_beyond_the_cheapest_configuration_does_not_bind() -> None:
    assert told(*BOTH, limits=goal(deadline_seconds=400)) == [
        "deadline: 400 s does not bind: the plan would be the same without it",
        "runner-up: 2 workers, batch 64: 0.111 worker-hours, 200 s, meets the deadline",
        "deadline  workers x batch  worker-hours",
        "   200 s           2 x 64         0.111  measured",
        "   360 s           1 x 64           0.1  the plan",
    ]


def test_without_a_deadline_nothing_is_said_of_one() -> None:
    lines = told(*BOTH, limits=goal())
    assert lines[0] == "runner-up: 2 workers, batch 64: 0.111 worker-hours, 200 s"
    assert lines[1].startswith("deadline  workers x batch")


def test_the_only_cell_has_no_runner_up_and_no_frontier() -> None:
    space = Space((1,), (64,))
    assert told(BOTH[0], space=space, limits=goal()) == []
    lines = told(BOTH[0], space=space, limits=goal(deadline_seconds=360))
    assert lines == ["deadline: 360 s does not bind: the plan would be the same without it"]


def point(deadline: float, cost: float, batch: int = 64, *, measured: bool = True) -> Point:
    return Point(Allocation(1, batch), "{}", deadline, deadline, cost, measured)


def test_the_frontier_has_at_most_six_lines_and_the_plan() -> None:
    known = Knowledge([BOTH[0]], PAIR, goal(), WorkerHours())
    among = [
        point(1000 + 100 * k, 2 - 0.0032 * (2**k - 1), 128 + k, measured=False) for k in range(9)
    ]
    assert list(_frontier(known, [*among, point(3600, 1.0)])) == [
        "deadline  workers x batch  worker-hours",
        "  1000 s          1 x 128             2  predicted",
        "  1600 s          1 x 134           1.8  predicted",
        "  1700 s          1 x 135          1.59  predicted",
        "  1800 s          1 x 136          1.18  predicted",
        "  3600 s           1 x 64             1  the plan",
    ]


def test_measured_configurations_are_told_where_none_is_in_time() -> None:
    assert told(*BOTH, limits=goal(deadline_seconds=150)) == [
        "runner-up: 1 worker, batch 64: 0.1 worker-hours, 360 s, misses the deadline",
        "runner-up: 2 workers, batch 64: 0.111 worker-hours, 200 s, misses the deadline",
        "deadline  workers x batch  worker-hours",
        "   200 s           2 x 64         0.111  measured",
        "   360 s           1 x 64           0.1  measured",
    ]


def test_at_most_three_runners_up_are_told() -> None:
    space = Space((1, 2, 4, 8, 16), (64,))
    job = Job({cell: 360 / cell.workers**0.5 for cell in space.cells}, {64: 10.0})
    records = [job.record(goal(), cell, f"{cell.workers}") for cell in space.cells]
    lines = told(*records, space=space, limits=goal())
    others = [line for line in lines if line.startswith("runner-up: ")]
    assert [line.partition(",")[0] for line in others] == [
        f"runner-up: {workers} workers" for workers in (2, 4, 8)
    ]


def test_a_configuration_that_was_not_run_may_be_too_near_the_deadline() -> None:
    timed = JOB.record(goal(), ONE, "one", epochs=4)
    lines = told(timed, BOTH[1], limits=goal(deadline_seconds=361))
    near = "runner-up: 1 worker, batch 64: 0.1 worker-hours, 360 s, too near the deadline"
    assert near in lines


def test_the_verdict_is_said_once() -> None:
    space = Space((1,), (64,))
    begun = JOB.record(goal(), ONE, "one", epochs=1)
    limits = goal(deadline_seconds=40)
    verdict = f"infeasible: even 1 worker at batch 64 needs at least {72 * math.exp(-0.1):.3g} s"
    known = Knowledge([begun], space, limits, WorkerHours())
    plan = make_plan(known, None, 0.1)
    assert verdict in str(plan)
    assert explain(known, {}, "over", plan).count("infeasible") == 1
    begun.ended = None
    known = Knowledge([begun], space, limits, WorkerHours())
    plan = make_plan(known, None, 0.1)
    assert verdict not in str(plan)
    assert explain(known, {}, "over", plan).splitlines()[-1].startswith(verdict)


def test_a_profile_is_told_before_it_starts_while_it_runs_and_after() -> None:
    abilities = Abilities(profile=True)
    space, limits = Space((1, 2), (64, 128, 256)), goal(planned_runs=9)
    session = Session(space, limits, abilities=abilities, clock=lambda: 0.0)
    why = "times a few steps on the fewest workers"
    assert session.explain().splitlines()[0] == (
        f"next: a profile of 2 cells on 1 worker, which {why}"
    )
    profile = session.ask("p")
    assert isinstance(profile, Profile)
    line = "p: a profile of 2 cells on 1 worker, 0 node-hours: running"
    assert session.explain().splitlines()[0] == f"{line}. Started because it {why}."
    assert "ended: " not in session.explain()
    session.tell_profile("p", Profiled({profile.cells[0]: 36.0}, 36.0, 30.0))
    first = session.explain().splitlines()[0]
    assert first == (
        "p: a profile of 2 cells on 1 worker, 0.01 node-hours: timed 1 of them. "
        f"Started because it {why}."
    )


def test_a_profile_that_was_lost_is_told_with_its_reason() -> None:
    for end, said in ((Ended(EndCause.FAILED, "no memory."), "no memory"), (None, "failed")):
        profile = Profile((ONE,))
        record = ProfileRecord("p", profile, ended=end or Ended(EndCause.FAILED))
        known = Knowledge((), PAIR, goal(), WorkerHours(), profiles=(record,))
        plan = make_plan(known, None, 0.0)
        first = explain(known, {}, "nothing pays", plan).splitlines()[0]
        assert first == f"p: a profile of 1 cell on 1 worker, 0 worker-hours: {said}."


def test_it_says_what_speaks_against_an_assumption() -> None:
    slow = [Report(k + 1.0, float(k == 19), 36.0) for k in range(20)]
    session = Simulation(PAIR, goal(), JOB).session
    session.adopt(BOTH[0])
    session.adopt(TrialRecord("slow", TWO, {}, 1, slow, Ended(EndCause.REACHED)))
    lines = [line for line in session.explain().splitlines() if line.startswith("against an ")]
    assert len(lines) == 2
    assert "depend on the batch, not on the workers): the runs at batch 64 need" in lines[1]
