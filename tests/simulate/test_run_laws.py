"""Laws of every sweep; test_run.py has the examples."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours, checked_cost
from raycosttune.core.goal import Goal
from raycosttune.core.profile import Profile
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation
from raycosttune.simulate.noise import Noise
from raycosttune.simulate.run import simulate
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.workload import Workload
from tests.simulate.worlds import FEW, Rounded, Script, driven, tables

COSTS: st.SearchStrategy[CostMetric] = st.sampled_from((NodeHours(), WorkerHours(), Rounded()))
NOISES = st.sampled_from((Noise(), Noise(0.3, curves=True), Noise(0.1, value_sd=0.01)))
SWEEPS = settings(max_examples=12)


@st.composite
def scripts(draw: st.DrawFn, workload: Workload) -> Script:
    cells = st.sampled_from(workload.space.cells)
    profiles = st.builds(
        Profile,
        st.lists(cells, min_size=1, max_size=3, unique=True).map(tuple),
        st.integers(1, 20),
    )
    answers = draw(st.lists(cells | profiles, max_size=6))
    stops = [draw(st.integers(1, 9)) for _ in answers]
    return Script(answers, stops, is_eager=draw(st.booleans()))


@FEW
@given(data=st.data(), workload=tables(), cost=COSTS)
def test_a_start_costs_what_is_held_for_its_start_up_and_its_steps(
    data: st.DataObject, workload: TableWorkload, cost: CostMetric
) -> None:
    script = data.draw(scripts(workload))
    outcome = driven(script, workload, cost=cost, workers=data.draw(st.integers(4, 12)))
    assert [trial.trial_id for trial in outcome.trials] == script.asked
    due = 0.0
    for trial, answer in zip(outcome.trials, script.answers, strict=True):
        if isinstance(answer, Profile):
            held = max(answer.cells)
            steps = answer.steps * sum(workload.steps[cell] for cell in answer.cells)
        else:
            held = answer
            steps = workload.epochs[answer] * len(script.reports(trial.trial_id))
        seconds = workload.startup_seconds(held.workers) + steps
        assert trial.seconds == pytest.approx(seconds)
        assert trial.allocation.workers == held.workers
        due += cost(held, trial.seconds)
    assert outcome.last.spent == pytest.approx(due)


@FEW
@given(data=st.data(), workload=tables(), noise=NOISES)
def test_workers_are_never_overcommitted_and_the_sweep_lasts_until_the_last_end(
    data: st.DataObject, workload: TableWorkload, noise: Noise
) -> None:
    script = data.draw(scripts(workload))
    workers = data.draw(st.integers(4, 12))
    outcome = driven(script, workload, workers=workers, noise=noise)
    ends = {t.trial_id: t.started + t.seconds for t in outcome.trials}
    for trial in outcome.trials:
        running = [
            other.allocation.workers
            for other in outcome.trials
            if other.started <= trial.started < ends[other.trial_id] * (1 - 1e-12)
        ]
        assert sum(running) <= workers
    assert outcome.seconds == pytest.approx(max(ends.values(), default=0.0))


@FEW
@given(data=st.data(), workload=tables(), noise=NOISES)
def test_one_trial_at_a_time_lasts_as_long_as_all_together(
    data: st.DataObject, workload: TableWorkload, noise: Noise
) -> None:
    script = data.draw(scripts(workload))
    script.is_eager = False
    outcome = driven(script, workload, noise=noise, seed=data.draw(st.integers(0, 9)))
    assert outcome.seconds == pytest.approx(sum(trial.seconds for trial in outcome.trials))


@FEW
@given(data=st.data(), workload=tables(), noise=NOISES, seed=st.integers(0, 99))
def test_a_seed_gives_the_same_sweep_again(
    data: st.DataObject, workload: TableWorkload, noise: Noise, seed: int
) -> None:
    script = data.draw(scripts(workload))
    again = Script(script.answers, script.stop_after, is_eager=script.is_eager)
    first = driven(script, workload, noise=noise, seed=seed)
    assert driven(again, workload, noise=noise, seed=seed) == first
    assert again.heard == script.heard
    assert again.profiled == script.profiled


@FEW
@given(data=st.data(), workload=tables(), seed=st.integers(0, 99))
def test_a_seed_gives_every_policy_the_same_runs_and_profiles(
    data: st.DataObject, workload: TableWorkload, seed: int
) -> None:
    noise = Noise(0.3, curves=True, value_sd=0.1)
    one, other = (data.draw(scripts(workload)) for _ in range(2))
    for script in (one, other):
        driven(script, workload, noise=noise, seed=seed)
    for cell in workload.space.cells:
        for first, second in zip(runs(one, cell), runs(other, cell), strict=False):
            shared = min(len(first), len(second))
            assert first[:shared] == second[:shared]
        timed = [profiles(script, cell) for script in (one, other)]
        shared = min(map(len, timed))
        assert timed[0][:shared] == timed[1][:shared]


def runs(script: Script, cell: Allocation) -> list[list[tuple[float, float | None, float]]]:
    """Returns the reports of every run of a cell, in the order of their starts."""
    return [
        [(told.epoch, told.value, told.seconds) for told in script.reports(trial_id)]
        for trial_id, answer in zip(script.asked, script.answers, strict=False)
        if answer == cell
    ]


def profiles(script: Script, cell: Allocation) -> list[float]:
    """Returns the epoch times that profiles of a cell showed, in the order of their starts."""
    shown = [script.profiled[name] for name in script.asked if name in script.profiled]
    return [told.epoch_seconds[cell] for told in shown if cell in told.epoch_seconds]


@SWEEPS
@given(
    workload=tables(),
    cost=COSTS,
    noise=NOISES,
    seed=st.integers(0, 9),
    most=st.sampled_from((None, 1, 3)),
)
def test_a_session_and_its_simulation_agree_on_what_was_spent_and_how_long_it_took(
    workload: TableWorkload, cost: CostMetric, noise: Noise, seed: int, most: int | None
) -> None:
    made: list[Session] = []

    def start(clock: Callable[[], float]) -> Session:
        goal = Goal(target=1.0, metric="m", mode="max", deadline_seconds=2e4, planned_runs=100)
        made.append(Session(workload.space, goal, cost=cost, max_concurrent=most, clock=clock))
        return made[0]

    outcome = simulate(start, workload, cost=cost, workers=8, noise=noise, seed=seed)
    assert outcome.last.spent == pytest.approx(made[0].spent)
    paid = [checked_cost(cost, trial.allocation, trial.seconds) for trial in outcome.trials]
    assert outcome.last.spent == pytest.approx(math.fsum(paid))
    assert made[0].elapsed_seconds == outcome.seconds
    assert not made[0].live
    assert [trial.trial_id for trial in outcome.trials] == list(made[0].records)
    assert len(outcome.moments) == len(outcome.trials)
    for before, after in zip(outcome.moments, outcome.moments[1:], strict=False):
        assert before.spent <= after.spent
        assert before.delivered <= after.delivered
