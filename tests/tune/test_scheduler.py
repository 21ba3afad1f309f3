import logging
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import cloudpickle, tune
from ray.tune.experiment import Trial
from ray.tune.search.basic_variant import BasicVariantGenerator

from raycosttune.core.observation import EndCause
from raycosttune.errors import InvalidSpaceError, InvalidTrainableError
from raycosttune.results.replay import read_trials
from raycosttune.train import keys
from raycosttune.tune.resources import DriverResources, WorkerResources
from raycosttune.tune.scheduler import CostAwareScheduler
from raycosttune.tune.search import CostAwareSearch
from raycosttune.tune.sweep import Sweep
from tests.tune.fakes import GOAL, SPACE, FakeTrial, FakeTune, begin, journal, session_of, write_run

MEMORY = EndCause.OUT_OF_MEMORY
DEAD_WORKER = (
    "ray.exceptions.ActorDiedError: Worker unexpectedly exits with a connection error code 2. "
    "End of file. Some common causes include: (1) the process was killed by the OOM killer due "
    "to high memory usage, (2) ray stop --force was called, or (3) the worker crashed "
    "unexpectedly due to SIGSEGV or another unexpected error."
)


def meter_row(epoch: int, accuracy: float, **values: Any) -> dict[str, Any]:
    known = {keys.SECONDS: 1.0, keys.STARTUP_SECONDS: 0.0, keys.ATTEMPT: 1, keys.INDEX: epoch}
    return {**known, "epoch": epoch, "accuracy": accuracy, keys.CHECKPOINT: "/c", **values}


def test_the_journal_holds_all_that_happened(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    ray_tune.report(trial, accuracy=0.95, epoch=2)
    assert [row["row"] for row in journal(tmp_path)] == [
        "header",
        "asked",
        "report",
        "report",
        "ended",
    ]
    assert read_trials(journal(tmp_path)) == session_of(ray_tune).records


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("ValueError: no such layer", EndCause.FAILED),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", EndCause.OUT_OF_MEMORY),
        ("ray.exceptions.OutOfMemoryError: Task was killed", EndCause.OUT_OF_MEMORY),
        ("ray.exceptions.OutOfMemoryError: killed due to the node running low on memory", MEMORY),
        ("Worker exit type: NODE_OUT_OF_MEMORY", MEMORY),
        ("terminate called after throwing an instance of 'std::bad_alloc'", MEMORY),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 TiB", MEMORY),
        (DEAD_WORKER, EndCause.FAILED),
        ("", EndCause.FAILED),
    ],
)
def test_a_failed_trial_is_an_observation(tmp_path: Path, error: str, cause: EndCause) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    ray_tune.fail(trial, f"Traceback:\n{error}")
    ended = session_of(ray_tune).records[trial.trial_id].ended
    assert ended.cause is cause
    assert isinstance(ray_tune.suggest(), FakeTrial)


def test_a_retried_trial_begins_a_new_attempt(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    ray_tune.fail(trial, "the node is gone", again=True)
    ray_tune.start()
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    record = session_of(ray_tune).records[trial.trial_id]
    assert [(report.attempt, report.epoch) for report in record.reports] == [(1, 1.0), (2, 1.0)]
    assert record.is_live


def test_a_returned_function_has_finished_and_is_counted_once(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    ray_tune.finish(trial)
    record = session_of(ray_tune).records[trial.trial_id]
    assert len(record.reports) == 1
    assert record.ended.cause is EndCause.FINISHED


def test_a_checkpoint_of_tune_itself_is_kept(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.5, epoch=1, checkpoint_dir_name="checkpoint_000000")
    (report,) = session_of(ray_tune).records[trial.trial_id].reports
    assert report.checkpoint == str(tmp_path / trial.trial_id / "checkpoint_000000")


def test_a_loop_without_checkpoints_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    with caplog.at_level(logging.WARNING):
        ray_tune.report(trial, **{**meter_row(1, 0.1), keys.CHECKPOINT: None})
        ray_tune.report(trial, **{**meter_row(2, 0.2), keys.CHECKPOINT: None})
    assert len([r for r in caplog.records if "reports no checkpoint" in r.message]) == 1


def test_reports_that_tune_lost_are_filled_in_order(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, **meter_row(1, 0.1))
    write_run(tmp_path, trial.trial_id, [(1, 1, 0.1), (1, 2, 0.2), (1, 3, 0.3), (1, 4, 0.95)])
    ray_tune.report(trial, **meter_row(3, 0.3))
    record = session_of(ray_tune).records[trial.trial_id]
    assert [report.epoch for report in record.reports] == [1.0, 2.0, 3.0, 4.0]
    assert record.ended.cause is EndCause.REACHED


def test_a_report_lost_at_the_very_end_reaches_the_target(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, **meter_row(1, 0.1))
    write_run(tmp_path, trial.trial_id, [(1, 1, 0.1), (1, 2, 0.95)])
    ray_tune.finish(trial)
    record = session_of(ray_tune).records[trial.trial_id]
    assert record.ended.cause is EndCause.REACHED


def test_a_run_that_lost_its_journal_goes_on_counting_attempts(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, **meter_row(1, 0.1))
    ray_tune.fail(trial, "the node is gone", again=True)
    ray_tune.start()
    ray_tune.report(trial, **meter_row(1, 0.1))
    record = session_of(ray_tune).records[trial.trial_id]
    assert [report.attempt for report in record.reports] == [1, 2]


def test_a_pending_trial_of_someone_else_runs(tmp_path: Path) -> None:
    ray_tune, _ = begin(tmp_path)
    stranger = ray_tune.add(FakeTrial("x", {}, tmp_path))
    assert ray_tune.start() is stranger
    assert ray_tune.report(stranger, accuracy=1.0, epoch=1) == "CONTINUE"


def test_results_on_remote_storage_keep_the_journal_in_the_staging_folder(tmp_path: Path) -> None:
    ray_tune = FakeTune(CostAwareSearch(GOAL), tmp_path, SPACE)
    trial = FakeTrial("t1", ray_tune.searcher.suggest("t1") or {}, tmp_path)
    trial.storage.storage_filesystem.type_name = "s3"
    trial.storage.experiment_driver_staging_path = str(tmp_path / "staging")
    ray_tune.add(trial)
    assert journal(tmp_path / "staging")


def test_another_search_is_refused_in_words(tmp_path: Path) -> None:
    controller = SimpleNamespace(search_alg=BasicVariantGenerator())
    trial: Any = FakeTrial("x", {}, tmp_path)
    with pytest.raises(InvalidTrainableError, match="must be used with a CostAwareSearch"):
        CostAwareScheduler().on_trial_add(controller, trial)


def suggest_with_workers(folder: Path, workers: Any, resources: dict[str, float]) -> FakeTune:
    space = {"num_workers": workers, "batch_size": 32}
    ray_tune = FakeTune(CostAwareSearch(GOAL), folder, space)
    trial = FakeTrial("t1", ray_tune.searcher.suggest("t1") or {}, folder)
    trial.placement_group_factory = DriverResources(resources)
    ray_tune.add(trial)
    return ray_tune


def test_a_trial_that_the_cluster_cannot_hold_is_ended_before_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raycosttune.tune.setup.cluster_nodes", lambda: [{"CPU": 4.0}])
    ray_tune = suggest_with_workers(tmp_path, tune.choice([4, 1]), {"CPU": 2.0})
    (trial,) = ray_tune.trials
    assert trial.config["num_workers"] == 4
    assert ray_tune.start() is None
    assert trial.status == Trial.TERMINATED
    assert ray_tune.suggest("t2").config["num_workers"] == 1


def test_a_cluster_that_holds_no_worker_count_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raycosttune.tune.setup.cluster_nodes", lambda: [{"CPU": 4.0}])
    with pytest.raises(InvalidSpaceError, match="at most 2"):
        suggest_with_workers(tmp_path, 4, {"CPU": 2.0})
    with pytest.raises(InvalidSpaceError, match="must fit on a node"):
        suggest_with_workers(tmp_path, 4, {"CPU": 8.0})


def test_the_workers_of_the_trainable_are_adopted(tmp_path: Path) -> None:
    ray_tune = FakeTune(CostAwareSearch(GOAL), tmp_path, SPACE)
    config = ray_tune.searcher.suggest("t1") or {}
    trial = FakeTrial("t1", config, tmp_path)
    trial.placement_group_factory = DriverResources({"CPU": 2.0})
    ray_tune.add(trial)
    assert ray_tune.start() is trial
    assert list(session_of(ray_tune).records) == ["t1"]


def test_a_trainable_that_reads_another_key_than_the_search_writes_is_refused(
    tmp_path: Path,
) -> None:
    ray_tune = FakeTune(CostAwareSearch(GOAL), tmp_path, SPACE)
    trial = FakeTrial("t1", ray_tune.searcher.suggest("t1") or {}, tmp_path)
    trial.placement_group_factory = WorkerResources(1, {"CPU": 1.0}, "w")
    with pytest.raises(InvalidTrainableError, match='got "w" and "num_workers"'):
        ray_tune.add(trial)


def test_a_scheduler_comes_back_from_a_pickle() -> None:
    again = cloudpickle.loads(cloudpickle.dumps(CostAwareScheduler()))
    assert again.set_search_properties("loss", "min", stop={}) is True
    assert again.debug_string()


def test_a_trial_that_does_not_fit_beside_others_waits_for_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[str] = []
    monkeypatch.setattr(Sweep, "note_waiting", lambda _, trial_id: waiting.append(trial_id))
    ray_tune = FakeTune(CostAwareSearch(GOAL, max_concurrent=4), tmp_path, SPACE)
    first, second = ray_tune.suggest(), ray_tune.suggest()
    session = session_of(ray_tune)
    most = max(record.allocation.workers for record in session.live)
    session.space = replace(session.space, max_workers=most)
    ray_tune.start()
    assert waiting == []
    ray_tune.start()
    assert waiting == [second.trial_id]
    ray_tune.finish(first)
    ray_tune.start()
    assert waiting == [second.trial_id]


def test_nothing_is_paid_for_a_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray_tune = FakeTune(CostAwareSearch(GOAL), tmp_path, SPACE)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    trial = ray_tune.suggest()
    monkeypatch.setattr(time, "monotonic", lambda: now + 100)
    ray_tune.searcher.sweep.note_waiting(trial.trial_id)  # type: ignore[attr-defined]
    ray_tune.searcher.sweep.note_waiting("unknown")  # type: ignore[attr-defined]
    monkeypatch.setattr(time, "monotonic", lambda: now + 103)
    ray_tune.start()
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    (report,) = session_of(ray_tune).records[trial.trial_id].reports
    assert (report.seconds, report.startup_seconds) == (3.0, 2.0)


def test_a_name_of_a_checkpoint_that_is_none_ends_no_sweep(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    assert ray_tune.report(trial, accuracy=0.5, epoch=1, checkpoint_dir_name=1.5) == "CONTINUE"
