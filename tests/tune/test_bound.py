import logging
from dataclasses import replace
from pathlib import Path

import pytest

from raycosttune import Bound, WorkerHours
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTune, journal

BOUND = replace(GOAL, constraints=(Bound(metric="val/latency", at_most=20),))


def test_a_trial_runs_on_until_a_bounded_metric_keeps_to_its_bound(tmp_path: Path) -> None:
    ray_tune = FakeTune(CostAwareSearch(BOUND, cost=WorkerHours()), tmp_path, SPACE)
    trial = ray_tune.suggest()
    ray_tune.start()
    assert ray_tune.report(trial, accuracy=0.95, epoch=1, **{"val/latency": 30}) == "CONTINUE"
    assert ray_tune.report(trial, accuracy=0.95, epoch=2, **{"val/latency": 20}) == "STOP"
    reports = [row for row in journal(tmp_path) if row["row"] == "report"]
    assert [row["others"] for row in reports] == [[["val/latency", 30]], [["val/latency", 20]]]
    assert journal(tmp_path)[0]["goal"]["constraints"][0]["metric"] == "val/latency"


def test_a_bounded_metric_that_is_missing_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ray_tune = FakeTune(CostAwareSearch(BOUND, cost=WorkerHours()), tmp_path, SPACE)
    trial = ray_tune.suggest()
    ray_tune.start()
    with caplog.at_level(logging.WARNING):
        for epoch in (1, 2):
            assert ray_tune.report(trial, accuracy=0.95, epoch=epoch) == "CONTINUE"
    warned = [text for text in caplog.messages if "which the goal bounds" in text]
    assert len(warned) == 1
    assert "'val/latency'" in warned[0]
