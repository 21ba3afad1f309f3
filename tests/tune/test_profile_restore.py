import json
from pathlib import Path

import pytest
from ray.tune.experiment import Trial

from raycosttune.core.observation import EndCause
from raycosttune.core.plan import NoPlan
from raycosttune.core.profile import ProfileRecord
from raycosttune.results.journal import Journal
from raycosttune.results.rows import run_header_row
from raycosttune.train.keys import PROFILE
from raycosttune.tune.past import Past
from tests.tune.fakes import FakeTrial, FakeTune, journal, session_of
from tests.tune.profiles import (
    SPACE,
    begin,
    make_search,
    profile_of,
    row_of,
    rows_of,
    tell,
    tune_with,
)


def saved(ray_tune: FakeTune, folder: Path) -> Path:
    state = folder / "searcher-state-1.pkl"
    ray_tune.searcher.save(str(state))
    return state


def restore(folder: Path, state: Path) -> FakeTune:
    """Goes on with a new search and scheduler, as Tuner.restore does."""
    search = make_search()
    search.restore(str(state))
    return tune_with(search, folder, None)


def add(ray_tune: FakeTune, old: FakeTrial, status: str = Trial.PENDING) -> FakeTrial:
    trial = FakeTrial(old.trial_id, old.config, ray_tune.folder)
    trial.placement_group_factory = old.placement_group_factory
    trial.status = status
    trial.last_result = old.last_result if status != Trial.PENDING else {}
    return ray_tune.add(trial)


def write_result(folder: Path, trial: FakeTrial) -> None:
    """Writes what the profile's own driver writes before it tells Tune."""
    own = Journal(folder / "raycosttune" / "trials" / f"{trial.trial_id}.jsonl")
    own.append(run_header_row(trial.trial_id), row_of(trial))


def is_whole(record: ProfileRecord) -> bool:
    """Tells whether a profile timed all that it was asked for, more than one cell."""
    return set(record.epoch_seconds) == set(record.profile.cells) and len(record.profile.cells) > 1


@pytest.mark.parametrize("is_told", [True, False])
def test_a_profile_that_finished_is_never_run_again(tmp_path: Path, is_told: bool) -> None:
    ray_tune, trial = begin(tmp_path)
    state = saved(ray_tune, tmp_path)
    write_result(tmp_path, trial)
    if is_told:
        tell(ray_tune, trial)
    again = restore(tmp_path, state)
    old = add(again, trial)
    assert again.start() is None
    assert old.status == Trial.TERMINATED
    record = profile_of(again, trial)
    assert record.ended is None
    assert is_whole(record)
    assert session_of(again).spent > 0
    assert len(rows_of(tmp_path, "profiled")) == 1
    assert again.suggest("new").trial_id == "new"


@pytest.mark.parametrize("has_state", [True, False])
def test_a_profile_that_was_running_runs_again(tmp_path: Path, has_state: bool) -> None:
    ray_tune, trial = begin(tmp_path)
    state = saved(ray_tune, tmp_path)
    if not has_state:
        state.write_text("{")
    again = restore(tmp_path, state)
    if not has_state:
        again.searcher.set_search_properties(None, None, SPACE)
    add(again, trial)
    assert again.suggest("new") is None
    chosen = again.start()
    assert chosen is not None
    assert chosen.trial_id == trial.trial_id
    tell(again, chosen)
    assert is_whole(profile_of(again, trial))
    assert len(rows_of(tmp_path, "profile")) == 1


def test_a_running_profile_that_tune_forgot_is_handed_out_again(tmp_path: Path) -> None:
    ray_tune, first = begin(tmp_path)
    tell(ray_tune, first)
    ray_tune.finish(first)
    run = ray_tune.suggest()
    ray_tune.start()
    for epoch in range(1, 9):
        ray_tune.report(run, epoch=epoch, accuracy=0.91 - 0.8 * 0.5**epoch, time_this_iter_s=1.0)
    assert run.status == Trial.TERMINATED
    state = saved(ray_tune, tmp_path)
    second = ray_tune.suggest()
    assert PROFILE in second.config
    for _ in range(2):  # killed again before Tune has saved the new id
        again = restore(tmp_path, state)
        for trial in (first, run):
            add(again, trial, Trial.TERMINATED)
        new: FakeTrial = again.suggest("new")
        assert new.config == second.config
    again.start()
    assert new.status == Trial.RUNNING
    tell(again, new)
    again.finish(new)
    assert not session_of(again).live_profiles
    assert set(session_of(again).profiles) == {first.trial_id, second.trial_id}
    (*_, last) = rows_of(tmp_path, "profiled")
    assert last["trial_id"] == second.trial_id


def test_a_result_that_only_tune_knows_is_taken_from_it(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path)
    state = saved(ray_tune, tmp_path)
    trial.last_result = {PROFILE: json.dumps(row_of(trial)), "training_iteration": 1}
    again = restore(tmp_path, state)
    add(again, trial, Trial.TERMINATED)
    assert is_whole(profile_of(again, trial))


def test_a_failure_that_only_tune_knows_ends_the_profile(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path)
    again = restore(tmp_path, saved(ray_tune, tmp_path))
    add(again, trial, Trial.ERROR)
    ended = profile_of(again, trial).ended
    assert ended is not None
    assert ended.cause is EndCause.FAILED


def test_state_and_journal_hold_every_profile(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path)
    ray_tune.fail(trial, "RuntimeError: a worker died")
    second = ray_tune.suggest()
    ray_tune.start()
    tell(ray_tune, second, failed={64: ("no", False)})
    profiles = session_of(ray_tune).profiles
    assert len(profiles) == 2
    again = restore(tmp_path, saved(ray_tune, tmp_path))
    assert session_of(again).profiles == profiles
    for name in ("two", "three"):  # all of it is written, and read, in a new folder
        (tmp_path / name).mkdir()
    moved = FakeTune(again.searcher, tmp_path / "two")
    add(moved, second, Trial.TERMINATED)
    rows = rows_of(tmp_path / "two", "profile", "profiled", "ended")
    assert [row["row"] for row in rows] == ["profile", "ended", "profile", "profiled"]
    fresh = tune_with(make_search(), tmp_path / "two")
    add(fresh, second)
    assert session_of(fresh).profiles == profiles
    assert session_of(fresh).spent == session_of(ray_tune).spent


def test_a_restored_run_knows_its_profiles_before_it_goes_on(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path)
    saved(ray_tune, tmp_path)
    write_result(tmp_path, trial)
    search = make_search()
    search.past = Past(tmp_path, {trial.trial_id: trial.config})
    before = journal(tmp_path)
    plan = search.plan()
    assert isinstance(plan, NoPlan)
    assert plan.spent > 0
    assert journal(tmp_path) == before
