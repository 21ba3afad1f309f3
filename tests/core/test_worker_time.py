import math
from collections.abc import Sequence

import numpy as np
import pytest

from raycosttune.core.rebalance_group import grouped, memberships
from raycosttune.core.worker_time import MOST_KNOTS, Timings, WorkerTimes, fit_times, place_knots

ENDS = (0.0, math.log(400.0))


def fitted(rows: Sequence[tuple[int, float, float]], among: int, age: float = 0.0) -> WorkerTimes:
    """Fits rows of worker, share and seconds."""
    workers, shares, seconds = zip(*rows, strict=True)
    return fit_times(
        Timings(np.array(workers), np.log(shares), np.log(seconds), np.full(len(rows), age)),
        among,
        ENDS,
    )


def at(times: WorkerTimes, worker: int, share: float) -> float:
    return math.exp(float(np.interp(math.log(share), times.knots, times.mean[worker])))


def test_one_share_tells_seconds_in_proportion() -> None:
    times = fitted([(0, 50, 1.0), (1, 50, 4.0)], 2)
    assert at(times, 0, 50) == pytest.approx(1.0, rel=0.02)
    assert at(times, 0, 100) == pytest.approx(2.0, rel=0.1)
    assert at(times, 1, 25) == pytest.approx(2.0, rel=0.1)


def test_several_shares_tell_a_line() -> None:
    rows = [(0, share, 0.5 + 0.01 * share) for share in (20, 50, 100, 200)]
    times = fitted([*rows, (1, 50, 3.0)], 2)
    for share in (30, 75, 150):
        assert at(times, 0, share) == pytest.approx(0.5 + 0.01 * share, rel=0.04)


def test_what_is_far_from_every_measurement_is_less_certain() -> None:
    times = fitted([(0, share, 0.01 * share) for share in (40, 50, 60)], 1)
    near = float(np.interp(math.log(50), times.knots, times.sd[0]))
    assert near < times.sd[0, -1]
    assert near < times.sd[0, 0]


def test_workers_that_measure_alike_share_a_law() -> None:
    rng = np.random.default_rng(0)
    rows = [
        (worker, share, 0.02 * share * math.exp(0.1 * rng.normal()))
        for worker in range(6)
        for share in (40, 60)
    ]
    alone = fitted(rows[:2], 1)
    together = fitted(rows, 6)
    place = int(np.argmin(np.abs(together.knots - math.log(50))))
    assert together.sd[0, place] < alone.sd[0, np.argmin(np.abs(alone.knots - math.log(50)))]


def test_a_worker_without_samples_is_the_mean_worker() -> None:
    times = fitted([(0, 50, 1.0), (1, 50, 1.1)], 3)
    assert at(times, 2, 50) == pytest.approx(1.05, rel=0.2)
    assert times.sd[2].min() > times.sd[0].min()


def test_what_is_old_counts_less() -> None:
    rows = [(0, 50, 1.0), (0, 50, 2.0)]
    workers, shares, seconds = zip(*rows, strict=True)
    timings = Timings(np.array(workers), np.log(shares), np.log(seconds), np.array([60.0, 0.0]))
    assert at(fit_times(timings, 1, ENDS), 0, 50) == pytest.approx(2.0, rel=0.1)


def test_a_worker_that_changed_has_a_law_of_its_own() -> None:
    rows = [(0, 50, 1.0), (1, 50, 1.05), (2, 50, 0.95)]
    workers, shares, seconds = (np.array(column) for column in zip(*rows, strict=True))
    timings = Timings(workers, np.log(shares), np.log(seconds), np.zeros(3))
    joined, apart = (fit_times(timings, 3, ENDS, alone) for alone in ((), (2,)))
    assert abs(at(apart, 2, 50) - 0.95) < abs(at(joined, 2, 50) - 0.95)
    assert at(apart, 0, 50) == pytest.approx(1.025, abs=0.02)


def test_knots_lie_at_measured_shares_and_at_both_ends() -> None:
    assert place_knots(np.log([50.0]), ENDS) == pytest.approx(np.log([1, 50, 400]))
    assert len(place_knots(np.log(np.arange(1.0, 401.0)), ENDS)) <= MOST_KNOTS + 2
    close = place_knots(np.log([400.0, 399.0]), ENDS)
    assert close[-1] == pytest.approx(math.log(400))
    single = place_knots(np.array([2.0]), (2.0, 2.0))
    assert len(single) == 2


def test_groups_are_those_that_one_law_explains() -> None:
    from raycosttune.core.rebalance_evidence import Terms  # noqa: PLC0415 - only here
    from raycosttune.core.worker_time import ODDS, _hats, _roots  # noqa: PLC0415 - private

    speeds = [0.01, 0.01, 0.05, 0.05, 0.2]
    rows = [(k, share, s * share) for k, s in enumerate(speeds) for share in (40.0, 60.0)]
    workers, shares, seconds = zip(*rows, strict=True)
    knots = place_knots(np.log(shares), ENDS)
    features = np.swapaxes(_hats(np.log(shares), knots) @ _roots(knots, 1), 0, 1)
    off = np.log(seconds) - np.log(shares)
    terms = Terms.of(np.array(workers), features, off - off.mean(), 5)
    groups = grouped(terms, range(5), 0.03**2, ODDS)
    assert groups == [[0, 1], [2, 3], [4]]
    chances, _ = memberships(terms, groups, 0.03**2, ODDS)
    assert chances.sum(axis=1) == pytest.approx(1)
    assert list(chances[:4].argmax(axis=1)) == [0, 0, 1, 1]
    assert chances[4].argmax() == 3
    assert grouped(terms, [2], 0.03**2, ODDS) == [[2]]
