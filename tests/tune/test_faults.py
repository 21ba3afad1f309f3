"""What may go wrong under a sweep: what was measured stays, what was paid counts, it goes on."""

import errno
import json
import logging
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import tune

from raycosttune.core.observation import EndCause
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTrial, FakeTune, begin, journal, session_of

FAULTS = {
    "a worker died": "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing",
    "a node died": "ray.exceptions.NodeDiedError: The node of this actor has died",
    "a spot node was preempted": "ActorDiedError: The actor's node was preempted.",
    "nobody answered": "RuntimeError: Timed out waiting 30000ms for recv operation to complete",
    "a collective hung": "torch.distributed.DistBackendError: Watchdog caught collective timeout",
    "a checkpoint can't be read": "InvalidStateError: the checkpoint can't be read (bad magic)",
    "the trial's disk is full": "OSError: [Errno 28] No space left on device",
}


@pytest.mark.parametrize("text", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("is_retried", [False, True])
def test_a_fault_costs_what_it_cost_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, is_retried: bool
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.3, epoch=1)
    now[0] += 7.0
    ray_tune.fail(trial, f"Traceback:\n{text}", again=is_retried)
    record = session_of(ray_tune).records[trial.trial_id]
    assert [report.value for report in record.reports] == [0.3]
    if is_retried:
        now[0] += 3.0
        ray_tune.start()
        ray_tune.report(trial, accuracy=0.95, epoch=1)
        assert [report.attempt for report in record.reports] == [1, 2]
        assert record.seconds == pytest.approx(1.0 + 7.0 + 3.0)
        assert record.ended.cause is EndCause.REACHED
    else:
        assert record.ended.cause is EndCause.FAILED
        assert record.ended.reason == text
        assert record.seconds == pytest.approx(1.0 + 7.0)
        assert isinstance(ray_tune.suggest(), FakeTrial)
    assert session_of(ray_tune).spent > 0


def restore(folder: Path, state: Path, space: dict[str, Any]) -> FakeTune:
    search = CostAwareSearch(GOAL, max_concurrent=4)
    search.restore(str(state))
    ray_tune = FakeTune(search, folder)
    ray_tune.search_alg._experiment = SimpleNamespace(spec={"config": space})
    return ray_tune


@pytest.mark.parametrize("has_state", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        "OSError: [Errno 12] Cannot allocate memory",
    ],
)
def test_local_batches_that_ran_out_of_memory_fall_in_a_restored_sweep_too(
    tmp_path: Path, text: str, has_state: bool
) -> None:
    space = {"num_workers": tune.choice([1]), "batch_size": tune.choice([32, 64, 128, 256])}
    ray_tune = FakeTune(CostAwareSearch(GOAL, max_concurrent=4), tmp_path, space)
    trials = []
    for _ in range(2):
        trials.append(ray_tune.suggest())
        ray_tune.start()
        ray_tune.fail(trials[-1], text)
    records = [session_of(ray_tune).records[trial.trial_id] for trial in trials]
    assert {record.ended.cause for record in records} == {EndCause.OUT_OF_MEMORY}
    largest = max(record.allocation.local_batch for record in records)
    left = set(session_of(ray_tune).known.cells)
    assert all(cell.local_batch < largest for cell in left)
    state = tmp_path / "state.json"
    if has_state:
        ray_tune.searcher.save(str(state))
        (tmp_path / "raycosttune" / "journal.jsonl").unlink()
    again = restore(tmp_path, state, space)
    for trial in trials:
        again.add(FakeTrial(trial.trial_id, trial.config, tmp_path))
    assert set(session_of(again).known.cells) == left


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "nan"])
def test_a_loss_that_is_no_number_is_paid_for_and_never_the_best(
    tmp_path: Path, value: object
) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    assert ray_tune.report(trial, accuracy=value, epoch=1) == "CONTINUE"
    ray_tune.report(trial, accuracy=0.95, epoch=2)
    record = session_of(ray_tune).records[trial.trial_id]
    assert [report.value for report in record.reports] == [None, 0.95]
    assert record.ended.cause is EndCause.REACHED
    text = (tmp_path / "raycosttune" / "journal.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text


def test_a_clock_that_is_set_back_and_forth_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jumps = iter([0.0, 1e9, 5.0, -1e9, 2e9] * 1000)
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    ray_tune, (trial,) = begin(tmp_path)
    for epoch in range(1, 6):
        ray_tune.report(trial, accuracy=0.1, epoch=epoch)
    session = session_of(ray_tune)
    record = session.records[trial.trial_id]
    assert [report.epoch for report in record.reports] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert record.seconds < 60
    assert 0 <= session.elapsed_seconds < 60


def test_a_full_disk_loses_nothing_once_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    sync = os.fsync

    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with caplog.at_level(logging.WARNING):
        ray_tune.report(trial, accuracy=0.2, epoch=1)
        ray_tune.report(trial, accuracy=0.3, epoch=2)
        ray_tune.searcher.save(str(tmp_path / "state.json"))
    assert caplog.text.count("can't be written") == 1
    assert [row["row"] for row in journal(tmp_path)] == ["header", "asked"]
    assert not (tmp_path / "state.json").exists()
    monkeypatch.setattr(os, "fsync", sync)
    ray_tune.report(trial, accuracy=0.95, epoch=3)
    assert [row["row"] for row in journal(tmp_path)[2:]] == ["report"] * 3 + ["ended"]
    again = restore(tmp_path, tmp_path / "state.json", SPACE)
    again.add(FakeTrial(trial.trial_id, trial.config, tmp_path))
    assert session_of(again).records == session_of(ray_tune).records


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-25])


def spoil(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 9)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def renew(path: Path) -> None:
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))


def replace(path: Path) -> None:
    path.unlink()
    path.mkdir()


def hide(path: Path) -> None:
    path.unlink()


def refuse(path: Path) -> None:
    """Stands for a file that may not be read; a superuser may read every file."""
    path.unlink()
    path.symlink_to("/proc/self/mem")


DAMAGES: tuple[Callable[[Path], None], ...] = (cut, spoil, empty, renew, replace, hide, refuse)


@pytest.mark.parametrize("of_state", DAMAGES)
@pytest.mark.parametrize("of_journal", [*DAMAGES, None])
def test_whatever_is_damaged_a_restore_never_raises_and_keeps_what_was_paid(
    tmp_path: Path,
    of_state: Callable[[Path], None],
    of_journal: Callable[[Path], None] | None,
) -> None:
    """A raise would make Tune start the experiment over, in silence."""
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.2, epoch=1)
    ray_tune.report(trial, accuracy=0.3, epoch=2)
    paid = session_of(ray_tune).spent
    log = tmp_path / trial.trial_id / "result.json"
    log.parent.mkdir()
    lines = [
        {"training_iteration": k, "time_this_iter_s": 1.0, "epoch": k, "accuracy": value}
        for k, value in ((1, 0.2), (2, 0.3))
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    state = tmp_path / "state.json"
    ray_tune.searcher.save(str(state))
    of_state(state)
    if of_journal is not None:
        of_journal(tmp_path / "raycosttune" / "journal.jsonl")
    again = restore(tmp_path, state, SPACE)
    restored = again.add(FakeTrial(trial.trial_id, trial.config, tmp_path))
    record = session_of(again).records[trial.trial_id]
    known = session_of(ray_tune).records[trial.trial_id]
    assert record.allocation == known.allocation
    lost = of_journal is cut  # the last report, of which the journal holds a half
    assert [report.value for report in record.reports] == [0.2, 0.3][: 1 if lost else 2]
    assert session_of(again).spent >= paid * (0.5 if lost else 1)
    assert again.start() is restored
    assert again.report(restored, accuracy=0.95, epoch=3) == "STOP"
