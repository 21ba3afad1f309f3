import json
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.rebalance import (
    DBS,
    KEEP,
    Balance,
    Equal,
    Policy,
    Sample,
    WorkerLog,
    _rising,
    policy_from_state,
    trimmed,
)
from raycosttune.core.share import InvalidShareError, equal_shares
from raycosttune.errors import InvalidStateError

Law = Callable[[int], float]
POLICIES = (Equal(), DBS(), Balance(), DBS(least=0), Balance(least=0))


def rounds(
    policy: Policy, laws: list[Law], total: int, count: int, noise: float = 0.0, seed: int = 0
) -> tuple[int, ...]:
    """Adjusts so often, and returns the shares that are then in force."""
    rng = np.random.default_rng(seed)
    logs = [WorkerLog(f"w{k}") for k in range(len(laws))]
    shares = equal_shares(total, len(laws))
    for number in range(1, count + 1):
        logs = [
            WorkerLog(
                log.name,
                (
                    *log.samples,
                    Sample(number, share, law(share) * math.exp(noise * rng.normal()), 10),
                ),
            )
            for log, law, share in zip(logs, laws, shares, strict=True)
        ]
        shares = policy.plan(logs, shares, total)
        assert sum(shares) == total
    return shares


def slowest(laws: list[Law], shares: tuple[int, ...]) -> float:
    return max(law(share) for law, share in zip(laws, shares, strict=True))


def line(constant: float, each: float) -> Law:
    return lambda share: constant + each * share


def measured(*seconds: float) -> Law:
    return lambda share: float(np.interp(share, [32, 64, 128, 256], seconds))


def test_three_adjustments_find_the_optimum_of_lines() -> None:
    laws = [line(0.1, 0.01), line(0.3, 0.01), line(0.05, 0.05), line(0.0, 0.002)]
    total = 400
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        fits = sum(math.floor((middle - law(0)) / (law(1) - law(0))) for law in laws) >= total
        low, high = (low, middle) if fits else (middle, high)
    assert slowest(laws, rounds(Balance(), laws, total, 3)) <= 1.03 * high


def test_dbs_follows_the_latest_speeds() -> None:
    logs = [
        WorkerLog("a", (Sample(1, 32, 9.0, 5), Sample(2, 32, 1.0, 5))),
        WorkerLog("b", (Sample(2, 32, 3.0, 5),)),
        WorkerLog("c"),
    ]
    assert DBS().plan(logs[:2], (32, 32), 64) == (48, 16)
    assert DBS().plan(logs, (32, 32, 0), 64) == (32, 11, 21)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.floats(0.0, 2.0), st.floats(0.001, 0.2), st.floats(1.0, 1.0)),
        min_size=2,
        max_size=5,
    ),
    st.integers(20, 300),
    st.integers(1, 4),
)
def test_without_noise_no_plan_is_worse_than_equal_shares(
    laws: list[tuple[float, float, float]], total: int, count: int
) -> None:
    made = [line(constant, each) for constant, each, _ in laws]
    equal = slowest(made, equal_shares(total, len(made)))
    assert slowest(made, rounds(Balance(), made, total, count)) <= equal * (1 + 1e-9)


def test_a_worker_that_slows_down_is_unloaded_and_loaded_again() -> None:
    slow = {4, 5, 6}
    logs = [WorkerLog("a"), WorkerLog("b")]
    shares: tuple[int, ...] = (50, 50)
    seen = []
    for number in range(1, 10):
        seconds = [0.01 * shares[0] * (8 if number in slow else 1), 0.01 * shares[1]]
        logs = [
            WorkerLog(log.name, (*log.samples, Sample(number, share, each, 5)))
            for log, share, each in zip(logs, shares, seconds, strict=True)
        ]
        shares = Balance().plan(logs, shares, 100)
        seen.append(shares[0])
    assert seen[2] == pytest.approx(50, abs=3)
    assert seen[3] < 25
    assert seen[6] > 40


@pytest.mark.parametrize("factor", [5, 1e6])
@pytest.mark.parametrize("at", [1, 4])
def test_one_pause_takes_no_share_for_long(factor: float, at: int) -> None:
    logs, shares = [WorkerLog(name) for name in "abc"], equal_shares(96, 3)
    for number in range(1, at + 6):
        seconds = [0.05 + 0.01 * share for share in shares]
        seconds[1] *= factor if number == at else 1
        logs = [
            WorkerLog(log.name, (*log.samples, Sample(number, share, each, 5)))
            for log, share, each in zip(logs, shares, seconds, strict=True)
        ]
        shares = Balance().plan(logs, shares, 96)
    assert shares[1] >= 30


def test_shares_stay_where_little_is_to_be_gained() -> None:
    laws = [line(0.0, 0.01), line(0.0, 0.0102)]
    assert rounds(Balance(dead_band=0.05), laws, 100, 3) == (50, 50)


@pytest.mark.parametrize("policy", POLICIES)
def test_memory_and_the_least_share_hold(policy: Policy) -> None:
    samples = (Sample(1, 50, 1.0, 5),)
    logs = [WorkerLog("a", samples, most=30), WorkerLog("b", (Sample(1, 50, 900.0, 5),))]
    shares = policy.plan(logs, (50, 50), 100)
    assert sum(shares) == 100
    assert shares[0] <= 30
    tight = [WorkerLog("a", samples, most=30), WorkerLog("b", samples, most=40)]
    with pytest.raises(InvalidShareError):
        policy.plan(tight, (50, 50), 100)


odd = st.sampled_from([math.nan, math.inf, -1.0, 0.0, 1e-300, 1e300, 1.0])
samples = st.builds(
    Sample, st.integers(1, 9), st.integers(-1, 60), odd | st.floats(0.01, 5), st.integers(-1, 9)
)


@given(
    st.lists(st.lists(samples, max_size=5), min_size=1, max_size=4),
    st.integers(4, 60),
    st.sampled_from(POLICIES),
)
def test_odd_numbers_never_break_a_plan(
    told: list[list[Sample]], total: int, policy: Policy
) -> None:
    logs = [WorkerLog(f"w{k}", tuple(own)) for k, own in enumerate(told)]
    shares = policy.plan(logs, equal_shares(total, len(logs)), total)
    assert sum(shares) == total
    assert min(shares) >= 0
    assert policy.plan(logs, equal_shares(total, len(logs)), total) == shares


def test_a_worker_that_joins_gets_the_share_of_a_middling_one() -> None:
    logs = [WorkerLog("a", (Sample(1, 50, 1.0, 5),)), WorkerLog("b"), WorkerLog("c")]
    for policy in (DBS(), Balance()):
        assert policy.plan(logs, (50, 50), 99) == pytest.approx((33, 33, 33), abs=6)
    assert Balance().plan([WorkerLog("a"), WorkerLog("b")], (9, 1), 10) == (5, 5)


def test_seconds_that_fall_with_the_share_give_no_reason_for_a_smaller_one() -> None:
    laws: list[Law] = [lambda share: 3.0 if share < 40 else 0.02 * share, line(0.0, 0.05)]
    shares = rounds(Balance(), laws, 100, 6)
    assert slowest(laws, shares) <= slowest(laws, (50, 50))
    crowded: list[Law] = [lambda share: 50.0 / max(share, 1)] * 3
    assert sum(rounds(Balance(), crowded, 30, 5)) == 30


def test_odd_laws_that_many_workers_share_are_not_taken_for_noise() -> None:
    laws = [measured(43, 25, 39, 67)] * 4 + [measured(65, 33.6, 64, 125)] * 6
    laws += [measured(31.5, 31.5, 61, 121)] * 5
    shares = rounds(Balance(least=32), laws, 64 * 15, 3)
    assert slowest(laws, shares) <= slowest(laws, (64,) * 15)


def test_where_all_are_fastest_with_more_than_there_is_the_bounds_stay() -> None:
    knots = np.log([10.0, 60.0])
    falling = np.array([[1.0, 0.0], [1.0, 0.0]])
    bounds = [(1, 60), (1, 60)]
    assert _rising(knots, falling, bounds, 60)[0] == bounds
    assert _rising(knots, falling, bounds, 120)[0] == [(60, 60), (60, 60)]


def test_speeds_that_wander_are_followed() -> None:
    rng = np.random.default_rng(5)
    logs, shares = [WorkerLog("a"), WorkerLog("b")], equal_shares(100, 2)
    paces, ours, equal = np.zeros(2), 0.0, 0.0
    for number in range(1, 41):
        paces += 0.15 * rng.normal(size=2)
        seconds = np.exp(paces) * np.array(shares) / 100
        ours, equal = ours + seconds.max(), equal + np.exp(paces).max() / 2
        logs = [
            trimmed(WorkerLog(log.name, (*log.samples, Sample(number, share, float(each), 5))))
            for log, share, each in zip(logs, shares, seconds, strict=True)
        ]
        shares = Balance().plan(logs, shares, 100)
    assert ours < 0.9 * equal


def test_a_log_keeps_its_newest_samples() -> None:
    log = WorkerLog("a", tuple(Sample(k, 1, 1.0, 1) for k in range(99)))
    assert [sample.round for sample in trimmed(log).samples] == list(range(99 - KEEP, 99))
    assert len(trimmed(log, keep=3).samples) == 3


@pytest.mark.parametrize("policy", [*POLICIES, Balance(dead_band=0.1)])
def test_a_policy_survives_plain_json(policy: Equal | DBS | Balance) -> None:
    assert policy_from_state(json.loads(json.dumps(policy.to_state()))) == policy


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"name": "other"},
        {"name": "dbs", "dead_band": 0.1},
        {"name": "dbs", "least": "all"},
        {"name": "balance", "dead_band": math.nan},
    ],
)
def test_a_policy_that_can_not_be_read_is_named(state: dict[str, object]) -> None:
    with pytest.raises(InvalidStateError, match="must have a name and its settings"):
        policy_from_state(state)


def test_a_worker_that_slows_down_slowly_is_followed() -> None:
    logs = [WorkerLog("a"), WorkerLog("b")]
    shares: tuple[int, ...] = (200, 200)
    for number in range(25):
        speeds = 0.01 * 1.05**number, 0.01
        logs = [
            WorkerLog(log.name, (*log.samples, Sample(number, share, share * each, 5)))
            for log, share, each in zip(logs, shares, speeds, strict=True)
        ]
        shares = Balance().plan(logs, shares, 400)
    assert shares[0] == pytest.approx(400 / (1 + 1.05**25), rel=0.15)
