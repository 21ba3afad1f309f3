import json
import logging
import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.noise_scale import NoiseTerms
from raycosttune.core.rebalance import DBS, Balance, WorkerLog
from raycosttune.core.share import InvalidShareError
from raycosttune.train.rebalancer import Measured, Rebalancer, SharePlan
from raycosttune.train.step import Timing
from tests.train.fakes import FakeExchange

NONE = NoiseTerms()


def timing(share: int, seconds: float, wall: float = 10.0) -> Timing:
    return Timing(seconds, 5, share, 5, 5 * share, 5 * seconds, wall)


def told(one: Timing, ahead: int = 0) -> list[float]:
    return [*astuple(one), *astuple(NONE), float(ahead)]


def adjusted(policy: Any = None, **options: Any) -> Rebalancer:
    """Rebalances 12 samples over two workers of which the second takes three times as long."""
    exchange = FakeExchange(others=[told(timing(6, 3.0), 7)])
    rebalancer = Rebalancer(12, exchange, policy or DBS(), **options)
    rebalancer.adjust(timing(6, 1.0), NONE, 5)
    return rebalancer


def test_shares_follow_speeds_from_the_first_step_that_nobody_has_drawn() -> None:
    rebalancer = adjusted()
    assert rebalancer.plan.entries == [(0, (6, 6)), (7, (9, 3))]
    assert rebalancer.share == 9
    assert rebalancer.plan.at(6) == (6, 6)
    assert rebalancer.plan.at(7) == (9, 3)
    assert rebalancer.plan.entries == [(7, (9, 3))]


def test_what_the_workers_did_is_known_to_all() -> None:
    latest = adjusted().latest
    assert latest == Measured((6, 6), (5.0, 15.0), (5.0, 0.0), None)
    assert latest.imbalance == 1.5
    assert Measured((6, 6), (0.0, 0.0), (0.0, 0.0), None).imbalance == 1


def test_a_worker_follows_the_first_one_whatever_it_would_plan_itself() -> None:
    exchange = FakeExchange(rank=1, others=[told(timing(6, 1.0))], first=[4, 8])
    rebalancer = Rebalancer(12, exchange, DBS())
    assert rebalancer.plan.latest == (6, 6)
    rebalancer.adjust(timing(6, 3.0), NONE, 5)
    assert rebalancer.plan.latest == (4, 8)
    assert rebalancer.share == 8


class Broken:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def plan(self, workers: Sequence[WorkerLog], shares: tuple[int, ...], total: int) -> Any:
        del workers, shares, total
        raise self.error


class Wrong:
    def __init__(self, shares: Any) -> None:
        self.shares = shares

    def plan(self, workers: Sequence[WorkerLog], shares: tuple[int, ...], total: int) -> Any:
        del workers, shares, total
        return self.shares


def test_a_policy_that_fails_leaves_the_shares(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert adjusted(Broken(ZeroDivisionError())).plan.latest == (6, 6)
    assert "they stay" in caplog.text


@pytest.mark.parametrize("shares", [(6, 7), (12,), (-1, 13), "12", None, (6.0, math.nan)])
def test_shares_that_are_no_split_of_the_batch_are_not_taken(
    shares: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert adjusted(Wrong(shares)).plan.latest == (6, 6)
    assert "they stay" in caplog.text


@pytest.mark.parametrize("shares", [np.array([4, 8]), torch.tensor([4, 8]), iter([4, 8])])
def test_whole_shares_of_any_kind_are_taken(shares: Any) -> None:
    assert adjusted(Wrong(shares)).plan.latest == (4, 8)


def test_a_policy_that_takes_long_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rebalancer = adjusted()
    moments = iter(range(0, 100, 4))
    monkeypatch.setattr("time.perf_counter", lambda: next(moments))
    for _ in range(2):
        rebalancer.adjust(timing(6, 1.0), NONE, 5)
    assert [record.getMessage()[:19] for record in caplog.records] == ["the policy took 4.0"]


@pytest.mark.parametrize("seconds", [math.nan, math.inf, 0.0, -1.0])
def test_a_time_that_is_none_leaves_the_shares(seconds: float) -> None:
    exchange = FakeExchange(others=[told(timing(6, seconds), 7)])
    for policy in (DBS(), Balance()):
        rebalancer = Rebalancer(12, exchange, policy)
        rebalancer.adjust(timing(6, seconds), NONE, 5)
        assert rebalancer.plan.latest == (6, 6)
        json.dumps(rebalancer.state())


def test_a_batch_that_fits_nowhere_ends_the_run_on_every_worker() -> None:
    with pytest.raises(InvalidShareError, match="no room"):
        adjusted(Broken(InvalidShareError("no room")))
    exchange = FakeExchange(rank=1, others=[told(timing(6, 1.0))], first=[-1, -1])
    rebalancer = Rebalancer(12, exchange, DBS())
    with pytest.raises(InvalidShareError, match="first worker"):
        rebalancer.adjust(timing(6, 3.0), NONE, 5)


def test_a_batch_with_fewer_samples_than_workers_is_refused() -> None:
    with pytest.raises(InvalidShareError, match="got 2 for 3 workers"):
        Rebalancer(2, FakeExchange(size=3))


def test_a_worker_that_ran_out_of_memory_never_gets_as_much_again() -> None:
    rebalancer = adjusted(caps={"node:0": 5, "elsewhere:0": 1})
    assert rebalancer.plan.entries[0] == (0, (5, 7))
    assert rebalancer.plan.latest[0] <= 5


def test_a_batch_that_fits_into_no_memory_is_refused() -> None:
    with pytest.raises(InvalidShareError, match=r"at most \[5, 6\] fit"):
        Rebalancer(12, FakeExchange(), caps={"node:0": 5, "node:1": 6})


def test_workers_on_one_place_have_names_of_their_own() -> None:
    rebalancer = Rebalancer(12, FakeExchange(size=3, places=["a", "b", "a"]))
    assert [log.name for log in rebalancer.logs] == ["a", "b", "a#1"]


def test_a_restart_goes_on_from_the_shares_and_speeds() -> None:
    before = adjusted()
    state = json.loads(json.dumps(before.state()))
    after = Rebalancer(12, FakeExchange(), DBS())
    after.load_state(state)
    assert after.plan.latest == (9, 3)
    assert after.logs == before.logs
    assert after.state() == {**state, "round": 1}


def test_the_workers_that_remain_keep_their_speeds() -> None:
    state = adjusted().state()
    fewer = Rebalancer(12, FakeExchange(size=1, places=["node:1"]), DBS())
    fewer.load_state(state)
    assert fewer.plan.latest == (12,)
    assert fewer.logs[0].samples == adjusted().logs[1].samples
    more = Rebalancer(12, FakeExchange(size=3), DBS())
    more.load_state(state)
    assert sum(more.plan.latest) == 12
    assert more.plan.latest[0] > more.plan.latest[1]


def test_a_run_shrinks_to_one_worker_and_grows_again() -> None:
    one = Rebalancer(12, FakeExchange(size=1), DBS())
    one.load_state(adjusted().state())
    assert one.plan.latest == (12,)
    again = Rebalancer(12, FakeExchange(), DBS())
    again.load_state(json.loads(json.dumps(one.state())))
    assert again.plan.latest == (6, 6)  # a newcomer counts as one like the other
    assert again.logs[0].samples == adjusted().logs[0].samples
    assert again.logs[1].samples == ()


def test_the_first_worker_says_where_all_go_on() -> None:
    state = adjusted().state()
    first = Rebalancer(12, FakeExchange(), DBS())
    first.load_first(state)
    assert first.plan.latest == (9, 3)
    first.load_first({})
    assert first.plan.latest == (9, 3)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 20) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["round", "shares", "noise", "workers", "name", "most", "samples"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["round", "shares", "noise", "workers"]), json_values))
def test_a_damaged_state_never_breaks_a_restart(state: dict[str, Any]) -> None:
    rebalancer = Rebalancer(12, FakeExchange(), DBS())
    rebalancer.load_state(state)
    assert sum(rebalancer.plan.latest) == 12
    assert min(rebalancer.plan.latest) >= 0


def test_a_plan_keeps_what_still_holds() -> None:
    plan = SharePlan([(0, (1, 1))])
    plan.change(3, (2, 0))
    plan.change(3, (0, 2))
    assert plan.at(2) == (1, 1)
    assert plan.at(3) == (0, 2)
    assert plan.latest == (0, 2)
