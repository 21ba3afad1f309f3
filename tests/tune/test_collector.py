import logging
import time

import pytest
from ray import cloudpickle
from ray.tune import PlacementGroupFactory

from raycosttune.tune import collector
from raycosttune.tune.collector import Collector
from raycosttune.tune.resources import DriverResources


def test_nothing_is_swept_without_ray() -> None:
    assert Collector().sweep() == 0


def test_a_sweep_that_ray_does_not_support_gives_up_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried = []

    def broken() -> list[object]:
        tried.append(1)
        msg = "no such table"
        raise AttributeError(msg)

    monkeypatch.setattr(collector, "job_groups", broken)
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    swept = Collector()
    with caplog.at_level(logging.WARNING):
        swept.sweep_if_due()
        swept.sweep_if_due()
        swept.sweep()
        swept.sweep_after_stop()
    assert len(tried) == 2
    assert len(caplog.records) == 1


def test_sweeps_keep_their_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = []
    monkeypatch.setattr(Collector, "sweep", lambda _: swept.append(1))
    kept = Collector()
    for _ in range(5):
        kept.sweep_if_due()
    assert len(swept) == 1


def test_a_stop_is_followed_by_sweeps_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    swept = []
    monkeypatch.setattr(Collector, "sweep", lambda _: swept.append(1))
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    monkeypatch.setattr(collector, "AFTER_STOP_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(collector, "AFTER_STOP_SECONDS", 1.0)
    kept = Collector()
    kept.sweep_after_stop()
    thread = kept._thread
    kept.sweep_after_stop()
    assert kept._thread is thread
    assert thread is not None
    thread.join(timeout=60)
    assert len(swept) > 1
    assert cloudpickle.loads(cloudpickle.dumps(kept))._thread is None


def test_a_fresh_collector_sweeps_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    swept = []
    monkeypatch.setattr(Collector, "sweep", lambda _: swept.append(1))
    Collector().sweep_if_due()
    assert swept == [1]


def test_a_watch_lasts_as_long_as_there_are_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[object] = []
    held = [("orphan", True), ("used", False)]
    looks = iter([held, [("used", False)], [("used", False)], [("used", False)]])
    monkeypatch.setattr(collector, "job_groups", lambda: next(looks, []))
    monkeypatch.setattr("ray.is_initialized", lambda: True)
    monkeypatch.setattr("ray.util.remove_placement_group", removed.append)
    monkeypatch.setattr(collector, "EVERY_SECONDS", 0.1)
    monkeypatch.setattr(collector, "AFTER_STOP_SECONDS", 1.0)
    kept = Collector()
    kept.watch()
    assert kept._thread is not None
    kept._thread.join(timeout=60)
    assert not kept._thread.is_alive()
    assert removed == ["orphan"]
    assert next(looks, None) is None


def test_what_a_driver_reserves_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[object] = []

    def watch(self: Collector) -> None:
        watched.append(self)

    monkeypatch.setattr(Collector, "watch", watch)
    monkeypatch.setattr(PlacementGroupFactory, "to_placement_group", lambda _: "group")
    assert DriverResources({"CPU": 1}).to_placement_group() == "group"
    assert watched == [collector.WATCH]
