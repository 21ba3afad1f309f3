import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Stop, StopCause
from raycosttune.core.experiment import Experiment
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.limits import (
    FAILURES_AT_START,
    affordable,
    hopeless,
    last_end,
    limit_met,
    overdue,
    reached_limit,
    used_up,
)
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.space import Space
from tests.core.drive import Job, goal
from tests.core.told import profiled

SPACE = Space((1,), (64, 128))
CELL, OTHER = SPACE.cells
JOB = Job({CELL: 360.0, OTHER: 360.0}, {64: 10.0, 128: 10.0})  # 1 worker-hour a run
AMOUNTS = st.floats(0, 100)
FAILED = TrialRecord("f", CELL, {}, 0, [], Ended(EndCause.FAILED))


def know(*records: TrialRecord, goal: Goal | None = None) -> Knowledge:
    return Knowledge(records, SPACE, goal or Goal(target=1.0, mode="max"), WorkerHours())


def run(price: float, seconds: float) -> Experiment:
    return Experiment(CELL, "{}", price, 5.0, seconds, "pays")


@given(
    budget=st.none() | st.floats(0.1, 100),
    deadline=st.none() | st.floats(0.1, 100),
    spent=AMOUNTS,
    elapsed=AMOUNTS,
)
def test_a_limit_is_named_exactly_when_it_is_reached(
    budget: float | None, deadline: float | None, spent: float, elapsed: float
) -> None:
    known = know(goal=goal(sweep_budget=budget, sweep_deadline_seconds=deadline))
    reason = reached_limit(known, spent=spent, elapsed_seconds=elapsed)
    is_late, is_spent = elapsed >= (deadline or math.inf), spent >= (budget or math.inf)
    assert bool(reason) is (is_late or is_spent)
    if is_late:
        assert reason == f"the sweep's deadline of {deadline:g} s is reached"
    elif is_spent:
        assert reason == f"the sweep's budget of {budget:g} worker-hours is spent"


@given(budget=st.floats(0.1, 100), spent=AMOUNTS, price=AMOUNTS, elapsed=AMOUNTS, seconds=AMOUNTS)
def test_a_run_is_affordable_where_both_limits_outlast_it(
    budget: float, spent: float, price: float, elapsed: float, seconds: float
) -> None:
    limits = goal(sweep_budget=budget, sweep_deadline_seconds=50)
    known = know(JOB.record(limits, CELL, "t"), goal=limits)
    fits = spent + price <= budget and elapsed + seconds <= 50
    answer = affordable(known, [run(price, seconds)], spent=spent, elapsed_seconds=elapsed)
    assert bool(answer) is fits


def test_without_limits_everything_is_affordable() -> None:
    known = know(JOB.record(goal(), CELL, "t"))
    assert affordable(known, [run(1e9, 1e9)], spent=1e9, elapsed_seconds=1e9)


def test_the_first_run_is_affordable_whatever_it_may_cost() -> None:
    limits = goal(sweep_budget=1, sweep_deadline_seconds=1)
    assert affordable(know(goal=limits), [run(1e9, 1e9)], spent=0, elapsed_seconds=0)


def test_what_the_live_trials_will_still_cost_is_set_aside() -> None:
    limits = goal(sweep_budget=3)
    done = JOB.record(limits, CELL, "done")
    begun = JOB.record(limits, OTHER, "begun", epochs=4)  # 0.4 of 1 worker-hour
    live = TrialRecord("live", OTHER, {}, 1, begun.reports)

    def affords(price: float, record: TrialRecord) -> bool:
        known = know(done, record, goal=limits)
        return bool(affordable(known, [run(price, 1)], spent=1.4, elapsed_seconds=0))

    assert affords(0.99, live)
    assert not affords(1.01, live)
    assert affords(1.59, begun)


@pytest.mark.parametrize("count", range(1, 6))
def test_a_sweep_whose_first_trials_all_fail_is_hopeless(count: int) -> None:
    reason = hopeless(know(*[FAILED] * count))
    assert bool(reason) is (count >= FAILURES_AT_START)
    if reason:
        assert reason == f"the first {count} trials ended without a report: see their errors"
        told = replace(FAILED, ended=Ended(EndCause.FAILED, "ValueError: no such layer"))
        end = "the last one: ValueError: no such layer"
        assert hopeless(know(*[told] * count)) == reason.partition(":")[0] + f"; {end}"


def test_one_report_keeps_a_failing_sweep_alive_until_it_tried_enough() -> None:
    reported = TrialRecord("r", CELL, {}, 0, [Report(1.0, 0.0, 1.0)], Ended(EndCause.FAILED))
    most = 2 * len(SPACE.cells) + 3
    assert hopeless(know(*[FAILED] * (most - 2), reported)) == ""
    reason = hopeless(know(*[FAILED] * (most - 1), reported))
    assert reason == f"{most} trials did not reach the target"
    known = know(*[FAILED] * (most - 1), reported, goal=goal(deadline_seconds=60))
    assert hopeless(known) == f"{reason} by the deadline"
    own = [replace(reported, ended=Ended(EndCause.FINISHED))] * most
    told = hopeless(know(*own, goal=goal(deadline_seconds=60)))
    assert told == f"{reason} before they ended by themselves"


NAMES = "the training function returned; it reported acc, epoch"
BLIND = TrialRecord("b", CELL, {}, 0, [Report(1.0, None, 1.0)], Ended(EndCause.FINISHED, NAMES))


@pytest.mark.parametrize("count", range(1, 6))
@pytest.mark.parametrize("others", [(), (FAILED,)])
def test_a_sweep_whose_first_trials_show_no_value_is_hopeless(
    count: int, others: tuple[TrialRecord, ...]
) -> None:
    known = Knowledge([*others, *[BLIND] * count], SPACE, goal(), WorkerHours())
    ended = count + len(others)
    reason = f"none of the first {ended} trials reported a finite 'accuracy'; the last one: {NAMES}"
    assert hopeless(known) == (reason if ended >= FAILURES_AT_START else "")


def test_one_trial_is_enough_where_the_metric_has_another_name() -> None:
    end = "it reported acc, epoch; perhaps metric='acc' is meant"
    misnamed = replace(BLIND, ended=Ended(EndCause.MISNAMED, end))
    reason = f"the first trial never reported a finite 'accuracy'; the last one: {end}"
    assert hopeless(Knowledge([misnamed], SPACE, goal(), WorkerHours())) == reason
    told = hopeless(Knowledge([misnamed, FAILED], SPACE, goal(), WorkerHours()))
    assert told == f"none of the first 2 trials reported a finite 'accuracy'; the last one: {end}"
    seen = TrialRecord("s", CELL, {}, 0, [Report(1.0, 0.0, 1.0)])
    assert hopeless(know(misnamed, seen)) == ""


def test_one_value_keeps_a_sweep_alive() -> None:
    seen = TrialRecord("s", CELL, {}, 0, [Report(1.0, 0.0, 1.0)])
    assert hopeless(know(*[BLIND] * 4, seen)) == ""


@pytest.mark.parametrize("record", [FAILED, BLIND])
def test_what_runs_beside_crashing_or_blind_trials_gets_no_company(record: TrialRecord) -> None:
    live = TrialRecord("live", CELL, {}, 1)
    assert hopeless(know(*[record] * 2, live)) == ""
    assert hopeless(know(*[record] * 3, live)).startswith(("the first 3", "none of the first 3"))


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (None, ""),
        (Ended(EndCause.FAILED), ""),
        (Ended(EndCause.FAILED, "no."), "; the last one: no"),
    ],
)
def test_the_last_end_is_said_where_it_has_a_reason(end: Ended | None, said: str) -> None:
    assert last_end([FAILED, TrialRecord("t", CELL, {}, 0, [], end)]) == said
    assert last_end([]) == ""


def test_a_limit_is_met_where_the_money_or_an_end_says_so() -> None:
    late = "the sweep's deadline of 50 s is reached"
    limits = goal(sweep_budget=2, sweep_deadline_seconds=50)
    cut = TrialRecord("c", CELL, {}, 0, [], Ended(EndCause.STOPPED, f"{late}; it reported acc"))
    assert limit_met(know(FAILED, goal=limits), 1.0) == ""
    assert limit_met(know(FAILED, goal=limits), 2.0).startswith("the sweep's budget of 2 ")
    assert limit_met(know(FAILED, cut, goal=limits), 1.0) == late
    assert limit_met(know(FAILED, cut), 1e9) == ""


def test_a_live_trial_or_a_success_is_hope() -> None:
    live = TrialRecord("live", CELL, {}, 1, [Report(1.0, 0.0, 1.0)])
    assert hopeless(know(*[FAILED] * 9, live)) == ""
    assert hopeless(know(*[FAILED] * 9, JOB.record(goal(), OTHER, "done"))) == ""


def live(name: str, seconds: float) -> TrialRecord:
    return TrialRecord(name, CELL, {}, 0, [Report(1.0, 0.0, seconds)])


def late(known: Knowledge, *, elapsed: float = 0.0, spent: float = 0.0, **unheard: float) -> object:
    return overdue(known, unheard, spent=spent, elapsed_seconds=elapsed)


def test_a_run_beyond_its_deadline_is_overdue_though_it_says_nothing() -> None:
    known = know(live("a", 60.0), live("b", 90.0), goal=goal(deadline_seconds=100.0))
    assert late(known, a=40.0, b=10.0) == {}
    assert late(known, a=30.0, b=11.0) == {
        "b": Stop(StopCause.DEADLINE, "101 s have passed, 11 s since a report")
    }
    assert late(know(live("a", 60.0)), a=1e9) == {}
    brief = know(live("a", 0.25), goal=goal(deadline_seconds=0.001))
    assert late(brief, a=0.5) == {
        "a": Stop(StopCause.DEADLINE, "0.75 s have passed, 0.5 s since a report")
    }


def test_a_limit_of_the_sweep_ends_every_trial_and_profile() -> None:
    known = Knowledge(
        [live("a", 3600.0), live("b", 3600.0), FAILED],
        SPACE,
        goal(sweep_budget=5.0),
        WorkerHours(),
        profiles=(ProfileRecord("p", Profile((CELL,))), profiled(JOB, [CELL], "q")),
    )
    assert late(known, spent=2.0, a=3600.0, b=3600.0) == {}
    ends = late(known, spent=2.0, a=7200.0, b=3600.0)
    stop = Stop(StopCause.BUDGET, "the sweep's budget of 5 worker-hours is spent")
    assert ends == dict.fromkeys("abp", stop)
    known = know(live("a", 60.0), goal=goal(sweep_deadline_seconds=100.0))
    assert late(known, elapsed=99.0) == {}
    assert late(known, elapsed=100.0) != {}


def test_what_runs_is_taken_to_cost_as_much_as_what_shall_run_before_any_success() -> None:
    known = know(live("a", 3600.0), goal=goal(sweep_budget=5.0))
    assert affordable(known, [run(2.0, 1.0)], spent=1.0, elapsed_seconds=0.0)
    assert not affordable(known, [run(2.6, 1.0)], spent=1.0, elapsed_seconds=0.0)


@pytest.mark.parametrize(
    ("begun", "most", "is_live", "ahead", "is_told"),
    [
        (2, 2.0, False, 7, True),
        (3, 2.0, False, 7, True),
        (1, 2.0, False, 7, False),
        (2, math.inf, False, 7, False),
        (2, 2.0, True, 7, False),
        (2, 2.0, False, "no trial pays", False),
    ],
)
def test_samples_end_a_search_that_would_go_on(
    *, begun: int, most: float, is_live: bool, ahead: object, is_told: bool
) -> None:
    records = [FAILED] * (begun - is_live) + [replace(FAILED, ended=None)] * is_live
    told = used_up(know(*records), most, lambda: ahead)
    assert told == (
        "num_samples=2 allowed no further trial; with -1 the search ends by itself" * is_told
    )
