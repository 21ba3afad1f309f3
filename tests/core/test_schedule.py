import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.schedule import Choices, Step, best_step

AMOUNTS = st.floats(0.1, 10)
NEVER = 1e9


@st.composite
def choices(draw: st.DrawFn, *, counts: int | None = None) -> Choices:
    size = draw(st.integers(1, 3)) if counts is None else counts
    columns = [
        np.array(draw(st.lists(amounts, min_size=size, max_size=size)))
        for amounts in (AMOUNTS, AMOUNTS, st.sampled_from((0.0, 2.0)) | AMOUNTS)
    ]
    return Choices(columns[0], columns[1], columns[2], draw(st.booleans()))


@st.composite
def stages(draw: st.DrawFn, most: int = 5) -> np.ndarray:
    gaps = draw(st.lists(st.floats(0.1, 5), min_size=1, max_size=most))
    return np.array(list(accumulate(gaps)))


def plan(
    given_choices: Choices,
    ends: np.ndarray,
    failing: float = NEVER,
    *,
    seconds_left: float = math.inf,
    epoch: float = 0.0,
    place: int | None = None,
) -> Step:
    lost = np.full(len(ends), failing)
    return best_step(given_choices, ends, lost, seconds_left=seconds_left, epoch=epoch, place=place)


def oracle(c: Choices, ends: Sequence[float], failing: float, place: int | None) -> float:
    """Returns the least expected cost without a deadline, by trying every way to go on."""
    steps, done = len(ends), [0.0, *ends]

    def best(k: int, at: int | None, *, may_stop: bool) -> float:
        if k == steps:
            return 0.0
        found = [failing] if may_stop else []
        for n in range(len(c.rates)):
            is_moved = n != at
            if is_moved and at is not None and not c.can_resize:
                continue
            seconds = (ends[k] - done[k]) * c.seconds[n] + is_moved * c.startups[n]
            later = 1 - 1 / (steps - k)
            found.append(seconds * c.rates[n] + later * best(k + 1, n, may_stop=True))
        return min(found)

    return best(0, place, may_stop=False)


@given(choices(counts=1), stages(most=24))
def test_one_worker_count_costs_its_start_and_the_mean_of_the_stages(
    c: Choices, ends: np.ndarray
) -> None:
    expected = c.rates[0] * (c.startups[0] + c.seconds[0] * ends.mean())
    found = plan(c, ends)
    assert found.place == 0
    assert found.cost == pytest.approx(expected)
    running = plan(c, ends, place=0)
    assert running.cost == pytest.approx(expected - c.rates[0] * c.startups[0])


@given(choices(), stages(), st.floats(0.1, 100) | st.just(NEVER), st.data())
def test_without_a_deadline_the_plan_is_as_cheap_as_the_best_of_all_ways(
    c: Choices, ends: np.ndarray, failing: float, data: st.DataObject
) -> None:
    place = data.draw(st.none() | st.integers(0, len(c.rates) - 1))
    found = plan(c, ends, failing, place=place)
    best = oracle(c, ends.tolist(), failing, place)
    # A run that goes on stays where a move saves next to nothing.
    assert best * (1 - 1e-9) <= found.cost <= best * 1.0051


@given(choices(), stages(), st.floats(1, 50), st.data())
def test_a_longer_deadline_never_costs_much_more(
    c: Choices, ends: np.ndarray, failing: float, data: st.DataObject
) -> None:
    tight = data.draw(st.floats(1, 100))
    short, long = (
        plan(c, ends, failing, seconds_left=s).cost
        for s in (tight, data.draw(st.floats(8, 20)) * tight)
    )
    assert long <= short * 1.05 + 1e-9


def test_a_deadline_that_only_the_fastest_count_meets_picks_it() -> None:
    c = Choices(
        np.array([10.0, 4.0, 1.0]), np.array([1.0, 3.0, 20.0]), np.zeros(3), can_resize=False
    )
    ends = np.array([9.0, 10.0])
    assert plan(c, ends, 1e4).place == 0
    assert plan(c, ends, 1e4, seconds_left=50.0).place == 1
    assert plan(c, ends, 1e4, seconds_left=20.0).place == 2


def test_uncertain_times_take_a_faster_count_where_the_deadline_is_only_just_met() -> None:
    ends, costly = np.array([9.0, 10.0]), 1e3

    def chosen(sd: float, seconds_left: float) -> Step:
        columns = np.array([5.0, 4.0]), np.array([1.0, 2.0]), np.zeros(2)
        c = Choices(*columns, can_resize=False, sd=sd)
        return plan(c, ends, costly, seconds_left=seconds_left)

    assert chosen(0.0, 51.0).place == 0
    assert chosen(0.05, 51.0).place == 1
    assert chosen(0.05, 70.0).place == 0
    assert chosen(0.05, 51.0).cost > chosen(0.0, 51.0).cost
    assert chosen(0.2, math.inf) == chosen(0.0, math.inf)


def test_a_run_that_failing_is_cheap_for_is_given_up_after_its_first_stage() -> None:
    c = Choices(np.array([1.0]), np.array([1.0]), np.array([0.0]), can_resize=False)
    ends = np.array([1.0, 2.0, 100.0])
    assert plan(c, ends, 10.0).cost == pytest.approx(1 + 2 / 3 * (1 + 1 / 2 * 10))
    assert plan(c, ends, 0.5).cost == pytest.approx(1 + 2 / 3 * 0.5)


def test_only_a_run_that_may_changes_its_workers() -> None:
    seconds, rates, none = np.array([10.0, 1.0]), np.array([1.0, 2.0]), np.zeros(2)
    ends = np.array([5.0, 6.0])
    assert plan(Choices(seconds, rates, none, can_resize=True), ends, place=0).place == 1
    assert plan(Choices(seconds, rates, none, can_resize=False), ends, place=0).place == 0
    dear = np.array([0.0, 1000.0])
    assert plan(Choices(seconds, rates, dear, can_resize=True), ends, place=0).place == 0


def test_a_start_is_charged_once_and_a_resize_again() -> None:
    c = Choices(np.array([10.0, 1.0]), np.array([1.0, 1.0]), np.array([7.0, 7.0]), can_resize=True)
    ends = np.array([5.0, 6.0])
    assert plan(c, ends).cost == pytest.approx(7 + 5.5)
    assert plan(c, ends, place=1).cost == pytest.approx(5.5)
    assert plan(c, ends, place=0).cost == pytest.approx(7 + 5.5)


def test_what_can_move_later_starts_on_few_workers() -> None:
    """A cheap slow count is worth trying first where a fast one can still save the deadline."""
    ends = np.array([1.0, 10.0])
    seconds, rates, none = np.array([10.0, 1.0]), np.array([1.0, 20.0]), np.zeros(2)
    left = 30.0
    moving = plan(Choices(seconds, rates, none, can_resize=True), ends, 1e4, seconds_left=left)
    fixed = plan(Choices(seconds, rates, none, can_resize=False), ends, 1e4, seconds_left=left)
    assert (moving.place, fixed.place) == (0, 1)
    assert moving.cost < fixed.cost


def test_repeated_work_and_earlier_changes_keep_a_run_where_it_is() -> None:
    def chosen(lost: float = 0.0, changes: int = 0) -> int:
        columns = np.array([10.0, 4.9]), np.array([1.0, 2.0]), np.array([0.0, 0.0])
        c = Choices(*columns, can_resize=True, lost=lost, changes=changes)
        return plan(c, np.array([10.0]), place=0).place

    assert chosen() == 1
    assert chosen(lost=1.0) == 0
    assert chosen(changes=1) == 0
