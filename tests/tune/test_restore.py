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
from ray.tune.experiment import Trial

from raycosttune.core.observation import EndCause, TrialRecord
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidSpaceError
from raycosttune.results.journal import read_journal
from raycosttune.results.rows import asked_row
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTrial, FakeTune, begin, journal, session_of, write_run


def restore(folder: Path, state: Path) -> FakeTune:
    """Goes on with a new search and scheduler, as Tuner.restore does."""
    search = CostAwareSearch(GOAL, max_concurrent=4)
    search.restore(str(state))
    return FakeTune(search, folder)


def test_no_ended_trial_works_again_after_a_restore(tmp_path: Path) -> None:
    ray_tune, (ended, running) = begin(tmp_path, trials=2)
    state = tmp_path / "state.json"
    ray_tune.searcher.save(str(state))
    ray_tune.report(running, accuracy=0.2, epoch=1)
    ray_tune.report(ended, accuracy=0.3, epoch=1)
    ray_tune.report(ended, accuracy=0.95, epoch=2)
    spent = session_of(ray_tune).spent
    again = restore(tmp_path, state)
    for old in (ended, running):
        again.add(FakeTrial(old.trial_id, old.config, tmp_path))
    chosen = again.start()
    assert chosen is not None
    assert chosen.trial_id == running.trial_id
    closed = again.trials[0]
    assert closed.status == Trial.TERMINATED
    assert closed.last_result["accuracy"] == 0.95
    assert closed.storage.trial_dir_name is not None
    assert session_of(again).spent == spent
    again.report(chosen, accuracy=0.1, epoch=1)
    record = session_of(again).records[running.trial_id]
    assert [(report.attempt, report.epoch) for report in record.reports] == [(1, 1.0), (2, 1.0)]


def test_a_trial_at_the_target_whose_end_was_lost_is_ended_unrun(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    state = tmp_path / "state.json"
    ray_tune.searcher.save(str(state))
    write_run(tmp_path, trial.trial_id, [(1, 1, 0.95)])
    again = restore(tmp_path, state)
    again.add(FakeTrial(trial.trial_id, trial.config, tmp_path))
    assert again.start() is None
    record = session_of(again).records[trial.trial_id]
    assert record.ended.cause is EndCause.REACHED
    assert record.ended.seconds == 0


def test_trials_that_tune_forgot_are_handed_out_again(tmp_path: Path) -> None:
    ray_tune, (known, ended, live) = begin(tmp_path, trials=3)
    state = tmp_path / "state.json"
    ray_tune.searcher.save(str(state))
    ray_tune.report(ended, accuracy=0.3, epoch=1)
    ray_tune.finish(ended)
    ray_tune.report(live, accuracy=0.2, epoch=1)
    for _ in range(2):  # killed again before Tune has saved the new ids
        again = restore(tmp_path, state)
        again.add(FakeTrial(known.trial_id, known.config, tmp_path))
        first, second = again.suggest("new-1"), again.suggest("new-2")
        assert [first.config, second.config] == [ended.config, live.config]
        again.start()
        assert first.status == Trial.TERMINATED
        assert second.status == Trial.PENDING
    again.start()
    again.report(second, accuracy=0.2, epoch=1)
    record = session_of(again).records[live.trial_id]
    assert [report.attempt for report in record.reports] == [1, 2]
    assert len(session_of(again).records) == 3


def test_a_run_is_resumed_by_the_same_call_which_brings_the_space_again(tmp_path: Path) -> None:
    """`tune.run(resume=True)`, and `Tuner.restore(param_space=...)`, hand out the space first."""
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.2, epoch=1)
    state = tmp_path / "state.json"
    ray_tune.searcher.save(str(state))
    search = CostAwareSearch(GOAL, max_concurrent=4)
    again = FakeTune(search, tmp_path, SPACE)
    search.restore(str(state))
    restored = again.add(FakeTrial(trial.trial_id, trial.config, tmp_path))
    assert session_of(again).records == session_of(ray_tune).records
    assert again.start() is restored
    assert again.report(restored, accuracy=0.95, epoch=2) == "STOP"
    assert len(session_of(again).records) == 1


def test_a_run_that_left_no_snapshot_begins_anew_and_keeps_its_journal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begin(tmp_path)
    unspaced = CostAwareSearch(GOAL)
    with pytest.raises(InvalidSpaceError, match=r"Tuner\.restore too, as param_space"):
        unspaced.suggest("t9")
    again = FakeTune(CostAwareSearch(GOAL), tmp_path, SPACE)
    assert isinstance(again.suggest("t9"), FakeTrial)
    assert "of an earlier sweep" in caplog.text


def test_a_damaged_state_is_rebuilt_from_the_journal(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.95, epoch=1)
    (tmp_path / "state.json").write_text("{")
    again = restore(tmp_path, tmp_path / "state.json")
    again.search_alg._experiment = SimpleNamespace(spec={"config": SPACE})
    again.add(FakeTrial(trial.trial_id, trial.config, tmp_path))
    assert session_of(again).records == session_of(ray_tune).records
    assert again.start() is None


def test_an_unreadable_journal_is_kept_and_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "raycosttune" / "journal.jsonl"
    path.parent.mkdir()
    path.write_text('{"row": "header", "version": 99}\n')
    with caplog.at_level(logging.ERROR):
        begin(tmp_path)
    assert "99" in caplog.text
    assert [row["row"] for row in journal(tmp_path)] == ["header", "asked"]
    assert path.with_name("journal.jsonl.kept-1").exists()


def test_the_journal_of_an_earlier_sweep_in_the_same_folder_is_kept_aside(tmp_path: Path) -> None:
    begin(tmp_path)
    ray_tune = FakeTune(CostAwareSearch(GOAL, max_concurrent=4), tmp_path, SPACE)
    trial = ray_tune.suggest("another")
    assert list(session_of(ray_tune).records) == ["another"]
    assert [row.get("trial_id") for row in journal(tmp_path)] == [None, "another"]
    assert (tmp_path / "raycosttune" / "journal.jsonl.kept-1").exists()
    ray_tune.start()
    assert ray_tune.report(trial, accuracy=0.95, epoch=1) == "STOP"


def test_two_sweeps_at_once_in_one_folder_keep_their_journals_apart(tmp_path: Path) -> None:
    one, (trial,) = begin(tmp_path)
    other = FakeTune(CostAwareSearch(GOAL), tmp_path, SPACE)
    beside = other.suggest("another")
    other.start()
    one.report(trial, accuracy=0.95, epoch=1)
    other.report(beside, accuracy=0.5, epoch=1)
    rows = read_journal(tmp_path / "raycosttune" / "journal.jsonl.kept-1")
    assert [row["row"] for row in rows] == ["header", "asked", "report", "ended"]
    assert [row.get("trial_id") for row in journal(tmp_path)] == [None, "another", "another"]


def test_a_journal_is_this_sweep_s_where_it_knows_the_trial(tmp_path: Path) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.95, epoch=1)
    search = CostAwareSearch(GOAL)
    again = FakeTune(search, tmp_path, SPACE)
    again.add(FakeTrial(trial.trial_id, trial.config, tmp_path))
    assert again.start() is None
    assert search.session.records == session_of(ray_tune).records


@pytest.mark.parametrize(
    ("status", "cause"),
    [(Trial.TERMINATED, EndCause.FINISHED), (Trial.ERROR, EndCause.FAILED)],
)
def test_an_end_that_only_tune_knows_is_taken_from_it(
    tmp_path: Path, status: str, cause: EndCause
) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.2, epoch=1)
    state = tmp_path / "state.json"
    ray_tune.searcher.save(str(state))
    (tmp_path / "raycosttune" / "journal.jsonl").unlink()
    again = restore(tmp_path, state)
    over = FakeTrial(trial.trial_id, trial.config, tmp_path)
    over.status = status
    over.last_result = {"training_iteration": 2, "time_this_iter_s": 1.0, "epoch": 2}
    again.add(over)
    record = session_of(again).records[trial.trial_id]
    assert [report.epoch for report in record.reports] == [1.0, 2.0]
    assert record.ended.cause is cause
    assert record.ended.seconds == 0
    assert isinstance(again.suggest("t2"), FakeTrial)


ASKED = asked_row(TrialRecord("z", Allocation(1, 32), {}, 9))
WRONG: dict[str, tuple[object, ...]] = {
    "workers": (-1, 10**30, 3, math.inf),
    "batch_size": (77, "x"),
    "recipe": ({"other": 1}, [], "x"),
}
DAMAGED: list[dict[str, Any]] = [
    {"row": "renamed"},
    {"row": "renamed", "trial_id": "a", "record": ["b"]},
    {"row": "asked"},
    *({**ASKED, key: value} for key, values in WRONG.items() for value in values),
    {"row": "report", "trial_id": "t1", "epoch": 1, "attempt": math.inf},
    {"row": "ended", "trial_id": "t1", "cause": "finished", "reason": "", "seconds": 10**400},
]


@pytest.mark.parametrize(
    "damaged",
    [*map(json.dumps, DAMAGED), "[" * 200_000, "not JSON"],
    ids=lambda line: line[:80],
)
def test_a_damaged_row_does_no_harm_to_a_restored_sweep(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: str
) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    state = tmp_path / "state.json"
    ray_tune.searcher.save(str(state))
    ray_tune.report(trial, accuracy=0.2, epoch=1)
    path = tmp_path / "raycosttune" / "journal.jsonl"
    *known, last = path.read_text().splitlines()
    path.write_text("\n".join([*known, damaged, last, damaged]) + "\n")
    again = restore(tmp_path, state)
    again.add(FakeTrial(trial.trial_id, trial.config, tmp_path))
    assert session_of(again).records == session_of(ray_tune).records
    assert "left out" in caplog.text
    assert again.start() is not None
    again.report(again.trials[0], accuracy=0.95, epoch=2)
    search: Any = again.searcher
    assert search.plan().config["num_workers"] in (1, 2)
    assert search.explain()


def test_downtime_does_not_count_and_a_lost_state_takes_no_time_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline of a sweep is of the seconds that it ran, as Tune counts its own budget."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    ray_tune, (trial,) = begin(tmp_path)
    now[0] += 60.0
    ray_tune.report(trial, accuracy=0.2, epoch=1)
    now[0] += 10_000.0  # the machine is down
    again = restore(tmp_path, tmp_path / "nothing")
    again.search_alg._experiment = SimpleNamespace(spec={"config": SPACE})
    again.add(FakeTrial(trial.trial_id, trial.config, tmp_path))
    assert session_of(again).elapsed_seconds == pytest.approx(60.0)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_kept_aside_and_a_journal_begun(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "raycosttune" / "journal.jsonl"
    path.parent.mkdir()
    make(path)
    begin(tmp_path)
    assert [row["row"] for row in journal(tmp_path)] == ["header", "asked"]
    assert path.with_name("journal.jsonl.kept-1").exists()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("space", "paths"), {}),
        (("space", "workers"), ["x"]),
        (("session", "records", 0, "allocation", "workers"), "x"),
        (("session", "records", 0, "reports", 0, "epoch"), "one"),
        (("session", "records", 0, "reports", 0, "seconds"), math.nan),
        (("session", "records", 0, "reports", 0, "value"), "high"),
    ],
)
def test_a_state_with_a_wrong_value_is_kept_aside_and_rebuilt_from_the_journal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, path: tuple[Any, ...], value: object
) -> None:
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=0.2, epoch=1)
    state = tmp_path / "state.json"
    ray_tune.searcher.save(str(state))
    held = data = json.loads(state.read_text())
    *parents, name = path
    for key in parents:
        held = held[key]
    held[name] = value
    del data["sha256"]
    state.write_text(json.dumps(data))
    again = restore(tmp_path, state)
    again.search_alg._experiment = SimpleNamespace(spec={"config": SPACE})
    again.add(FakeTrial(trial.trial_id, trial.config, tmp_path))
    assert session_of(again).records == session_of(ray_tune).records
    assert "It is kept as" in caplog.text
    assert (tmp_path / "state.json.kept-1").exists()
