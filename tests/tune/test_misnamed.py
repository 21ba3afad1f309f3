"""Restored trials that report the metric by another name."""

from pathlib import Path

import pytest
from ray.tune.experiment import Trial

from raycosttune.core.observation import EndCause
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, FakeTune, begin


@pytest.mark.parametrize("status", [Trial.PENDING, Trial.TERMINATED])
def test_a_restored_run_that_says_no_more_was_likely_misnamed_too(
    tmp_path: Path, status: str
) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, acc=0.99, epoch=1)
    ray_tune.report(trial, acc=0.99, epoch=2)
    ray_tune.searcher.save(str(tmp_path / "state.json"))
    search = CostAwareSearch(GOAL)
    search.restore(str(tmp_path / "state.json"))
    again = FakeTune(search, tmp_path)
    trial.status = status
    again.add(trial)
    if status == Trial.PENDING:
        assert again.start() is trial
        again.finish(trial)
    (record,) = search.session.records.values()
    assert record.ended is not None
    assert record.ended.cause is EndCause.MISNAMED
    assert "it reported acc, epoch; perhaps metric='acc' is meant" in record.ended.reason
    assert [report.epoch for report in record.reports] == [1.0, 2.0]
    assert search.session.spent == pytest.approx(record.seconds / 3600 * record.allocation.nodes)
    assert again.suggest("t2") == "FINISHED"


def test_a_restored_run_that_has_reported_nothing_yet_is_said_to_have_said_nothing(
    tmp_path: Path,
) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.searcher.save(str(tmp_path / "state.json"))
    search = CostAwareSearch(GOAL)
    search.restore(str(tmp_path / "state.json"))
    again = FakeTune(search, tmp_path)
    trial.status, trial.last_result = Trial.PENDING, {"trial_id": trial.trial_id}
    again.add(trial)
    assert again.start() is trial
    again.report(trial, training_iteration=1, acc=0.99, epoch=1)
    again.finish(trial)
    (record,) = search.session.records.values()
    assert record.ended is not None
    assert record.ended.cause is EndCause.MISNAMED
    assert len(record.reports) == 1
