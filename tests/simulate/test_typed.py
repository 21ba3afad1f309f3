from dataclasses import replace

import pytest

from raycosttune.core.abilities import Abilities
from raycosttune.core.dollars import Dollars
from raycosttune.core.goal import Goal
from raycosttune.core.node_type import Free
from raycosttune.core.plan import Plan
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.analytic import AnalyticWorkload
from raycosttune.simulate.noise import Noise
from raycosttune.simulate.oracle import Truth
from raycosttune.simulate.outcome import Outcome
from raycosttune.simulate.run import simulate
from raycosttune.simulate.typed import TypedWorkload

OLD = AnalyticWorkload(Space((1, 2, 4), (64, 128, 256), workers_per_node=2), sample_seconds=1e-2)
NEW = replace(OLD, space=Space((1, 2), (128, 256, 512), workers_per_node=4), sample_seconds=2e-3)
JOB = TypedWorkload("job", {"old": OLD, "new": NEW})
PRICES = Dollars(
    PriceSheet((NodePrice(name="old", per_hour=1.0), NodePrice(name="new", per_hour=3.0)))
)
GOAL = Goal(metric="accuracy", mode="max", target=0.9, planned_runs=50)


def searched(space: Space = JOB.space, workers: Free = None) -> tuple[Outcome, Session]:
    sessions: list[Session] = []

    def start(clock):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - simulate types it
        able = Abilities(profile=True, resize=True)
        sessions.append(Session(space, GOAL, cost=PRICES, abilities=able, clock=clock))
        return sessions[0]

    noise = Noise(time_sd=0.05)
    return simulate(start, JOB, cost=PRICES, workers=workers, noise=noise), sessions[0]


def test_each_type_has_the_cells_and_times_of_its_own() -> None:
    for name, job in JOB.by_type.items():
        own = {replace(c, node_type="") for c in JOB.space.cells if c.node_type == name}
        assert own == set(job.space.cells)
    cell = JOB.space.allocation(2, 128, "new")
    assert JOB.epoch_seconds(cell) == NEW.epoch_seconds(replace(cell, node_type=""))
    assert JOB.step_seconds(cell) == NEW.step_seconds(replace(cell, node_type=""))
    assert JOB.curve(512) == NEW.curve(512)
    assert JOB.startup_seconds(2) == OLD.startup_seconds(2)


def test_a_simulated_search_finds_the_cheapest_type() -> None:
    outcome, session = searched()
    truth, plan = Truth(JOB, GOAL, PRICES), session.plan()
    assert isinstance(plan, Plan)
    assert truth.costs[plan.allocation] <= 1.05 * truth.oracle_cost
    assert truth.oracle.node_type == "new"
    paid = sum(
        PRICES(trial.allocation, trial.held_seconds) + trial.paid for trial in outcome.trials
    )
    assert session.spent == pytest.approx(paid)


def test_a_search_on_one_of_the_types_leaves_the_other_alone() -> None:
    space = replace(JOB.space, node_types=JOB.space.node_types[:1], batches=(64, 128, 256))
    outcome, session = searched(space, {"old": 4, "new": 0})
    assert {trial.allocation.node_type for trial in outcome.trials} == {"old"}
    plan = session.plan()
    assert isinstance(plan, Plan)
    assert plan.allocation.node_type == "old"


@pytest.mark.parametrize(
    ("by_type", "named"),
    [
        ({}, "at least one type"),
        ({"old": OLD, "new": replace(NEW, startup=99.0)}, "the start-ups .* 1 workers on 'new'"),
        ({"old": OLD, "new": replace(NEW, ceiling=0.91)}, "the learning curves .* batch"),
    ],
)
def test_what_is_not_one_job_is_refused(by_type: dict[str, AnalyticWorkload], named: str) -> None:
    with pytest.raises(InvalidWorkloadError, match=named):
        TypedWorkload("job", by_type)
