import math
import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog

from raycosttune.core.cost import CostMetric, NodeHours, WorkerHours
from raycosttune.core.goal import Goal, Mode
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidGoalError, InvalidWorkloadError
from raycosttune.simulate.oracle import Truth, seconds_to_target
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.trace import TraceWorkload
from tests.simulate.worlds import FEW, Rounded, one_batch, tables

COSTS: st.SearchStrategy[CostMetric] = st.sampled_from((NodeHours(), WorkerHours(), Rounded()))
LINEAR: st.SearchStrategy[CostMetric] = st.sampled_from((NodeHours(), WorkerHours()))
TRACES = Path(
    os.environ.get("RAYCOSTTUNE_TRACES", Path(__file__).parents[2] / "../shared/traces")
).resolve()


def goal(deadline_seconds: float | None = None) -> Goal:
    return Goal(target=1.0, metric="m", mode="max", deadline_seconds=deadline_seconds)


def truth(workload: TableWorkload, cost: CostMetric, slack: float | None) -> Truth:
    """Returns the truth under a deadline that is so many times the fastest time."""
    fastest = min(seconds_to_target(workload, goal()).values())
    return Truth(workload, goal(None if slack is None else slack * fastest), cost)


SLACK = st.none() | st.floats(1, 5)


@FEW
@given(workload=tables(), cost=COSTS, slack=SLACK)
def test_the_oracle_is_the_cheapest_of_all_runs_in_time(
    workload: TableWorkload, cost: CostMetric, slack: float | None
) -> None:
    known = truth(workload, cost, slack)
    limit = known.goal.deadline_seconds or math.inf
    cheapest = math.inf
    for cell in workload.space.cells:
        needed = [k for k, v in enumerate(workload.curve(cell.batch_size).values, 1) if v >= 1]
        if needed:
            seconds = workload.startups[cell.workers] + needed[0] * workload.epochs[cell]
            assert known.seconds[cell] == pytest.approx(seconds)
            assert known.costs[cell] == pytest.approx(cost(cell, seconds))
            if known.seconds[cell] <= limit:
                cheapest = min(cheapest, known.costs[cell])
        else:
            assert known.costs[cell] == known.seconds[cell] == math.inf
    assert known.oracle_cost == cheapest == known.costs[known.oracle]
    assert known.oracle in known.feasible


@FEW
@given(workload=tables(), cost=COSTS, slack=SLACK)
def test_resizing_is_as_cheap_as_the_best_of_all_splits_tried(
    workload: TableWorkload, cost: CostMetric, slack: float | None
) -> None:
    known = truth(workload, cost, slack)
    assert known.resize_cost <= known.oracle_cost
    splits = [known.oracle_cost]
    for first, then in product(known.seconds, repeat=2):
        if first.batch_size == then.batch_size and first != then:
            splits += [split(known, first, then, k / 100) for k in range(1, 100)]
    cheapest = min(splits)
    assert known.resize_cost <= cheapest * (1 + 1e-9)
    if known.goal.deadline_seconds is None:
        assert known.resize_cost == pytest.approx(cheapest)


def split(known: Truth, first: Allocation, then: Allocation, share: float) -> float:
    """Returns the cost of a run that changes its workers, infinite where it is late."""
    epochs = known.workload.curve(first.batch_size).epochs_to(known.goal)
    if math.isinf(epochs):
        return math.inf
    seconds = [
        known.workload.startup_seconds(cell.workers)
        + known.workload.epoch_seconds(cell) * epochs * part
        for cell, part in ((first, share), (then, 1 - share))
    ]
    if sum(seconds) > (known.goal.deadline_seconds or math.inf):
        return math.inf
    return known.cost(first, seconds[0]) + known.cost(then, seconds[1])


@st.composite
def trade_offs(draw: st.DrawFn) -> TableWorkload:
    """Draws a job whose runs get faster and dearer with every worker."""
    power = draw(st.floats(0.1, 0.9))
    return one_batch({n: 1000 * n**-power for n in (1, 2, 3, 4, 8)}, draw(st.integers(1, 8)))


@given(workload=tables(startup=False) | trade_offs(), cost=LINEAR, slack=st.floats(1, 5))
def test_without_start_ups_resizing_is_the_best_schedule_of_any_number_of_changes(
    workload: TableWorkload, cost: CostMetric, slack: float
) -> None:
    known = truth(workload, cost, slack)
    cheapest = math.inf
    for batch in workload.space.batches:
        cells = [cell for cell in workload.space.cells if cell.batch_size == batch]
        epochs = workload.curve(batch).epochs_to(known.goal)
        if math.isfinite(epochs):
            seconds = np.array([workload.epochs[cell] * epochs for cell in cells])
            best = linprog(
                [cost(cell, s) for cell, s in zip(cells, seconds, strict=True)],
                A_ub=[seconds / known.goal.deadline_seconds],
                b_ub=[1.0],
                A_eq=[np.ones(len(cells))],
                b_eq=[1.0],
            )
            cheapest = min(cheapest, best.fun if best.success else math.inf)
    assert known.resize_cost == pytest.approx(cheapest, rel=1e-5)


@FEW
@given(workload=tables(), slack=st.floats(1, 4))
def test_a_looser_deadline_never_costs_more(workload: TableWorkload, slack: float) -> None:
    tight, loose = (truth(workload, WorkerHours(), k) for k in (slack, slack + 1))
    assert loose.oracle_cost <= tight.oracle_cost
    assert loose.resize_cost <= tight.resize_cost * (1 + 1e-9)


@FEW
@given(workload=tables(), share=st.floats(0.1, 0.99))
def test_a_deadline_that_no_cell_meets_is_named_with_the_fastest(
    workload: TableWorkload, share: float
) -> None:
    fastest = min(seconds_to_target(workload, goal()).values())
    assume(fastest > 0)
    with pytest.raises(InvalidWorkloadError, match="Allow at least that") as caught:
        Truth(workload, goal(share * fastest), WorkerHours())
    assert f"the fastest needs {fastest} s" in str(caught.value)
    assert Truth(workload, goal(fastest), WorkerHours()).feasible


def test_a_resize_by_hand() -> None:
    workload = one_batch({1: 1000.0, 4: 500.0})
    known = Truth(workload, goal(3000), WorkerHours())
    assert known.oracle == Allocation(4, 64)
    assert known.oracle_cost == pytest.approx(4 * 2000 / 3600)
    # Half of the epochs on each: 2000 s on one worker, 1000 s on four.
    assert known.resize_cost == pytest.approx((2000 + 4 * 1000) / 3600)


def test_a_resize_pays_a_start() -> None:
    workload = one_batch({1: 1000.0, 4: 500.0}, startup=100.0)
    known = Truth(workload, goal(3200), WorkerHours())
    assert known.resize_cost == pytest.approx((2100 + 4 * 1100) / 3600)


@pytest.mark.parametrize(("mode", "target", "best"), [("max", 2.0, "1"), ("min", -2.0, "0.25")])
def test_a_target_that_no_curve_reaches_is_named_with_the_best_value(
    mode: Mode, target: float, best: str
) -> None:
    never = Goal(target=target, metric="m", mode=mode)
    with pytest.raises(InvalidWorkloadError) as caught:
        Truth(one_batch({1: 1.0}), never, WorkerHours())
    assert str(caught.value) == (
        f"one: no curve reaches the target {target:g} (mode {mode!r}); "
        f"the best value is {best}. Set a target that was reached."
    )


def test_a_goal_without_a_mode_is_refused() -> None:
    with pytest.raises(InvalidGoalError, match=r"Goal\.mode must be set"):
        Truth(one_batch({1: 1.0}), Goal(target=1.0), WorkerHours())


def test_a_run_that_costs_nothing_is_refused() -> None:
    class Free(Rounded):
        def __call__(self, allocation: Allocation, seconds: float) -> float:
            del allocation, seconds
            return 0.0

    with pytest.raises(InvalidWorkloadError, match="costs 0 begun worker-hours"):
        Truth(one_batch({1: 1.0}), goal(), Free())


TARGETS: dict[str, tuple[float, Mode]] = {
    "cifar10": (0.93, "max"),
    "imagenet": (0.74, "max"),
    "deepspeech2": (25, "min"),
    "yolov3": (13, "min"),
    "bert": (88, "max"),
}
SLACKS = (1.5, 2, 4, 8, None)
Cell = tuple[int, int]
# As listed in the traces' README: the oracle in worker-hours and in node-hours, by slack.
ORACLES: dict[str, tuple[tuple[Cell, Cell], ...]] = {
    "cifar10": (
        ((11, 2048), (11, 2048)),
        ((6, 2048), (8, 2048)),
        ((2, 512), (4, 512)),
        ((1, 128), (4, 512)),
        ((1, 128), (4, 512)),
    ),
    "imagenet": (
        ((48, 6400), (48, 6400)),
        ((24, 3200), (24, 3200)),
        ((10, 1600), (12, 1600)),
        ((5, 800), (8, 1600)),
        ((1, 200), (4, 800)),
    ),
    "deepspeech2": (
        ((10, 320), (10, 320)),
        ((3, 80), (4, 160)),
        ((2, 80), (4, 160)),
        ((1, 80), (4, 160)),
        ((1, 80), (4, 160)),
    ),
    "yolov3": (
        ((16, 256), (16, 256)),
        ((4, 128), (4, 128)),
        ((2, 32), (4, 128)),
        ((1, 16), (4, 128)),
        ((1, 16), (4, 128)),
    ),
    "bert": (
        ((16, 384), (16, 384)),
        ((11, 384), (12, 384)),
        ((4, 192), (4, 192)),
        ((2, 192), (4, 192)),
        ((2, 192), (4, 192)),
    ),
}


@pytest.mark.skipif(
    not TRACES.is_dir(), reason=f"no traces at {TRACES}: set RAYCOSTTUNE_TRACES to their folder"
)
@pytest.mark.parametrize("job", sorted(TARGETS))
def test_the_oracles_of_the_public_traces_are_those_listed_with_them(job: str) -> None:
    target, mode = TARGETS[job]
    workload = TraceWorkload.read(TRACES, f"pollux-{job}", device="t4", workers_per_node=4)
    plain = Goal(target=target, metric="m", mode=mode)
    fastest = min(seconds_to_target(workload, plain).values())
    metrics: tuple[CostMetric, ...] = (WorkerHours(), NodeHours())
    for slack, listed in zip(SLACKS, ORACLES[job], strict=True):
        limit = None if slack is None else slack * fastest
        limited = Goal(target=target, metric="m", mode=mode, deadline_seconds=limit)
        for cost, cell in zip(metrics, listed, strict=True):
            known = Truth(workload, limited, cost)
            assert (known.oracle.workers, known.oracle.batch_size) == cell
            assert 0.5 * known.oracle_cost < known.resize_cost <= known.oracle_cost
