"""Searches among types of machine, from the first question to the plan."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from raycosttune.core.abilities import Abilities
from raycosttune.core.book import Book
from raycosttune.core.choice import choose
from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.decision import Finished, Run, Wait
from raycosttune.core.dollars import Dollars
from raycosttune.core.estimate import estimate
from raycosttune.core.experiment import Experiment
from raycosttune.core.goal import Goal
from raycosttune.core.going import fewer_workers, going
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.node_type import NodeType
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.plan import Plan
from raycosttune.core.planner import Planner
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.prior import Prior
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.profiling import choose_profile, first_profile
from raycosttune.core.proposer import NoHyperparameters
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.core.startup import Startups
from raycosttune.core.wish import Wish
from tests.core.drive import Job, goal
from tests.core.test_failing_cost import Fickle
from tests.core.told import profiled, report, session, shown

SPACE = Space((1, 2, 4), (64, 128, 256), node_types=(NodeType("old", 1, 4), NodeType("new", 1, 8)))
SHEET = PriceSheet(
    (
        NodePrice(name="old", per_hour=1.0, spot_per_hour=0.2, workers=1),
        NodePrice(name="new", per_hour=3.0, workers=1, minimum_seconds=60),
    )
)
PRICES = Dollars(SHEET)


def job(new: float) -> Job:
    """Returns a job that is so many times as fast on new machines."""
    pace = {"old": 1.0, "new": new}
    seconds = {
        c: (200 / c.workers + 20 * (c.workers > 1) + 3000 / c.batch_size) / pace[c.node_type]
        for c in SPACE.cells
    }
    return Job(seconds, {64: 8, 128: 10, 256: 14}, startup_seconds=10.0)


def swept(work: Job, sweep: Session) -> Plan:
    """Runs a session to its end."""
    for k in range(60):
        name = f"t{k}"
        match sweep.ask(name):
            case Run():
                for epoch in range(1, 60):
                    report(sweep, work, name, epoch)
                    if type(sweep.decide(name)).__name__ == "Stop":
                        reached = sweep.goal.is_met(sweep.records[name].reports[-1])
                        cause = EndCause.REACHED if reached else EndCause.STOPPED
                        sweep.tell(name, Ended(cause))
                        break
            case Profile() as asked:
                sweep.tell_profile(name, shown(work, asked))
            case Finished():
                break
            case _:
                raise AssertionError
    plan = sweep.plan()
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize("profile", [False, True])
@pytest.mark.parametrize(("new", "cheapest"), [(2.0, "old"), (5.0, "new")])
def test_the_cheapest_type_is_found_and_a_batch_is_run_once(
    new: float, cheapest: str, profile: bool
) -> None:
    work, able = job(new), Abilities(profile=profile)
    limits = goal(planned_runs=50)
    sweep = Session(SPACE, limits, cost=PRICES, abilities=able, clock=float)
    plan = swept(work, sweep)
    costs = {cell: PRICES(cell, work.seconds(cell)) for cell in SPACE.cells}
    assert plan.allocation.node_type == cheapest
    assert costs[plan.allocation] <= 1.05 * min(costs.values())
    reached = [r.allocation for r in sweep.records.values() if r.ended.cause is EndCause.REACHED]  # type: ignore[union-attr]
    if profile:
        assert len({cell.batch_size for cell in reached}) == len(reached)
        assert {r.profile.held.node_type for r in sweep.profiles.values()} == {"old", "new"}
    assert f" of {cheapest}, batch " in str(plan)
    assert "among these types, workers and batches" in str(plan)
    assert f" of {cheapest}" in sweep.explain()
    assert any(f" of {cheapest}, " in str(offer) for offer in sweep.pareto())
    assert "of the cluster" not in str(sweep.estimate())


def test_a_batch_that_another_type_has_trained_is_only_timed() -> None:
    sweep = Session(SPACE, goal(planned_runs=50), cost=PRICES, clock=float)
    swept(job(0.3), sweep)
    (timed,) = [r for r in sweep.records.values() if r.allocation.node_type == "new"]
    assert timed.epoch == 2
    assert (
        "t0 reached the target at the same batch with the same recipe on old"
        in str(sweep.decide(timed.trial_id))
        or timed.ended is not None
    )


@pytest.mark.parametrize(
    ("earlier", "named"), [("", "machines of no named type"), ("unpriced", "unpriced")]
)
def test_a_batch_that_an_earlier_sweep_has_trained_elsewhere_is_only_timed(
    earlier: str, named: str
) -> None:
    done, cell = [Report(8, 1.0, 80.0)], Allocation(1, 64, 1, earlier)
    prior = Prior((TrialRecord("early/t", cell, {}, 0, done, Ended(EndCause.REACHED)),))
    sweep, work = Session(SPACE, goal(), cost=PRICES, clock=float, prior=prior), job(0.3)
    assert isinstance(sweep.ask("t"), Run)
    report(sweep, work, "t", 1)
    report(sweep, work, "t", 2)
    stop = sweep.decide("t")
    assert f"reached the target at the same batch with the same recipe on {named}:" in str(stop)


def test_a_search_goes_on_from_its_state_with_its_types() -> None:
    work, sweep = job(2.0), session(SPACE, goal(), cost=PRICES)
    swept(work, sweep)
    fresh = session(SPACE, goal(), cost=PRICES)
    fresh.load_state(json.loads(json.dumps(sweep.state())))
    assert fresh.records == sweep.records
    assert fresh.plan() == sweep.plan()
    assert fresh.profiles == sweep.profiles


def record(cell: Allocation, name: str = "t", ended: Ended | None = None) -> TrialRecord:
    return TrialRecord(name, cell, {}, 0, [Report(1, 0.1, 10.0, checkpoint="c")], ended)


def test_a_run_stays_on_its_type() -> None:
    cell = SPACE.allocation(2, 64, "old")
    goes = going(record(cell), SPACE, free_workers={"old": 1, "new": 8}, can_resize=True)
    assert goes.most == 3
    assert not goes.allows(SPACE.allocation(1, 64, "new"))
    assert goes.allows(SPACE.allocation(1, 64, "old"))
    small = replace(SPACE, node_types=(NodeType("old", 1, 1), NodeType("new", 1, 8)))
    assert fewer_workers(record(cell), small) == 1


def test_workers_are_held_by_type() -> None:
    book = Book(SPACE, goal(), NodeHours(), clock=float)
    book.adopt(record(SPACE.allocation(2, 64, "old")))
    profile = Profile((SPACE.allocation(4, 64, "new"),))
    book.profiles["p"] = ProfileRecord("p", profile)
    assert book.committed_by_type == {"old": 2, "new": 4}
    assert book.committed_workers == 6


def know(
    records: Sequence[TrialRecord] = (), cost: CostMetric = PRICES, **more: object
) -> Knowledge:
    return Knowledge(records, SPACE, goal(), cost, **more)  # type: ignore[arg-type]


def test_a_run_waits_for_workers_of_its_own_type() -> None:
    cells = SPACE.allocation(4, 64, "old"), SPACE.allocation(1, 64, "new")
    runs = [Experiment(cell, "{}", 0.0, 0.0, 0.0, "") for cell in cells]
    busy = know([record(SPACE.allocation(1, 64, "old"))])
    asked = choose(busy, runs, NoHyperparameters(), {"old": 3, "new": 8})
    assert asked == Wait("4 workers of old are not free")
    assert choose(busy, runs[1:], NoHyperparameters(), {"old": 0}) == Wait(
        "1 worker of new is not free"
    )


def test_the_first_profile_is_on_the_type_that_costs_the_least_and_is_free() -> None:
    assert first_profile(know()).held.node_type == "old"
    assert first_profile(know(), {"old": 0, "new": 1}).held.node_type == "new"
    assert first_profile(know(), {}).held.node_type in {"old", "new"}  # none is free
    assert choose_profile(know(), None, {}) is None


def test_after_two_failures_no_profile_is_made_on_that_type_alone() -> None:
    failed = []
    for name in "ab":
        cells = (SPACE.allocation(1, 64, "old"),)
        failed.append(ProfileRecord(name, Profile(cells), ended=Ended(EndCause.FAILED)))
    known = know(profiles=failed)
    asked = choose_profile(known, None, None)
    assert asked is not None
    assert asked.held.node_type == "new"
    made = profiled(job(1.0), [SPACE.allocation(1, b, "new") for b in (64, 128)])
    known = know(profiles=[*failed, made])
    planner = Planner(known, recipes=False, can_resize=False)
    asked = choose_profile(known, planner, None)
    assert asked is None or asked.held.node_type == "new"


def test_memory_that_runs_out_on_one_type_says_nothing_of_another() -> None:
    out = Ended(EndCause.OUT_OF_MEMORY)
    cells = [SPACE.allocation(1, b, "old") for b in (128, 256)]
    known = know([record(cell, str(k), out) for k, cell in enumerate(cells)])
    left = {cell.node_type for cell in known.cells if cell.local_batch == 256}
    assert left == {"new"}


def test_a_dearer_type_is_taken_to_be_faster_until_it_is_timed() -> None:
    one, other = (SPACE.allocation(1, 64, name) for name in ("old", "new"))
    known = know()
    assert known.time.predict(one).mid == pytest.approx(3 * known.time.predict(other).mid)
    failing = Fickle()
    failing.fails = True
    for cost in (WorkerHours(), failing, Dollars(free_sheet())):
        alike = know(cost=cost).time
        assert alike.predict(one).mid == pytest.approx(alike.predict(other).mid)


def free_sheet() -> PriceSheet:
    return PriceSheet(tuple(NodePrice(name=name, per_hour=0.0) for name in ("old", "new")))


def test_start_ups_are_those_of_the_type_and_of_the_others_where_it_has_none() -> None:
    startups = Startups({("old", 1): [10.0], ("old", 4): [20.0]})
    one, other = (SPACE.allocation(1, 64, name) for name in ("old", "new"))
    assert startups.predict(one).low == 10.0
    assert (startups.predict(other).low, startups.predict(other).mid) == (0.0, 10.0)
    assert startups.predict(other).high == math.inf
    both = Startups({("old", 1): [10.0], ("new", 1): [40.0]})
    low, mid = both.of_cells(SPACE)
    for cell, least, likely in zip(SPACE.cells, low, mid, strict=True):
        assert least == likely == (10.0 if cell.node_type == "old" else 40.0)
        assert both.predict(cell).mid == likely


def test_a_wish_may_name_a_type() -> None:
    cells = [cell for cell in SPACE.cells if Wish(2, 64, node_type="new").allows(cell, SPACE)]
    assert cells == [SPACE.allocation(2, 64, "new")]


def test_the_most_that_a_sweep_can_cost_counts_the_machines_of_every_type() -> None:
    def worst(most: int | None = None) -> float | None:
        limits = goal(sweep_deadline_seconds=3600.0)
        sweep = Session(SPACE, limits, cost=PRICES, max_concurrent=most, clock=float)
        found = estimate(sweep, sweep._copy)
        assert "with all 12 workers of the cluster busy" in found.worst_means
        return found.worst_cost

    assert worst() == pytest.approx(4 * 1.0 + 8 * 3.0)
    assert worst(1) == pytest.approx(4 * 3.0)


def test_a_type_that_is_too_small_for_any_cell_costs_nothing() -> None:
    small = replace(
        SPACE, workers=(2, 4), node_types=(NodeType("old", 1, 4), NodeType("new", 1, 1))
    )
    limits = goal(sweep_deadline_seconds=3600.0)
    sweep = Session(small, limits, cost=PRICES, clock=float)
    assert sweep.estimate().worst_cost == pytest.approx(4 * 1.0)


def test_a_deadline_that_only_a_fast_type_meets_is_met() -> None:
    work = job(5.0)
    limits = goal(deadline_seconds=200.0, planned_runs=20)
    plan = swept(work, session(SPACE, limits, cost=PRICES, resize=True))
    assert plan.allocation.node_type == "new"


def test_a_deadline_that_no_type_meets_is_named_with_a_type() -> None:
    limits: Goal = goal(deadline_seconds=50.0)
    work = job(1.0)
    cell = SPACE.allocation(4, 256, "old")
    sweep = Session(SPACE, limits, cost=PRICES, clock=float)
    for k, each in enumerate(c for c in SPACE.cells if c.batch_size == 64):
        sweep.adopt(work.record(limits, each, f"r{k}", epochs=3))
    sweep.adopt(work.record(limits, cell, "last", epochs=5))
    assert "infeasible: even 4 workers of " in sweep.explain()
