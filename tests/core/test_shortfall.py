import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.constraint import Bound, RunBudget
from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal, Mode
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.plan import NoPlan, Plan, make_plan
from raycosttune.core.space import Space

SPACE = Space((1, 2), (64, 128))
OWN, STOPPED = EndCause.FINISHED, EndCause.STOPPED
OFFER = "raycosttune plan RUN --target "


def aim(target: float = 1.0, mode: Mode = "max", **limits: object) -> Goal:
    return Goal(target=target, metric="m", mode=mode, **limits)  # type: ignore[arg-type]


def ran(
    *values: float, cause: EndCause = STOPPED, seconds: float = 10.0, latency: float = 1.0
) -> TrialRecord:
    told = (("latency", latency),)
    reports = [Report(float(k), v, seconds, others=told) for k, v in enumerate(values, 1)]
    return TrialRecord("t", SPACE.cells[0], {}, 0, reports, Ended(cause))


def reason(*records: TrialRecord, goal: Goal | None = None) -> str:
    plan = make_plan(Knowledge(records, SPACE, goal or aim(), WorkerHours()), None, 1.0)
    assert isinstance(plan, NoPlan)
    return plan.reason


VALUES = st.floats(-1e6, 1e6).filter(lambda value: abs(value) > 1e-3)


@given(
    runs=st.lists(st.lists(VALUES, min_size=1, max_size=4), min_size=1, max_size=3),
    mode=st.sampled_from(("max", "min")),
    share=st.floats(1e-6, 0.4),
    deadline=st.none() | st.floats(5.0, 60.0),
)
def test_the_target_that_is_offered_has_a_plan_and_gives_up_no_more_than_was_missing(
    runs: list[list[float]], mode: Mode, share: float, deadline: float | None
) -> None:
    records, sign = [ran(*values) for values in runs], 1 if mode == "max" else -1
    best = max(sign * value for values in runs for value in values)
    worst = min(sign * value for values in runs for value in values)
    target = sign * (best + share * (best - worst) + 1e-6)
    told = reason(*records, goal=aim(target, mode, deadline_seconds=deadline))
    if OFFER not in told:
        assert share > 0.3 or deadline is not None or best - worst < 1e-3
        return
    offered = float(told.partition(OFFER)[2])
    less = aim(offered, mode, deadline_seconds=deadline)
    assert isinstance(make_plan(Knowledge(records, SPACE, less, WorkerHours()), None, 1.0), Plan)
    if deadline is None:  # else the best may have come too late
        assert sign * offered <= best
        assert best - sign * offered <= sign * target - best


@pytest.mark.parametrize(
    ("values", "target", "mode", "offered"),
    [
        ((0.3, 0.9649), 0.97, "max", "0.964"),
        ((9.0, 0.1213), 0.12, "min", "0.122"),
        ((0.3, 0.9), 1.0, "max", "0.9"),
        ((10.0, 1234.0), 1300.0, "max", "1230"),
    ],
)
def test_the_target_that_is_offered_has_few_digits(
    values: tuple[float, ...], target: float, mode: Mode, offered: str
) -> None:
    told = reason(ran(*values), goal=aim(target, mode))
    assert told.endswith(f"; a plan for less needs no trial: {OFFER}{offered}")


def test_nothing_is_offered_where_nothing_came_near_in_time_and_within_the_bounds() -> None:
    near = ran(0.1, 0.9)
    assert OFFER in reason(near, goal=aim(deadline_seconds=20.0))
    assert OFFER not in reason(ran(0.1, 0.7))
    bounds = (Bound(metric="latency", at_most=0.5),)
    assert OFFER not in reason(near, goal=aim(constraints=bounds))
    dear = (RunBudget(cost=WorkerHours(), at_most=1e-6),)
    assert OFFER not in reason(near, goal=aim(constraints=dear))
    late = reason(ran(0.1, 0.9), goal=aim(deadline_seconds=15.0))
    assert "the best was 0.1, after 1 of the 2 epochs of t (1 worker, batch 64)" in late
    assert OFFER not in late


def test_the_best_is_one_that_keeps_the_bounds_where_there_is_one() -> None:
    bounds = aim(constraints=(Bound(metric="latency", at_most=2.0),))
    broken = ran(0.1, 1.0, latency=3.0)
    assert "the best was 0.9, after 2 epochs" in reason(broken, ran(0.1, 0.9), goal=bounds)
    assert "the best was 1, after 2 epochs" in reason(broken, goal=bounds)


def test_runs_that_ended_by_themselves_are_told_of() -> None:
    limits = aim(deadline_seconds=60.0)
    one, slow = ran(0.1, 0.2, cause=OWN), ran(0.1, 0.2, 0.2, cause=OWN, seconds=12.0)
    advice = "let a run go on until the search stops it"
    cases = [
        ((one,), f"; it ended by itself at epoch 2, after 20 s: {advice}", aim()),
        ((one,), f"; it ended by itself at epoch 2, after 20 s of 60: {advice}", limits),
        ((one, one), f"; all 2 ended by themselves at epoch 2, after 20 s of 60: {advice}", limits),
        (
            (one, slow, ran(0.1)),
            f"; 2 of them ended by themselves at epoch 2 to 3, after 20 to 36 s of 60: {advice}",
            limits,
        ),
        ((ran(0.1), one), f"; 1 of them ended by itself at epoch 2, after 20 s: {advice}", aim()),
    ]
    for records, said, goal in cases:
        assert said in reason(*records, goal=goal)


@pytest.mark.parametrize(
    "record",
    [
        ran(0.1, 0.2),
        ran(0.1, 0.2, cause=OWN, seconds=30.0),
        TrialRecord("t", SPACE.cells[0], {}, 0, [Report(1.0, None, 9.0)], Ended(OWN)),
        TrialRecord("t", SPACE.cells[0], {}, 0, [Report(1.0, 0.1, 9.0)]),
    ],
)
def test_runs_that_were_stopped_or_late_or_blind_are_not(record: TrialRecord) -> None:
    assert "by itself" not in reason(record, goal=aim(deadline_seconds=60.0))


def test_a_limit_of_the_sweep_is_told_beside_both() -> None:
    told = reason(ran(0.1, 0.9, cause=OWN), goal=aim(sweep_budget=0.5))
    limit = "the search ended: the sweep's budget of 0.5 worker-hours is spent"
    assert f": let a run go on until the search stops it; {limit}; a plan for less" in told
