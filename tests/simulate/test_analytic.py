import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.goal import Goal
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.analytic import AnalyticWorkload

SPACE = Space((1, 2, 4, 8), (64, 128, 256, 512))
workloads = st.builds(
    AnalyticWorkload,
    st.just(SPACE),
    samples=st.integers(1000, 100_000),
    sample_seconds=st.floats(1e-4, 1),
    step_overhead_seconds=st.floats(0, 1),
    sync_seconds=st.floats(0, 1),
    noise_scale=st.floats(1, 1e4),
    time_constant=st.floats(1, 10),
    evaluations_per_epoch=st.integers(1, 4),
)


@given(workloads)
def test_a_larger_batch_never_reaches_the_target_earlier(workload: AnalyticWorkload) -> None:
    goal = Goal(target=0.5, mode="max")
    epochs = [workload.curve(batch).epochs_to(goal) for batch in SPACE.batches]
    assert epochs == sorted(epochs)


@given(workloads)
def test_a_curve_rises_and_never_exceeds_the_ceiling(workload: AnalyticWorkload) -> None:
    curve = workload.curve(64)
    assert len(curve.epochs) == len(curve.values) == len(curve.noise_scales) == 400
    assert list(curve.epochs) == sorted(set(curve.epochs))
    assert list(curve.values) == sorted(curve.values)
    assert max(curve.values) <= workload.ceiling
    assert curve.epochs[workload.evaluations_per_epoch - 1] == 1


@given(workloads)
def test_an_epoch_is_its_steps_and_its_overhead(workload: AnalyticWorkload) -> None:
    for cell in SPACE.cells:
        steps = math.ceil(workload.samples / cell.batch_size)
        seconds = steps * workload.step_seconds(cell) + workload.epoch_overhead_seconds
        assert workload.epoch_seconds(cell) == pytest.approx(seconds)


def test_a_step_by_hand() -> None:
    workload = AnalyticWorkload(SPACE)
    assert workload.step_seconds(Allocation(4, 256)) == pytest.approx(0.064 + 0.01 + 2 * 0.005)
    assert workload.startup_seconds(1) == pytest.approx(10)
    assert workload.startup_seconds(11) == pytest.approx(20)


def test_every_bad_number_is_named_with_its_rule() -> None:
    bad: dict[str, Any] = {"samples": 0, "sync_seconds": -1.0, "noise_scale": math.nan}
    with pytest.raises(InvalidWorkloadError) as caught:
        AnalyticWorkload(SPACE, **bad)
    assert str(caught.value) == (
        "samples must be a finite number above 0, got 0; "
        "noise_scale must be a finite number above 0, got nan; "
        "sync_seconds must be a finite number of at least 0, got -1.0"
    )


@pytest.mark.parametrize(
    "name", ["step_overhead_seconds", "sync_seconds", "epoch_overhead_seconds", "startup"]
)
def test_overheads_may_be_nothing(name: str) -> None:
    nothing: dict[str, Any] = {name: 0.0}
    assert AnalyticWorkload(SPACE, **nothing).epoch_seconds(SPACE.cells[0]) > 0
