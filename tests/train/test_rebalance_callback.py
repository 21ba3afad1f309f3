import logging
import pickle
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import torch
from ray.train.v2._internal.execution import train_fn_utils
from torch.utils.data import TensorDataset

from raycosttune.core.cost import NodeHours
from raycosttune.core.rebalance import DBS, Balance, Equal, Sample, WorkerLog
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidRebalanceError
from raycosttune.train import keys, received, worker_report
from raycosttune.train import settings as settings_module
from raycosttune.train.current import CURRENT, Current
from raycosttune.train.data import prepare_data_loader
from raycosttune.train.rebalance_callback import RebalanceCallback, _failed, measuring
from raycosttune.train.rebalancer import Rebalancer
from raycosttune.train.settings import Settings, install, installed, rebalance
from tests.train.fakes import FakeExchange
from tests.train.test_rebalancer import Wrong, adjusted


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    restore = install(Settings())
    vars(CURRENT).update(vars(Current()))
    received._told.clear()
    _failed.clear()
    monkeypatch.setattr(train_fn_utils, "_train_fn_utils", None)
    yield
    vars(CURRENT).update(vars(Current()))
    restore()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": 3}, "policy must have a method plan"),
        ({"policy": "dbs"}, "got 'dbs'"),
        ({"policy": DBS}, "got <class"),
        ({"every_steps": 0}, "every_steps must be"),
        ({"plan": "driver"}, 'must be "workers" or "controller"'),
        ({"cost": 3.0}, "cost must have a unit"),
    ],
)
def test_an_argument_that_can_not_be_used_is_refused(options: Any, words: str) -> None:
    with pytest.raises(InvalidRebalanceError, match=words):
        RebalanceCallback(**options)


class FakeWorker:
    """Is a worker that runs in this process."""

    def __init__(self, node: str = "a") -> None:
        self.metadata = SimpleNamespace(node_id=node)

    def execute_async(self, function: Any, *arguments: Any) -> Any:
        return function(*arguments)


class FakeGroup:
    def __init__(self, *workers: FakeWorker) -> None:
        self.workers = list(workers)

    def get_workers(self) -> list[FakeWorker]:
        return self.workers


def started(callback: RebalanceCallback, *nodes: str) -> RebalanceCallback:
    """Starts workers as Ray Train does; returns the copy that installs itself on one."""
    group = FakeGroup(*map(FakeWorker, nodes))
    callback.before_worker_group_start(None)
    assert callback.before_init_train_context(group.workers) == {}
    train_fn_utils.set_train_fn_utils(train_fn_utils.DistributedTrainFnUtils())
    copy: RebalanceCallback = pickle.loads(pickle.dumps(callback))  # noqa: S301 - as Ray does
    copy.after_init_train_context()
    callback.after_worker_group_start(group)
    return copy


def test_it_installs_its_policy_on_the_workers() -> None:
    assert installed().policy == Equal()
    callback = RebalanceCallback(DBS(), every_steps=7)
    started(callback, "a", "a", "b")
    settings = installed()
    assert (settings.policy, settings.every_steps) == (DBS(), 7)
    assert settings.requested_at is not None
    assert isinstance(train_fn_utils.get_train_fn_utils(), worker_report.MeasuredTrainFnUtils)


def test_seconds_of_earlier_starts_are_paid_too() -> None:
    callback = RebalanceCallback()
    started(callback, "a")
    callback._held_since -= 1e9
    callback.before_worker_group_shutdown(None)
    callback.before_worker_group_shutdown(None)
    started(callback, "a")
    assert installed().paid_seconds >= 1e9


@pytest.mark.parametrize("jump", [86_400.0, -86_400.0])
def test_a_clock_that_is_set_in_mid_run_changes_no_cost(
    monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(
        train_fn_utils.DistributedTrainFnUtils, "report", lambda *given, **_: told.append(given[1])
    )
    callback = RebalanceCallback(cost=NodeHours())
    started(callback, "a", "b")
    CURRENT.rebalancer = adjusted()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + jump)
    train_fn_utils.get_train_fn_utils().report({"loss": 1.0})
    callback.before_worker_group_shutdown(None)
    assert 0 <= told[0][keys.COST] * 3600 < 60
    assert 0 <= callback._paid_seconds < 60


def test_reports_carry_what_was_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    told: list[Any] = []
    monkeypatch.setattr(
        train_fn_utils.DistributedTrainFnUtils, "report", lambda *given, **_: told.append(given[1:])
    )
    started(RebalanceCallback(cost=NodeHours()), "a", "b")
    utils = train_fn_utils.get_train_fn_utils()
    utils.report({"loss": 1.0})
    CURRENT.rebalancer = adjusted()
    local = SimpleNamespace(filesystem=SimpleNamespace(type_name="local"), path=str(tmp_path))
    far = SimpleNamespace(filesystem=SimpleNamespace(type_name="s3"), path="bucket")
    lost = SimpleNamespace(filesystem=SimpleNamespace(type_name="local"), path="/none/such")
    for checkpoint in (local, far, lost, None):
        utils.report({"loss": 1.0}, checkpoint=checkpoint)  # type: ignore[arg-type]
    assert told[0] == ({"loss": 1.0}, None)
    metrics, checkpoint = told[1]
    assert checkpoint is local
    assert metrics["loss"] == 1.0
    assert metrics[keys.SHARES] == [6, 6]
    assert metrics[keys.COMPUTE_SECONDS] == [5.0, 15.0]
    assert metrics[keys.IDLE_SECONDS] == [5.0, 0.0]
    assert metrics[keys.IMBALANCE] == 1.5
    assert metrics[keys.COST_UNIT] == "node-hours"
    assert metrics[keys.COST] > 0
    assert keys.NOISE_SCALE not in metrics
    assert len(list(tmp_path.iterdir())) == 1
    assert [row[0][keys.SHARES] for row in told[2:]] == [[6, 6]] * 3


class BrokenCost:
    """Is a metric whose user has made a mistake."""

    unit = "beans"

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        raise ZeroDivisionError(allocation, seconds)


def test_a_cost_that_fails_never_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(
        train_fn_utils.DistributedTrainFnUtils, "report", lambda *given, **_: told.append(given[1])
    )
    started(RebalanceCallback(cost=BrokenCost()), "a")
    CURRENT.rebalancer = adjusted()
    train_fn_utils.get_train_fn_utils().report({"loss": 1.0})
    assert told[0]["loss"] == 1.0


def test_the_controller_plans_where_it_shall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "get", lambda ref, **_: ref)
    callback = RebalanceCallback(DBS(), plan="controller")
    started(callback, "a", "b")
    callback.after_report(None, [{}])
    callback.after_report(None, [{keys.SHARES: [6, 6]}])
    assert received._told == []
    CURRENT.rebalancer = adjusted(installed().policy)
    assert CURRENT.rebalancer.plan.latest == (6, 6)
    callback.after_report(None, [{keys.SHARES: [6, 6]}])
    assert received._told == [(9, 3)]
    policy = installed().policy
    log = WorkerLog("a", (Sample(1, 6, 1.0, 1),))
    assert policy.plan([log, log], (6, 6), 12) == (9, 3)
    assert policy.plan([log], (12,), 12) == (12,)
    assert policy.plan([log, log], (7, 7), 14) == (7, 7)
    callback.before_worker_group_shutdown(None)
    callback.after_report(None, [{keys.SHARES: [6, 6]}])


def test_a_worker_that_ran_out_of_memory_is_capped_at_its_next_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ray, "get", lambda ref, **_: ref)
    callback = RebalanceCallback()
    started(callback, "a", "b")
    status = SimpleNamespace(
        errors={0: torch.OutOfMemoryError("CUDA out of memory"), 1: ValueError("no"), 7: None}
    )
    callback.after_worker_group_poll_status(SimpleNamespace(errors={}))
    callback.after_worker_group_poll_status(status)
    assert not installed().caps
    CURRENT.rebalancer = Rebalancer(20, FakeExchange())
    with caplog.at_level(logging.WARNING):
        callback.after_worker_group_poll_status(status)
    assert "worker 0 ran out of memory with 10 samples" in caplog.text
    started(callback, "a", "b")
    assert installed().caps == {"node:0": 8}


def test_a_hook_that_fails_never_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        msg = "the worker is gone"
        raise ray.exceptions.GetTimeoutError(msg)

    monkeypatch.setattr(ray, "get", broken)
    callback = RebalanceCallback(plan="controller")
    started(callback, "a")
    for _ in range(2):
        callback.after_report(None, [{keys.SHARES: [6]}])
        callback.after_worker_group_poll_status(SimpleNamespace(errors={0: MemoryError()}))
    assert callback.before_init_train_context([None]) == {}
    assert len(caplog.records) == 2
    callback.after_report(None, [])
    callback.after_worker_group_poll_status(None)
    assert len(caplog.records) == 4


def test_a_worker_that_died_before_it_was_asked_ends_no_run(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    callback = RebalanceCallback(plan="controller")
    started(callback, "a")

    def dead(*_: object) -> None:
        raise ray.exceptions.RayActorError

    monkeypatch.setattr(FakeWorker, "execute_async", dead)
    callback.after_report(None, [{keys.SHARES: [6]}])
    callback.after_worker_group_poll_status(SimpleNamespace(errors={0: MemoryError()}))
    assert len(caplog.records) == 1


@pytest.mark.parametrize("plan", [None, (6, 7), "many", 12])
def test_what_the_controller_plans_wrongly_leaves_the_shares(
    monkeypatch: pytest.MonkeyPatch, plan: Any
) -> None:
    monkeypatch.setattr(ray, "get", lambda ref, **_: ref)
    callback = RebalanceCallback(Wrong(plan), plan="controller")
    started(callback, "a", "b")
    CURRENT.rebalancer = adjusted(installed().policy)
    callback.after_report(None, [{keys.SHARES: [6, 6]}])
    assert adjusted(installed().policy).plan.latest == (6, 6)


def test_a_loop_with_nothing_to_balance_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(settings_module, "_is_warned", False)
    monkeypatch.setattr(
        train_fn_utils.DistributedTrainFnUtils, "report", lambda *given, **_: given[1]
    )
    loader = prepare_data_loader(TensorDataset(torch.ones(3, 2)), batch_size=3)
    started(RebalanceCallback(Equal()), "a")
    train_fn_utils.get_train_fn_utils().report({})
    monkeypatch.setenv("RANK", "1")
    install(Settings(Balance()))
    train_fn_utils.get_train_fn_utils().report({})
    assert not caplog.records
    monkeypatch.setenv("RANK", "0")
    assert len(list(loader)) == 1
    train_fn_utils.get_train_fn_utils().report({})
    assert "no model of raycosttune.train.prepare_model" in caplog.text
    assert len(caplog.records) == 1


def test_a_run_without_the_callback_is_measured_with_equal_shares() -> None:
    (added,) = measuring([object()])
    assert added._policy == Equal()
    assert measuring([object(), RebalanceCallback()]) == []


def test_without_ray_a_call_turns_it_on_and_off() -> None:
    for options in ({"policy": 3}, {"every_steps": 0}):
        with pytest.raises(InvalidRebalanceError):
            rebalance(**options)  # type: ignore[arg-type]
    restore = rebalance(every_steps=3)
    assert (installed().policy, installed().every_steps) == (Balance(), 3)
    restore()
    assert installed() == Settings()
