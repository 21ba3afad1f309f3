from collections.abc import Callable
from typing import Any

import pytest

from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Finished, Run, Wait
from raycosttune.core.goal import Goal
from raycosttune.core.node_type import Free
from raycosttune.core.observation import EndCause
from raycosttune.core.profile import Profile
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.analytic import AnalyticWorkload
from raycosttune.simulate.outcome import Moment
from raycosttune.simulate.peer import Choice
from raycosttune.simulate.policy import Policy
from raycosttune.simulate.run import MOST_TRIALS, simulate
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.workload import Curve
from tests.simulate.worlds import Script, driven, one_batch


def test_a_sweep_finds_the_oracle_of_a_plain_job() -> None:
    workload = one_batch({1: 800.0, 2: 410.0, 4: 300.0})
    goal = Goal(target=1.0, metric="m", mode="max", planned_runs=100)

    def start(clock: Callable[[], float]) -> Session:
        return Session(workload.space, goal, cost=WorkerHours(), clock=clock)

    outcome = simulate(start, workload, cost=WorkerHours())
    assert outcome.last.chosen == Allocation(1, 64)
    assert outcome.last.delivered
    assert outcome.why


def test_a_start_up_is_paid_once_a_trial_and_idle_ranks_are_paid_in_a_profile() -> None:
    workload = one_batch({1: 800.0, 4: 300.0}, startup=50.0)
    small, large = workload.space.cells
    script = Script((Profile((small, large), steps=3), large))
    outcome = driven(script, workload)
    assert outcome.trials[0].is_profile
    assert outcome.trials[0].seconds == 50 + 3 * (80 + 30)
    assert outcome.trials[1].seconds == 50 + 4 * 300
    (profiled,) = script.profiled.values()
    assert profiled.epoch_seconds == {small: 800.0, large: 300.0}
    assert profiled.seconds == outcome.trials[0].seconds
    assert profiled.startup_seconds == 50
    assert outcome.last.spent == pytest.approx(4 * (50 + 330 + 50 + 1200) / 3600)


def test_trials_that_fit_run_side_by_side() -> None:
    workload = one_batch({1: 800.0, 2: 410.0})
    single, double = workload.space.cells
    outcome = driven(Script((single, double, single), is_eager=True), workload, workers=3)
    assert [trial.started for trial in outcome.trials] == [0.0, 0.0, 4 * 410.0]
    assert outcome.seconds == 4 * (410 + 800)


def test_a_running_trial_counts_up_to_its_last_report() -> None:
    workload = one_batch({1: 800.0, 2: 410.0})
    single, double = workload.space.cells
    script = Script((single, double), is_eager=True)
    outcome = driven(script, workload, workers=3)
    reported = int(4 * 410 / 800)
    assert outcome.moments[0].spent == pytest.approx((2 * 4 * 410 + reported * 800) / 3600)


def test_a_running_profile_does_not_count_before_it_ends() -> None:
    workload = one_batch({1: 10.0, 2: 410.0})
    single, double = workload.space.cells
    script = Script((Profile((double,), steps=20), single), is_eager=True)
    outcome = driven(script, workload, workers=3)
    assert outcome.moments[0].spent == pytest.approx(40 / 3600)
    assert outcome.last.spent == pytest.approx((40 + 2 * 20 * 41) / 3600)


def test_a_curve_that_ends_early_ends_the_run_unreached() -> None:
    workload = one_batch({1: 800.0}, needed=100)
    outcome = driven(Script(workload.space.cells), workload)
    assert [trial.cause for trial in outcome.trials] == [EndCause.FINISHED]
    assert outcome.last == Moment(8 * 800 / 3600, None, delivered=False)


@pytest.mark.parametrize(("deadline", "delivered"), [(None, True), (3200.0, True), (3199.0, False)])
def test_a_model_is_delivered_by_a_run_that_reaches_the_target_in_time(
    deadline: float | None, delivered: bool
) -> None:
    workload = one_batch({1: 800.0})
    outcome = simulate(
        lambda _: Script(workload.space.cells),
        workload,
        cost=WorkerHours(),
        deadline_seconds=deadline,
    )
    assert outcome.last.delivered is delivered
    assert outcome.last.chosen == outcome.plan.allocation == Allocation(1, 64)  # type: ignore[attr-defined]


def test_a_run_without_evaluations_ends_at_once_and_costs_nothing() -> None:
    cell = Allocation(1, 64)
    space = one_batch({1: 1.0}).space
    silent = TableWorkload("silent", space, {cell: 1.0}, {cell: 0.1}, {64: Curve((), ())})
    outcome = driven(Script((cell, cell)), silent)
    assert [trial.seconds for trial in outcome.trials] == [0.0, 0.0]


def test_a_policy_that_waits_for_nothing_ends_the_sweep() -> None:
    class Waiting(Script):
        def ask(self, trial_id: str, *, free_workers: Free = None) -> Wait:
            del trial_id, free_workers
            return Wait("no reason")

    outcome = driven(Waiting(()), one_batch({1: 1.0}))
    assert outcome.why == "nothing runs, and it waits: no reason"
    assert outcome.last == Moment(0.0, None, delivered=False)


def test_an_answer_of_the_wrong_kind_ends_in_an_error() -> None:
    class Mute(Script):
        def ask(self, trial_id: str, *, free_workers: Free = None) -> Any:
            del trial_id, free_workers

    with pytest.raises(AssertionError):
        driven(Mute(()), one_batch({1: 1.0}))


def test_a_policy_that_never_ends_is_ended() -> None:
    workload = one_batch({1: 1.0}, needed=1)
    outcome = driven(Script(workload.space.cells * (MOST_TRIALS + 1)), workload)
    assert len(outcome.trials) == MOST_TRIALS
    assert outcome.why == "1000 trials were started, the most a sweep may"


def test_a_finished_policy_is_not_asked_again_while_others_run() -> None:
    workload = one_batch({1: 800.0})
    script = Script(workload.space.cells)
    assert driven(script, workload).why == "the script is over"
    assert isinstance(script.ask("more"), Finished)


@pytest.mark.parametrize(
    "asked", [Allocation(2, 64), Allocation(1, 64, nodes=2), Profile((Allocation(1, 32),))]
)
def test_a_cell_that_was_not_measured_is_refused(asked: Allocation | Profile) -> None:
    with pytest.raises(InvalidWorkloadError, match="must be in a cell of one, got Allocation"):
        driven(Script((asked,)), one_batch({1: 1.0}))


@pytest.mark.parametrize("workers", [0, 2, 3])
def test_a_trial_that_does_not_fit_into_the_cluster_is_refused(workers: int) -> None:
    with pytest.raises(InvalidWorkloadError, match=f"with {workers} workers free"):
        driven(Script((Allocation(4, 64),)), one_batch({4: 1.0}), workers=workers)


def test_a_policy_that_cannot_hear_a_profile_may_not_ask_for_one() -> None:
    class Deaf:
        def ask(self, trial_id: str, *, free_workers: Free = None) -> Run | Profile:
            del trial_id, free_workers
            return Profile((Allocation(1, 64),))

        def tell(self, trial_id: str, observation: object) -> None: ...

        def decide(self, trial_id: str) -> None: ...

        def plan(self) -> Choice | None: ...

    deaf: Policy = Deaf()  # type: ignore[assignment]
    with pytest.raises(TypeError, match="must have tell_profile"):
        driven(deaf, one_batch({1: 1.0}))


def test_a_sweep_without_data_runs_on_a_formula() -> None:
    space = one_batch({1: 1.0, 2: 1.0}).space
    workload = AnalyticWorkload(space)
    outcome = driven(Script(space.cells, (3, 3)), workload)
    assert [trial.reports for trial in outcome.trials] == [3, 3]
