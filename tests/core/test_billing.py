import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.billing import Use, billed_seconds, node_seconds
from raycosttune.core.space import Allocation

SECONDS = st.floats(0, 1e6)
UNITS = st.sampled_from((0.0, 1.0, 60.0, 3600.0)) | st.floats(0.1, 1e4)
ONE, TWO = Allocation(1, 64, 1), Allocation(2, 64, 2)


@st.composite
def uses(draw: st.DrawFn) -> list[Use]:
    starts = draw(st.lists(st.floats(0, 1000), min_size=1, max_size=6))
    return [
        Use(draw(st.sampled_from((ONE, TWO))), draw(st.floats(0.1, 500)), start) for start in starts
    ]


@given(seconds=SECONDS, more=SECONDS, granularity=UNITS, minimum=UNITS)
def test_more_seconds_are_never_billed_less(
    seconds: float, more: float, granularity: float, minimum: float
) -> None:
    units = {"granularity": granularity, "minimum": minimum}
    billed = billed_seconds(seconds, **units)
    assert billed <= billed_seconds(seconds + more, **units)
    assert billed >= seconds * (1 - 1e-8)


@given(seconds=st.floats(0.1, 1e6), granularity=UNITS, minimum=UNITS)
def test_no_more_than_a_unit_or_the_minimum_is_added(
    seconds: float, granularity: float, minimum: float
) -> None:
    billed = billed_seconds(seconds, granularity=granularity, minimum=minimum)
    assert minimum * (1 - 1e-8) <= billed <= (max(seconds, minimum) + granularity) * (1 + 1e-9)
    assert granularity == 0 or billed / granularity == pytest.approx(round(billed / granularity))


@given(count=st.integers(1, 10_000), unit=st.floats(0.1, 1e4))
def test_whole_units_are_billed_as_such(count: int, unit: float) -> None:
    assert billed_seconds(count * unit, granularity=unit, minimum=0) == pytest.approx(count * unit)


def test_what_never_ran_is_not_billed() -> None:
    assert billed_seconds(0.0, granularity=60, minimum=600) == 0


@given(uses(), st.sampled_from((0.0, 50.0, math.inf)))
def test_machines_are_held_for_all_that_they_do_and_no_longer_than_their_idle_time(
    held: list[Use], idle: float
) -> None:
    used = sum(use.allocation.nodes * use.seconds for use in held)
    kept = node_seconds(held, lambda cell: cell.nodes, idle)
    ends = [(use.start or 0.0) + use.seconds for use in held]
    assert sum(kept) >= used * (1 - 1e-9)
    most = sum(use.allocation.nodes for use in held)
    assert len(kept) <= most
    assert sum(kept) <= used + most * min(idle, max(ends)) + 1e-6


@given(uses())
def test_a_machine_that_is_kept_longer_is_started_no_more_often(held: list[Use]) -> None:
    counts = [len(node_seconds(held, lambda c: c.nodes, idle)) for idle in (0.0, 50.0, math.inf)]
    assert counts == sorted(counts, reverse=True)


def test_the_gap_between_two_trials_is_held_and_a_longer_one_is_not() -> None:
    pair = [Use(TWO, 10, 0), Use(ONE, 10, 30)]
    assert sorted(node_seconds(pair, lambda c: c.nodes, math.inf)) == [40, 40]
    assert sorted(node_seconds(pair, lambda c: c.nodes, 20)) == [30, 40]
    assert sorted(node_seconds(pair, lambda c: c.nodes, 5)) == [10, 15, 15]


def test_trials_of_unknown_start_follow_each_other() -> None:
    assert node_seconds([Use(ONE, 10), Use(ONE, 5)], lambda c: c.nodes, 0) == [15]
    assert node_seconds([], lambda c: c.nodes, 0) == []
