import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.spot import expected_seconds

RATES = st.floats(0, 50)
LENGTHS = st.floats(0, 1e5)
INTERVALS = st.none() | st.floats(1, 1e5)


def expected(work: float, rate: float, interval: float | None, restart: float) -> float:
    return expected_seconds(
        work,
        interruptions_per_hour=rate,
        checkpoint_seconds=interval,
        restart_seconds=restart,
    )


def simulated(
    rng: np.random.Generator, work: float, per_hour: float, interval: float | None, restart: float
) -> float:
    """Plays one run through, interruption by interruption."""
    now = done = saved = 0.0
    ahead = 0.0  # of a restart
    until = rng.exponential(3600 / per_hour)
    while True:
        mark = work if interval is None else min(saved + interval, work)
        needed = ahead + mark - done
        if now + needed <= until:
            now, ahead, done, saved = now + needed, 0.0, mark, mark
            if saved >= work:
                return now
        else:
            now, done, ahead = until, saved, restart
            until = now + rng.exponential(3600 / per_hour)


@pytest.mark.parametrize("per_hour", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("interval", [120.0, 700.0, None])
@pytest.mark.parametrize("restart", [0.0, 60.0, 300.0])
def test_the_formula_is_within_5_percent_of_a_simulation(
    per_hour: float, interval: float | None, restart: float
) -> None:
    rng = np.random.default_rng(7)
    work = 3000.0
    runs = [simulated(rng, work, per_hour, interval, restart) for _ in range(4000)]
    assert np.mean(runs) == pytest.approx(expected(work, per_hour, interval, restart), rel=0.05)


@given(LENGTHS, LENGTHS, RATES, INTERVALS, st.floats(0, 1e4))
def test_more_work_never_takes_less(
    work: float, more: float, rate: float, interval: float | None, restart: float
) -> None:
    less = expected(work, rate, interval, restart)
    assert less <= expected(work + more, rate, interval, restart) * (1 + 1e-9)
    assert less >= work * (1 - 1e-9)


@given(LENGTHS, RATES, RATES, INTERVALS, st.floats(0, 1e4), st.floats(0, 1e4))
def test_more_interruptions_and_longer_restarts_never_take_less(
    work: float, rate: float, more: float, interval: float | None, restart: float, longer: float
) -> None:
    less = expected(work, rate, interval, restart)
    assert less <= expected(work, rate + more, interval, restart + longer) * (1 + 1e-9)
    assert math.isfinite(less)


@given(LENGTHS, st.floats(0, 1), st.floats(0, 1e3), st.floats(1, 1e4))
def test_halving_the_interval_never_takes_more(
    work: float, rate: float, restart: float, interval: float
) -> None:
    half = expected(work, rate, interval / 2, restart)
    assert half <= expected(work, rate, interval, restart) * (1 + 1e-9)


def test_without_interruptions_a_run_takes_its_work() -> None:
    assert expected(500.0, 0.0, 60.0, 30.0) == 500.0
    assert expected(0.0, 1.0, 60.0, 30.0) == 0.0


def test_interruptions_too_rare_to_count_add_nothing() -> None:
    assert expected(1e-5, 1e-316, None, 0.0) == pytest.approx(1e-5)
