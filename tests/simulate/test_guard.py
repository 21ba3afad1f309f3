"""The deadline guard, without profiles, on jobs by formula."""

import pytest

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.simulate.analytic import AnalyticWorkload
from raycosttune.simulate.oracle import seconds_to_target
from raycosttune.simulate.outcome import Outcome
from raycosttune.simulate.run import simulate

SPACE = Space((1, 2), (96,))
JOB = AnalyticWorkload(SPACE, samples=9600, sample_seconds=0.004, startup=15.0)
AIM = Goal(metric="accuracy", mode="max", target=0.9, planned_runs=1)
ONE, TWO = (seconds_to_target(JOB, AIM)[cell] for cell in SPACE.cells)


def swept(share: float, *, resize: bool) -> tuple[Outcome, float]:
    """Runs a sweep whose deadline lies between what two workers need, at 0, and one, at 1."""
    limit = TWO + share * (ONE - TWO)
    goal = Goal(**{**vars(AIM), "deadline_seconds": limit})
    cost, able = WorkerHours(), Abilities(resize=resize)

    def start(clock: object) -> Session:
        return Session(SPACE, goal, cost=cost, max_concurrent=1, abilities=able, clock=clock)  # type: ignore[arg-type]

    return simulate(start, JOB, cost=cost, deadline_seconds=limit), limit


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_a_run_that_starts_too_small_makes_its_deadline_with_the_guard_alone(share: float) -> None:
    on, limit = swept(share, resize=True)
    first = on.trials[0]
    assert first.cause is EndCause.REACHED
    assert first.seconds <= limit
    assert (first.resizes, first.allocation.workers) == (1, 2)
    off, _ = swept(share, resize=False)
    assert off.trials[0].cause is EndCause.STOPPED
    assert off.trials[0].allocation.workers == 1


def test_a_run_with_time_to_spare_stays_where_it_is() -> None:
    on, _ = swept(10.0, resize=True)
    assert on.trials[0].resizes == 0
    assert on.trials[0].cause is EndCause.REACHED


def test_a_run_that_no_workers_help_is_ended_by_its_deadline() -> None:
    on, limit = swept(-0.6, resize=True)
    first = on.trials[0]
    assert first.cause is EndCause.STOPPED
    assert first.seconds <= limit
