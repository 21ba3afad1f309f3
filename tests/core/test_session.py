import json
import math
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import NodeHours, WorkerHours
from raycosttune.core.decision import Continue, Finished, Run, Stop, StopCause, Wait
from raycosttune.core.goal import Goal
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.observation import EndCause, Ended, Recipe, Report, TrialRecord
from raycosttune.core.plan import NoPlan, Plan
from raycosttune.core.proposer import Scored
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidCostError, InvalidGoalError, InvalidStateError
from tests.core.drive import Factors, Simulation, amdahl, goal

SPACE = Space((1, 2), (64, 128, 256))
FAILED = Ended(EndCause.FAILED)
NO_NUMBERS = st.sampled_from((math.nan, math.inf, -math.inf))
AMOUNTS = NO_NUMBERS | st.sampled_from((-1.0, 0.0, 1e-320, 1e15)) | st.floats(1e-6, 1e9)
VALUES = NO_NUMBERS | st.none() | st.floats(-2, 2)


def simulation(limits: Goal | None = None, *, max_concurrent: int | None = None) -> Simulation:
    return Simulation(SPACE, limits or goal(), amdahl(SPACE), max_concurrent=max_concurrent)


def session(limits: Goal | None = None, *, max_concurrent: int | None = None) -> Session:
    return simulation(limits, max_concurrent=max_concurrent).session


def started(sweep: Session, trial_id: str = "t") -> Run:
    answer = sweep.ask(trial_id)
    assert isinstance(answer, Run)
    return answer


@pytest.mark.parametrize("limits", [Goal(target=1, mode="max"), Goal(target=1, metric="accuracy")])
def test_a_goal_without_metric_or_mode_is_refused(limits: Goal) -> None:
    with pytest.raises(InvalidGoalError, match='must be set: metric="accuracy", mode="max"'):
        Session(SPACE, limits, clock=float)


def test_a_metric_that_is_no_cost_is_refused_before_anything_starts() -> None:
    with pytest.raises(InvalidCostError):
        Session(SPACE, goal(), cost=len, clock=float)  # type: ignore[arg-type]


def test_node_hours_are_the_currency_by_default() -> None:
    assert isinstance(Session(SPACE, goal(), clock=float).cost, NodeHours)


def test_asking_again_gives_the_same_run_and_starts_no_other() -> None:
    sweep = session()
    first = started(sweep)
    sweep.tell("t", Report(1.0, 0.0, 10.0))
    assert sweep.ask("t") == first
    sweep.tell("t", Ended(EndCause.STOPPED))
    assert sweep.ask("t") == first
    assert list(sweep.records) == ["t"]


def test_a_second_trial_waits_until_something_reached_the_target() -> None:
    sweep = session()
    started(sweep)
    assert sweep.ask("u") == Wait("1 trials run")
    assert list(sweep.records) == ["t"]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_trials_run_at_once_than_allowed(most: int) -> None:
    sweep = session(max_concurrent=most)
    answers = [sweep.ask(f"t{k}") for k in range(5)]
    assert [isinstance(answer, Run) for answer in answers] == [k < most for k in range(5)]
    cells = [answer.allocation for answer in answers if isinstance(answer, Run)]
    assert len(set(cells)) == most


def test_a_run_waits_for_its_workers_only_while_a_trial_may_free_some() -> None:
    sweep = session(max_concurrent=4)
    first = sweep.ask("t", free_workers=0)
    assert isinstance(first, Run)
    answer = sweep.ask("u", free_workers=0)
    assert isinstance(answer, Wait)
    assert answer.why.endswith("workers are not free")
    second = sweep.ask("v", free_workers=2)
    assert isinstance(second, Run)
    assert second.allocation.workers <= 2


def test_on_a_small_free_cluster_a_run_that_fits_is_preferred() -> None:
    sweep = Session(Space((4, 8), (64,)), goal(), cost=NodeHours(), clock=float)
    best = sweep.ask("t", free_workers=8)
    fitting = Session(Space((4, 8), (64,)), goal(), clock=float).ask("t", free_workers=4)
    assert isinstance(best, Run)
    assert isinstance(fitting, Run)
    assert (best.allocation.workers, fitting.allocation.workers) == (8, 4)


def test_a_report_counts_once() -> None:
    sweep = session()
    started(sweep)
    report = Report(1.0, 0.5, 10.0)
    assert sweep.tell("t", report)
    assert not sweep.tell("t", report)
    assert not sweep.tell("t", Report(1.0, 0.7, 99.0))
    assert sweep.tell("t", Report(1.0, 0.5, 10.0, attempt=2))
    assert sweep.records["t"].seconds == 20.0


def test_an_unusable_report_counts_once() -> None:
    sweep = session()
    started(sweep)
    report = Report(math.nan, math.nan, math.nan, math.nan)
    assert sweep.tell("t", report)
    assert not sweep.tell("t", Report(math.inf, 0.5, 1.0))


def test_nothing_is_taken_in_for_an_unknown_or_ended_trial() -> None:
    sweep = session()
    assert not sweep.tell("t", Report(1.0, 1.0, 1.0))
    assert sweep.decide("t") == Continue()
    started(sweep)
    assert sweep.tell("t", Ended(EndCause.FINISHED))
    assert not sweep.tell("t", Report(1.0, 1.0, 1.0))
    assert not sweep.tell("t", FAILED)
    assert sweep.decide("t") == Continue()
    assert sweep.records["t"].ended == Ended(EndCause.FINISHED)


@given(st.lists(st.tuples(AMOUNTS, VALUES, AMOUNTS, AMOUNTS), min_size=1, max_size=4))
@settings(max_examples=30)
def test_reports_of_anything_leave_a_sweep_able_to_go_on(
    reports: list[tuple[float, float | None, float, float]],
) -> None:
    sweep = session()
    started(sweep)
    for epoch, value, seconds, startup in reports:
        sweep.tell("t", Report(epoch, value, seconds, startup))
        sweep.decide("t")
    sweep.tell("t", Ended(EndCause.STOPPED))
    assert isinstance(sweep.ask("u"), Run | Finished)
    assert isinstance(sweep.plan(), Plan | NoPlan)
    assert sweep.explain()
    told = sweep.metric_at(64, 5)
    assert told is None or not math.isnan(told.low + told.mid - told.high)
    assert math.isfinite(sweep.spent)
    json.dumps(sweep.state(), allow_nan=False)


def test_a_trial_that_reports_nan_until_its_end_is_an_observation() -> None:
    sweep = session()
    cell = started(sweep).allocation
    for epoch in range(1, 4):
        sweep.tell("t", Report(float(epoch), math.nan, 10.0))
    sweep.tell("t", Ended(EndCause.FINISHED))
    answer = started(sweep, "u")
    assert answer.allocation != cell


def test_a_trial_that_left_the_space_runs_on() -> None:
    sweep = session(goal(sweep_budget=1e-6))
    sweep.adopt(TrialRecord("old", Allocation(3, 99), {}, 0, [Report(1.0, 0.0, 10.0)]))
    assert sweep.decide("old") == Continue()


def test_a_live_trial_stops_at_the_budget_of_the_sweep() -> None:
    sweep = session(goal(sweep_budget=0.01))
    started(sweep)
    assert sweep.decide("t") == Continue()
    sweep.tell("t", Report(1.0, 0.0, 100.0))
    decision = sweep.decide("t")
    assert decision == Stop(StopCause.BUDGET, "the sweep's budget of 0.01 node-hours is spent")
    assert sweep.ask("u") == Finished("the sweep's budget of 0.01 node-hours is spent")


def test_a_loop_gets_the_rate_of_its_batch_and_records_keep_the_base() -> None:
    rate = LearningRate(reference_batch=64)
    job = amdahl(SPACE)
    sweep = Simulation(SPACE, goal(), job, proposer=Factors([1.0]), learning_rate=rate).session
    run = started(sweep)
    assert run.recipe["lr"] == pytest.approx(0.1 * run.allocation.batch_size / 64)
    assert sweep.records["t"].recipe["lr"] == 0.1


def test_a_caller_that_changes_its_recipe_changes_no_record() -> None:
    sweep = Simulation(SPACE, goal(), amdahl(SPACE), proposer=Factors([1.0])).session
    run = started(sweep)
    run.recipe["lr"] = 7.0
    assert sweep.records["t"].recipe["lr"] == 0.1
    assert started(sweep).recipe["lr"] == 0.1


def test_what_was_spent_is_the_sum_of_what_the_trials_held() -> None:
    sweep = Session(SPACE, goal(), cost=WorkerHours(), max_concurrent=2, clock=float)
    expected = 0.0
    for k, seconds in enumerate((60.0, 90.0)):
        workers = started(sweep, f"t{k}").allocation.workers
        sweep.tell(f"t{k}", Report(1.0, 0.0, seconds))
        sweep.tell(f"t{k}", Ended(EndCause.STOPPED, seconds=30.0))
        expected += workers * (seconds + 30) / 3600
    assert sweep.spent == pytest.approx(expected)


def test_an_adopted_trial_is_known_and_does_not_replace_another() -> None:
    sweep = session()
    first = started(sweep)
    done = amdahl(SPACE).record(goal(), SPACE.cells[0], "old")
    sweep.adopt(done)
    sweep.adopt(TrialRecord("t", Allocation(2, 256), {}, 0))
    assert sweep.ask("t") == first
    assert sweep.ask("old") == Run(SPACE.cells[0], {}, "was found in the journal")
    plan = sweep.plan()
    assert isinstance(plan, Plan)
    assert plan.trial_id == "old"


def unversioned(state: dict[str, object]) -> object:
    return {**state, "version": 99}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (unversioned, "version 1, got 99"),
        (lambda _: None, "got 'NoneType'"),
        (lambda s: {k: v for k, v in s.items() if k != "records"}, "KeyError"),
        (lambda s: {k: v for k, v in s.items() if k != "why"}, "KeyError"),
        (lambda s: {**s, "why": ["t"]}, "must have records, elapsed_seconds and why"),
        (lambda s: {**s, "elapsed_seconds": None}, "must have records"),
        (lambda s: {**s, "elapsed_seconds": math.nan}, "must have records"),
        (lambda s: {**s, "records": 3}, "must have records"),
        (lambda s: {**s, "records": [3]}, "a trial's record can't be read"),
    ],
)
def test_a_state_that_cannot_be_read_is_refused_and_changes_nothing(
    damage: Callable[[dict[str, object]], dict[str, object]], message: str
) -> None:
    sweep = session()
    started(sweep)
    before = sweep.state()
    with pytest.raises(InvalidStateError, match=message):
        sweep.load_state(damage(before))
    assert sweep.state() == before


class Exhausted:
    """Is a proposer that fails after so many recipes."""

    def __init__(self, recipes: int) -> None:
        self.left = recipes

    def propose(self, index: int, records: Sequence[Scored]) -> Recipe:
        del records
        if self.left == 0:
            msg = "no more recipes"
            raise InvalidStateError(msg)
        self.left -= 1
        return {"lr": 0.1, "factor": 1.0 + index}


def test_a_proposer_that_fails_after_a_trial_ends_the_sweep_and_leaves_its_plan() -> None:
    proposer = Exhausted(1)
    sweep = Simulation(SPACE, goal(planned_runs=1000), amdahl(SPACE), proposer=proposer)
    assert sweep.run() == Finished("no more recipes", is_failure=True)
    assert isinstance(sweep.session.plan(), Plan)


def test_a_proposer_that_fails_before_the_first_trial_is_an_error() -> None:
    sweep = Simulation(SPACE, goal(), amdahl(SPACE), proposer=Exhausted(0)).session
    with pytest.raises(InvalidStateError, match="no more recipes"):
        sweep.ask("t")


@pytest.mark.parametrize("is_able", [True, False])
def test_a_session_says_whether_runs_may_change_their_workers(*, is_able: bool) -> None:
    able = Abilities(resize=is_able)
    assert Session(SPACE, goal(), abilities=able, clock=float).can_resize is is_able
