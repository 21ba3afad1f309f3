import time
from types import SimpleNamespace
from typing import Any

import pytest
from ray.train._internal import session as ray_session

from raycosttune.train import keys
from raycosttune.tune.stopwatch import timed_reports


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Stands for what a session was told; the session is the one of this process."""
    rows: list[Any] = []

    def report(metrics: object, checkpoint: object = None) -> None:
        assert checkpoint is None
        rows.append(metrics)

    session = SimpleNamespace(report=report)
    monkeypatch.setattr(ray_session, "get_session", lambda: session)
    return rows


def test_each_report_brings_the_seconds_since_the_one_before(
    told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([10.0, 13.0, 13.5])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with timed_reports():
        for epoch in (1, 2):
            session: Any = ray_session.get_session()
            session.report({"epoch": epoch, "time_this_iter_s": 1e6}, checkpoint=None)
    assert [row[keys.ITERATION_SECONDS] for row in told] == [3.0, 0.5]
    assert [row["time_this_iter_s"] for row in told] == [1e6, 1e6]


def test_afterwards_reports_are_as_before(told: list[Any]) -> None:
    session: Any = ray_session.get_session()
    report = session.report
    with pytest.raises(ZeroDivisionError), timed_reports():
        session.report(1 / 0)
    assert session.report is report
    with timed_reports():
        session.report(3)
    assert told == [3]


def test_outside_of_tune_nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_session, "get_session", lambda: None)
    with timed_reports():
        pass
