import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.isotonic import isotonic
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.noise import NEIGHBOURS, Evaluation, Noise, resampled
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.workload import Curve
from tests.simulate.worlds import FEW, one_batch, tables

CELL = Allocation(1, 64)
LONG = 4000


def a_run(noise: Noise, workload: TableWorkload, seed: int, repetition: int) -> list[Evaluation]:
    cell = workload.space.cells[0]
    return list(noise.run(workload, cell, seed=seed, repetition=repetition))


def long_job(values: tuple[float, ...]) -> TableWorkload:
    curve = Curve(tuple(map(float, range(1, len(values) + 1))), values)
    space = one_batch({1: 1.0}).space
    return TableWorkload("long", space, {CELL: 10.0}, {CELL: 1.0}, {64: curve})


@FEW
@given(workload=tables(), seed=st.integers(0, 99), repetition=st.integers(0, 9))
def test_without_noise_a_run_is_the_workload(
    workload: TableWorkload, seed: int, repetition: int
) -> None:
    cell = workload.space.cells[0]
    curve, run = workload.curve(cell.batch_size), a_run(Noise(), workload, seed, repetition)
    assert tuple(told.epoch for told in run) == curve.epochs
    assert tuple(told.value for told in run) == curve.values
    for told in run:
        assert told.seconds == pytest.approx(workload.epochs[cell])


@FEW
@given(workload=tables(), seed=st.integers(0, 99), repetition=st.integers(0, 9))
def test_a_run_is_the_same_again_and_another_repetition_is_another_run(
    workload: TableWorkload, seed: int, repetition: int
) -> None:
    noise = Noise(0.2, curves=True, value_sd=0.1)
    run = a_run(noise, workload, seed, repetition)
    assert run == a_run(noise, workload, seed, repetition)
    assert run != a_run(noise, workload, seed, repetition + 1)
    assert run != a_run(noise, workload, seed + 1, repetition)


@given(seed=st.integers(0, 99), repetition=st.integers(0, 9))
def test_a_profile_is_not_timed_by_the_luck_of_the_run_of_the_same_number(
    seed: int, repetition: int
) -> None:
    noise, workload = Noise(0.2), one_batch({1: 1.0})
    factor = noise.profile(CELL, seed=seed, repetition=repetition)
    assert factor == noise.profile(CELL, seed=seed, repetition=repetition)
    assert factor != noise.profile(CELL, seed=seed, repetition=repetition + 1)
    assert factor != a_run(noise, workload, seed, repetition)[0].seconds


@pytest.mark.parametrize("sd", [0.05, 0.5])
def test_noise_on_times_is_1_on_average_and_as_wide_as_said(sd: float) -> None:
    run = a_run(Noise(sd), long_job((0.0,) * LONG), 3, 0)
    factors = [told.seconds / 10 for told in run]
    assert statistics.fmean(factors) == pytest.approx(1, abs=5 * sd / LONG**0.5)
    assert statistics.stdev(np.log(factors)) == pytest.approx(sd, rel=0.05)
    profiles = [Noise(sd).profile(CELL, seed=0, repetition=k) for k in range(LONG)]
    assert statistics.fmean(profiles) == pytest.approx(1, abs=5 * sd / LONG**0.5)


def test_noise_on_values_is_0_on_average_and_as_wide_as_said() -> None:
    values = [told.value for told in a_run(Noise(value_sd=2), long_job((1.0,) * LONG), 3, 0)]
    assert statistics.fmean(values) == pytest.approx(1, abs=5 * 2 / LONG**0.5)
    assert statistics.stdev(values) == pytest.approx(2, rel=0.05)


@FEW
@given(values=st.lists(st.integers(-99, 99), min_size=1, max_size=30), seed=st.integers(0, 9))
def test_a_resampled_curve_keeps_a_monotone_trend(values: list[int], seed: int) -> None:
    for path in (sorted(values), sorted(values, reverse=True)):
        curve = Curve(tuple(map(float, range(len(path)))), tuple(map(float, path)))
        assert resampled(curve, np.random.default_rng(seed)) == pytest.approx(curve.values)


@FEW
@given(
    values=st.lists(st.floats(-99, 99), min_size=1, max_size=30),
    seed=st.integers(0, 9),
    rises=st.booleans(),
)
def test_a_resampled_value_is_the_trend_and_a_neighbours_noise(
    values: list[float], seed: int, rises: bool
) -> None:
    steep = [value + (1000 if rises else -1000) * k for k, value in enumerate(values)]
    curve = Curve(tuple(map(float, range(len(steep)))), tuple(steep))
    trend = isotonic(np.array(steep), np.ones(len(steep)), increasing=rises)
    noise = np.array(steep) - trend
    drawn = resampled(curve, np.random.default_rng(seed)) - trend
    for k, deviation in enumerate(drawn):
        near = noise[max(k - NEIGHBOURS, 0) : k + NEIGHBOURS + 1]
        assert np.isclose(near, deviation, atol=1e-6).any()


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_resampled_noise_is_as_large_as_it_was(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.linspace(0, 1, 400) + rng.normal(0, 0.1, 400)
    curve = Curve(tuple(map(float, range(400))), tuple(values.tolist()))
    again = np.array(resampled(curve, rng))
    assert again.std() == pytest.approx(values.std(), rel=0.1)
    assert (again != values).mean() > 0.5
    assert abs(float((again - values).mean())) < 0.02


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("time_sd", value) for value in (-0.1, 1.1, math.nan, math.inf, 1e308)),
        *(("value_sd", value) for value in (-0.1, math.nan, math.inf)),
    ],
)
def test_a_deviation_is_bounded(name: str, value: float) -> None:
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(InvalidWorkloadError, match=rf"Noise\.{name} must") as caught:
        Noise(**arguments)
    assert f"got {value!r}" in str(caught.value)
