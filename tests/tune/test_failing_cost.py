import logging
import math
from pathlib import Path

import pytest

from raycosttune import Allocation, NoPlan, WorkerHours
from raycosttune.tune.plan import TunePlan
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTune, journal


class Fickle:
    """Is a cost metric that fails in one way or another once it is told to."""

    unit = "EUR"
    fails = ""

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        if self.fails == "raises":
            message = "no price today"
            raise RuntimeError(message)
        return math.nan if self.fails == "returns NaN" else allocation.workers * seconds


@pytest.mark.parametrize("fails", ["raises", "returns NaN"])
def test_a_cost_that_fails_in_mid_sweep_ends_it_with_everything_kept(
    fails: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cost = Fickle()
    search = CostAwareSearch(GOAL, cost=cost, max_concurrent=2)
    ray_tune = FakeTune(search, tmp_path, SPACE)
    trials = [ray_tune.suggest(), ray_tune.suggest()]
    assert [ray_tune.start(), ray_tune.start()] == trials
    ray_tune.report(trials[0], accuracy=0.5, epoch=1)
    cost.fails = fails
    assert ray_tune.report(trials[1], accuracy=0.5, epoch=1) == "CONTINUE"
    assert ray_tune.report(trials[0], accuracy=0.95, epoch=2) == "STOP"
    assert ray_tune.report(trials[1], accuracy=0.95, epoch=2) == "STOP"
    with caplog.at_level(logging.WARNING):
        assert ray_tune.suggest() == "FINISHED"
    assert "the search ends: " in caplog.text
    assert "Fickle" in caplog.text
    assert isinstance(search.plan(), NoPlan)
    assert search.explain() == str(search.plan())
    rows = [row["row"] for row in journal(tmp_path)]
    assert (rows.count("report"), rows.count("ended")) == (4, 2)
    assert {record.ended.cause for record in search.session.records.values() if record.ended} == {
        "reached"
    }
    again = CostAwareSearch(GOAL, cost=WorkerHours())
    FakeTune(again, tmp_path / "other", SPACE)
    again.session.load_state(search.session.state())
    assert isinstance(again.plan(), TunePlan)
