import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.abilities import Abilities
from raycosttune.core.constraint import Bound
from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Run
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.metric_surface import MetricSurface
from raycosttune.core.moment import Moment
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.proposer import NoHyperparameters
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidGoalError, InvalidSpaceError

BATCHES = (32, 64, 128, 256)
SPACE = Space((1, 2), BATCHES)
EPOCHS = (1, 2, 3, 5, 8, 13, 21, 34)
SCALE = 100.0
Mode = Literal["max", "min"]


def gap(batch: int, epoch: float, scale: float = SCALE) -> float:
    """Shrinks with the log epochs to 0 at 20 (1 + b / scale) epochs, as the beliefs assume."""
    return max(1 - math.log(epoch / (1 + batch / scale)) / math.log(20), 0.0)


def aim(mode: Mode = "max", **limits: float) -> Goal:
    sign = 1 if mode == "max" else -1
    return Goal(target=sign * 3.0, metric="m", mode=mode, **limits)  # type: ignore[arg-type]  # seconds


def ran(
    batch: int,
    epochs: int,
    *,
    scale: float = SCALE,
    noise: float = 0.0,
    sign: int = 1,
    name: str = "a",
) -> TrialRecord:
    rng = np.random.default_rng(batch)
    reports = [
        Report(float(e), sign * (3.0 - gap(batch, e, scale) - noise * rng.standard_normal()), 30.0)
        for e in range(1, epochs + 1)
    ]
    cell, end = Allocation(1, batch), Ended(EndCause.STOPPED)
    return TrialRecord(f"{batch} {epochs} {name}", cell, {"name": name}, 0, reports, end)


def moment(records: Sequence[TrialRecord], goal: Goal | None = None) -> Moment:
    known = Knowledge(records, SPACE, goal or aim(), WorkerHours())
    return Moment(known, NoHyperparameters(), Abilities())


def surface(*records: TrialRecord, goal: Goal | None = None) -> MetricSurface:
    found = moment(records, goal).surface
    assert found is not None
    return found


RUNS = st.lists(
    st.builds(
        ran,
        st.sampled_from(BATCHES),
        st.integers(1, 50),
        scale=st.sampled_from((20.0, 100.0, 1e4)),
        noise=st.sampled_from((0.0, 0.05, 0.5)),
        name=st.sampled_from("ab"),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=20)
@given(RUNS, st.none() | st.floats(100, 1e4))
def test_the_metric_rises_with_the_epochs_and_falls_with_the_batch(
    records: list[TrialRecord], deadline: float | None
) -> None:
    found = surface(*records, goal=replace(aim(), deadline_seconds=deadline))
    table = np.array(
        [[list(vars(found.predict(b, e)).values()) for e in EPOCHS] for b in found.batches]
    )
    for upper, lower in itertools.pairwise(table):
        assert (upper >= lower - 1e-9).all()
    for sooner, later in itertools.pairwise(table.swapaxes(0, 1)):
        assert (later >= sooner - 1e-9).all()
    low, mid, high = np.moveaxis(table, 2, 0)
    assert (low <= mid + 1e-9).all()
    assert (mid <= high + 1e-9).all()


@settings(max_examples=10)
@given(RUNS)
def test_a_metric_that_falls_is_the_mirror_of_one_that_rises(records: list[TrialRecord]) -> None:
    mirrored = [
        TrialRecord(
            record.trial_id,
            record.allocation,
            record.recipe,
            0,
            [Report(r.epoch, -(r.value or 0.0), r.seconds) for r in record.reports],
            record.ended,
        )
        for record in records
    ]
    rising, falling = surface(*records), surface(*mirrored, goal=aim("min"))
    for batch, epoch in itertools.product(BATCHES, EPOCHS):
        up, down = rising.predict(batch, epoch), falling.predict(batch, epoch)
        assert (up.low, up.mid, up.high) == pytest.approx((-down.high, -down.mid, -down.low))


def held(found: MetricSurface, scale: float, batches: Sequence[int]) -> float:
    told = [(found.predict(b, e), 3.0 - gap(b, e, scale)) for b in batches for e in EPOCHS]
    return float(np.mean([told.low - 1e-6 <= value <= told.high + 1e-6 for told, value in told]))


@pytest.mark.parametrize(("batch", "epochs"), [(32, 6), (128, 12), (256, 30), (64, 60)])
def test_from_one_run_the_law_lies_within_the_intervals_of_all_batches_and_epochs(
    batch: int, epochs: int
) -> None:
    scales = (50.0, 100.0, 200.0, 400.0, 1000.0, 1e4)
    found = [held(surface(ran(batch, epochs, scale=s)), s, BATCHES) for s in scales]
    assert np.mean(found) >= 0.9


def test_two_runs_tell_more_of_a_third_batch_than_one_does() -> None:
    one, two = surface(ran(32, 60)), surface(ran(32, 60), ran(256, 80))
    assert held(two, SCALE, (64, 128)) == 1
    wide, narrow = (found.predict(128, 21) for found in (one, two))
    assert narrow.high - narrow.low < wide.high - wide.low
    assert narrow.mid == pytest.approx(3.0 - gap(128, 21), abs=0.05)


def test_what_was_seen_is_known_and_the_rest_is_less_sure_the_farther_it_is() -> None:
    found = surface(ran(64, 8))
    for epoch in (2, 5, 8):
        assert found.predict(64, epoch).mid == pytest.approx(3.0 - gap(64, epoch), abs=0.08)
    near, far = found.predict(64, 9), found.predict(64, 15)
    assert near.high - near.low < far.high - far.low
    assert near.low >= 3.0 - gap(64, 8) - 0.1


def stood(until: int) -> TrialRecord:
    """Is a run that comes to 2.5 within 10 epochs, and stays there."""
    values = [2.5 - max(1 - math.log(e) / math.log(10), 0.0) for e in range(1, until + 1)]
    reports = [Report(float(e), value, 30.0) for e, value in enumerate(values, 1)]
    return TrialRecord("t", Allocation(1, 64), {}, 0, reports, Ended(EndCause.STOPPED))


@pytest.mark.parametrize("until", [15, 20, 60, 250])
def test_a_run_that_stands_still_is_not_taken_to_have_come_nearer_meanwhile(until: int) -> None:
    found = surface(stood(until))
    for epochs in (11, 0.9 * until):
        told = found.predict(64, epochs)
        assert told.mid == pytest.approx(2.5, abs=0.01)
        assert told.high == pytest.approx(2.5, abs=0.01)
    assert found.predict(64, 1.5 * until).mid < found.predict(64, 20 * until).mid
    soon = surface(stood(11))
    assert [0.99 * at.nearest in at.gaps for at in (soon, found)] == [False, True]


def test_an_interval_is_open_at_the_target_and_below_all_that_was_seen() -> None:
    found = surface(ran(64, 8))
    assert found.predict(32, 200).high == math.inf
    early = found.predict(256, 1)
    assert early.low == -math.inf
    assert early.high <= 3.0 - gap(64, 2)
    assert surface(ran(64, 60)).predict(64, 60).mid == pytest.approx(3.0)


def test_the_noise_of_evaluations_is_told_from_the_curves_and_widens_the_intervals() -> None:
    still, rough = surface(ran(64, 60)), surface(ran(64, 60, noise=0.1))
    assert still.noise < 1e-6
    assert rough.noise == pytest.approx(0.1, rel=0.4)
    calm, wild = (found.predict(64, 10) for found in (still, rough))
    assert wild.high - wild.low > calm.high - calm.low + 0.1


def test_a_run_that_begins_at_the_target_leaves_all_open() -> None:
    done = TrialRecord("t", Allocation(1, 64), {}, 0, [Report(1.0, 3.5, 30.0)])
    found = surface(done)
    assert found.nearest == 0
    told = found.predict(64, 5)
    assert (told.low, told.mid, told.high) == (-math.inf, 3.0, math.inf)


def test_what_breaks_a_bound_on_another_metric_is_no_level_seen() -> None:
    bound = Bound(metric="latency", at_most=20)
    goal = Goal(target=1.0, metric="m", mode="max", constraints=(bound,))
    reports = [
        Report(1.0, 0.5, 30.0, others=(("latency", 10.0),)),
        Report(2.0, 0.9, 30.0, others=(("latency", 30.0),)),
    ]
    record = TrialRecord("t", Allocation(1, 64), {}, 0, reports)
    assert surface(record, goal=goal).nearest == pytest.approx(0.5)


@pytest.mark.parametrize("values", [(0.2, 0.7, 0.9, 1.2), (1.1, 1.1, 1.2, 1.2)])
def test_where_all_below_the_target_breaks_a_bound_little_is_known_before_it(
    values: tuple[float, ...],
) -> None:
    bound = Bound(metric="latency", at_most=20)
    goal = Goal(target=1.0, metric="m", mode="max", constraints=(bound,))
    latencies = (30.0, 30.0, 30.0, 10.0)
    reports = [
        Report(float(epoch), value, 30.0, others=(("latency", latency),))
        for epoch, (value, latency) in enumerate(zip(values, latencies, strict=True), 1)
    ]
    found = surface(TrialRecord("t", Allocation(1, 64), {}, 0, reports), goal=goal)
    soon, late = found.predict(64, 2), found.predict(64, 8)
    assert soon.mid == pytest.approx(min(values[0], 1.0))
    assert soon.low == -math.inf
    assert late.mid == 1.0


def test_it_has_the_recipe_of_the_plan_or_else_of_the_run_that_came_nearest() -> None:
    far, near = ran(64, 10, name="far"), ran(64, 30, name="near")
    assert surface(far, near).recipe == {"name": "near"}
    sooner = ran(32, 40, name="best", scale=1e4)
    assert surface(ran(256, 90, name="far"), sooner).recipe == {"name": "best"}


def test_a_recipe_without_a_value_goes_by_the_others() -> None:
    silent = TrialRecord("s", Allocation(1, 64), {"name": "b"}, 0, [Report(1.0, None, 30.0)])
    known = moment([ran(64, 8), silent])
    assert known.forecast is not None
    for recipe in (None, '{"name": "b"}'):
        found = MetricSurface(known.forecast.outlook(recipe))
        assert found.nearest == pytest.approx(gap(64, 8))
        assert found.predict(64, 5).low < found.predict(64, 5).high
    assert MetricSurface(known.forecast.outlook(None)).recipe == {}


def test_of_many_trials_it_rests_on_those_of_the_recipe_and_those_that_came_nearest() -> None:
    plan = ran(64, 60, name="plan")
    near = [replace(ran(128, 60, name=f"near {k}"), trial_id=f"near {k}") for k in range(29)]
    far = [replace(ran(128, 5, name=f"far {k}"), trial_id=f"far {k}") for k in range(9)]
    with_far, without = surface(*far, plan, *near), surface(plan, *near)
    assert with_far.recipe == {"name": "plan"}
    assert with_far.gaps.tolist() == without.gaps.tolist()
    for gaps in range(len(without.gaps) - 1):  # at the target it is the belief of all
        assert with_far.log_epochs[:, gaps] == pytest.approx(without.log_epochs[:, gaps], abs=0.05)


def test_a_session_tells_it_and_a_restored_one_the_same() -> None:
    first, second = (Session(SPACE, aim(), clock=lambda: 0.0) for _ in range(2))
    assert first.metric_at(64, 5) is None
    run = first.ask("t")
    assert isinstance(run, Run)
    first.tell("t", Report(1.0, None, 30.0))
    assert first.metric_at(64, 5) is None
    for epoch in range(2, 9):
        first.tell("t", Report(float(epoch), 3.0 - gap(64, epoch), 30.0))
    second.load_state(first.state())
    told = first.metric_at(64, 5)
    assert told is not None
    assert told == second.metric_at(64, 5.0)
    assert told.low < told.mid < told.high


def test_runs_that_no_law_explains_together_leave_numbers() -> None:
    """Two begin at the target, as a trained model does at epoch 0; one never gets near it."""

    def told(name: str, batch: int, *values: tuple[float, float]) -> TrialRecord:
        reports = [Report(epoch, value, 3.0) for epoch, value in values]
        return TrialRecord(name, Allocation(1, batch), {}, 0, reports)

    space = Space((1, 2, 4), (8, 16), workers_per_node=2)
    goal = Goal(metric="m", mode="max", target=0.9, deadline_seconds=500.0)
    records = (
        told("a", 16, (3, 0.878), (7, 0.49)),
        told("b", 8, (0, 0.95), (4, 0.1), (7, 0.228)),
        told("c", 8, (0, 1.0)),
    )
    known = Knowledge(records, space, goal, WorkerHours())
    found = Moment(known, NoHyperparameters(), Abilities()).metric_at(16, 10)
    assert found is not None
    assert not math.isnan(found.mid)


def test_it_is_asked_for_batches_and_epochs_that_there_are() -> None:
    session = Session(SPACE, aim(), clock=lambda: 0.0)
    with pytest.raises(InvalidSpaceError, match=r"left to try, \[32, 64, 128, 256\], got 48"):
        session.metric_at(48, 5)
    for epochs in (0, -1.0, math.nan, math.inf, "5"):
        with pytest.raises(InvalidGoalError, match="epochs must be a positive number"):
            session.metric_at(64, epochs)  # type: ignore[arg-type]  # one is no number
