import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation
from raycosttune.simulate.bill import Bill, bill
from raycosttune.simulate.oracle import Truth
from raycosttune.simulate.outcome import Moment
from raycosttune.simulate.table import TableWorkload
from tests.simulate.worlds import FEW, one_batch, tables


def truth(workload: TableWorkload, planned: int, deadline: float | None = None) -> Truth:
    goal = Goal(target=1.0, metric="m", mode="max", planned_runs=planned, deadline_seconds=deadline)
    return Truth(workload, goal, WorkerHours())


@FEW
@given(workload=tables(), planned=st.integers(1, 100))
def test_a_search_that_begins_and_ends_with_the_oracle_costs_what_the_runs_cost(
    workload: TableWorkload, planned: int
) -> None:
    known = truth(workload, planned)
    judged = bill(known, Moment(known.oracle_cost, known.oracle, delivered=True))
    assert judged.ratio == pytest.approx(1)
    assert judged.spend == pytest.approx(1)
    assert judged.regret == 0
    assert not judged.misses_deadline
    assert not judged.misses_target


@FEW
@given(
    data=st.data(),
    workload=tables(),
    planned=st.integers(1, 100),
    spent=st.floats(0, 1e6),
    delivered=st.booleans(),
)
def test_the_bill_by_its_formula(
    data: st.DataObject, workload: TableWorkload, planned: int, spent: float, delivered: bool
) -> None:
    known = truth(workload, planned)
    cell = data.draw(st.sampled_from([c for c in known.costs if known.costs[c] < math.inf]))
    judged = bill(known, Moment(spent, cell, delivered=delivered))
    runs = planned - 1 if delivered else planned
    due = (spent + runs * known.costs[cell]) / (planned * known.oracle_cost)
    assert judged.ratio == pytest.approx(due)
    assert judged.regret == pytest.approx(known.costs[cell] / known.oracle_cost - 1)
    assert judged.regret >= 0
    assert judged.spent == spent
    assert judged.chosen == cell


def test_a_bill_by_hand() -> None:
    known = truth(one_batch({1: 900.0, 2: 900.0}), 10)
    assert known.oracle_cost == 1
    judged = bill(known, Moment(5.0, Allocation(2, 64), delivered=True))
    assert judged == Bill(
        ratio=(5 + 9 * 2) / 10,
        spent=5.0,
        spend=5.0,
        regret=1.0,
        misses_deadline=False,
        misses_target=False,
        chosen=Allocation(2, 64),
    )


def test_nothing_chosen_is_an_infinite_bill() -> None:
    judged = bill(truth(one_batch({1: 900.0}), 10), Moment(5.0, None, delivered=False))
    assert judged.ratio == judged.regret == math.inf
    assert judged.spend == 5
    assert judged.misses_target
    assert not judged.misses_deadline


def test_the_only_planned_run_delivered_is_paid_by_the_search_alone() -> None:
    known = truth(one_batch({1: 900.0}), 1)
    assert bill(known, Moment(5.0, None, delivered=True)).ratio == 5


def test_a_chosen_cell_that_is_late_misses_the_deadline_and_is_billed() -> None:
    known = truth(one_batch({1: 900.0, 4: 450.0}), 2, deadline=2000)
    assert known.oracle == Allocation(4, 64)
    judged = bill(known, Moment(0.0, Allocation(1, 64), delivered=False))
    assert judged.misses_deadline
    assert not judged.misses_target
    assert judged.ratio == 0.5
    assert judged.regret == -0.5


def test_a_chosen_cell_that_never_arrives_misses_the_target() -> None:
    known = truth(one_batch({1: 900.0}), 2, deadline=4000)
    judged = bill(known, Moment(0.0, Allocation(9, 9), delivered=False))
    assert judged.misses_target
    assert not judged.misses_deadline
    assert judged.ratio == math.inf
