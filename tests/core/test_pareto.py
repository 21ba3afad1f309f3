import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.abilities import Abilities
from raycosttune.core.constraint import RunBudget
from raycosttune.core.cost import NodeHours, WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.learning_rate import LearningRate
from raycosttune.core.moment import Moment
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.pareto import Tradeoff, _Front, pareto
from raycosttune.core.proposer import NoHyperparameters
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, Simulation, amdahl, goal, spaces_and_jobs

SPACE = Space((1, 2, 4), (32, 64, 128))
JOB = amdahl(SPACE, startup_seconds=2.0)


def curve(cell: Allocation, values: list[float], recipe: float = 0.1) -> TrialRecord:
    """Returns a run with these values, an epoch each, of the job's time."""
    reports = [
        Report(float(k), value, JOB.epoch_seconds[cell] + (2.0 if k == 1 else 0), 2.0 * (k == 1))
        for k, value in enumerate(values, start=1)
    ]
    return TrialRecord(
        f"{cell} {recipe}", cell, {"lr": recipe}, 0, reports, Ended(EndCause.STOPPED)
    )


def is_beaten(one: Tradeoff, other: Tradeoff, sign: int) -> bool:
    ours = one.seconds, one.cost, -sign * one.value
    theirs = other.seconds, other.cost, -sign * other.value
    return theirs != ours and all(t <= o for t, o in zip(theirs, ours, strict=True))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_an_offer_is_taken_unless_one_as_fast_and_as_cheap_was(
    offers: list[tuple[int, int]],
) -> None:
    front = _Front()
    for k, (seconds, cost) in enumerate(offers):
        beaten = any(s <= seconds and c <= cost for s, c in offers[:k])
        assert front.add(seconds, cost) is not beaten


@settings(max_examples=30)
@given(spaces_and_jobs())
def test_nothing_on_the_front_beats_another_and_the_plan_is_on_it(
    table: tuple[Space, Job],
) -> None:
    space, job = table
    sweep = Simulation(space, goal(), job, cost=WorkerHours())
    sweep.run()
    front = sweep.session.pareto()
    assert front == tuple(sorted(front, key=lambda offer: (offer.seconds, offer.cost)))
    for one, other in itertools.permutations(front, 2):
        assert not is_beaten(one, other, 1)
    incumbent = sweep.session.known.incumbent
    assert incumbent is not None
    cheapest = min((o for o in front if o.value == 1.0), key=lambda offer: offer.cost)
    assert cheapest.cost <= incumbent.cost.mid * (1 + 1e-9)


@pytest.mark.parametrize("mode", ["max", "min"])
def test_less_of_the_metric_is_offered_where_it_costs_less(mode: str) -> None:
    sign = 1 if mode == "max" else -1
    cell = SPACE.cells[0]
    aim = Goal(target=sign * 0.9, metric="m", mode=mode)  # type: ignore[arg-type]  # both are modes
    run = curve(cell, [sign * value for value in (0.5, 0.4, 0.8, 0.95)])
    front = pareto(Knowledge([run], SPACE, aim, WorkerHours()))
    own = [offer for offer in front if offer.is_measured]
    assert [(offer.epochs, offer.value) for offer in own] == [
        (1, pytest.approx(sign * 0.5)),
        (3, pytest.approx(sign * 0.8)),
        (4, sign * 0.9),
    ]
    assert own[0].seconds == pytest.approx(2 + JOB.epoch_seconds[cell])
    assert str(own[0]) == (
        f"1 worker, batch 32, lr=0.1, 1 epoch: {sign * 0.5:g} in 129 s for "
        "0.0358 worker-hours (measured)"
    )
    predicted = [offer for offer in front if not offer.is_measured]
    assert all(offer.value == aim.target for offer in predicted)
    assert "(predicted)" in str(predicted[0])


def test_an_evaluation_holds_on_all_workers_that_were_timed_at_its_batch() -> None:
    one, two = Allocation(1, 32), Allocation(2, 32)
    runs = [curve(one, [0.3, 0.6]), curve(two, [0.3], recipe=0.2)]
    front = pareto(Knowledge(runs, SPACE, goal(), NodeHours()))
    offered = {(o.allocation.workers, o.epochs) for o in front}
    assert offered == {(2, 1.0), (2, 2.0)}  # two workers cost no more nodes


def test_repeats_count_as_the_worse_one() -> None:
    cell = SPACE.cells[0]
    again = replace(curve(cell, [0.2]), trial_id="again")
    (offer,) = pareto(Knowledge([curve(cell, [0.5]), again], SPACE, goal(), WorkerHours()))
    assert offer.value == pytest.approx(0.2)


def ahead(goal: Goal, *runs: TrialRecord) -> list[Tradeoff]:
    known = Knowledge(list(runs), SPACE, goal, WorkerHours())
    surface = Moment(known, NoHyperparameters(), Abilities()).surface
    return [offer for offer in pareto(known, None, surface) if not offer.is_measured]


def test_before_the_target_the_levels_that_no_run_has_come_to_are_predicted() -> None:
    run = curve(SPACE.cells[0], [0.2, 0.4, 0.5, 0.55])
    offers = ahead(goal(), run)
    assert {round(offer.value, 2) for offer in offers} <= {0.64, 0.73, 0.82, 0.91, 1.0}
    assert {offer.value for offer in offers} >= {1.0}
    assert all(offer.epochs == round(offer.epochs) for offer in offers)
    cheapest = min((o for o in offers if o.value == 1.0), key=lambda offer: offer.cost)
    assert all(offer.cost <= cheapest.cost for offer in offers if offer.seconds > cheapest.seconds)
    after = ahead(goal(), run, curve(SPACE.cells[0], [0.5, 1.0], recipe=0.2))
    assert {offer.value for offer in after} == {1.0}


def test_what_is_predicted_keeps_to_the_limits_of_a_run() -> None:
    run = curve(SPACE.cells[0], [0.2, 0.4, 0.5, 0.55])
    most = max(offer.epochs for offer in ahead(goal(), run))
    few = ahead(goal(max_epochs=8), run)
    assert few
    assert max(offer.epochs for offer in few) <= 8 < most
    paid = max(offer.cost for offer in ahead(goal(), run))
    budget = RunBudget(cost=WorkerHours(), at_most=paid / 2)
    cheap = ahead(replace(goal(), constraints=(budget,)), run)
    assert cheap
    assert max(offer.cost for offer in cheap) <= paid / 2


def test_a_rate_follows_the_batch_and_nothing_known_is_nothing_offered() -> None:
    cell = Allocation(1, 128)
    rate = LearningRate(reference_batch=32, rule="linear")
    known = Knowledge([curve(cell, [0.5, 1.0])], SPACE, goal(), WorkerHours())
    offers = [offer for offer in pareto(known, rate) if offer.allocation.batch_size == 128]
    assert {offer.recipe["lr"] for offer in offers} == {0.4}
    assert pareto(Knowledge([], SPACE, goal(), WorkerHours())) == ()
