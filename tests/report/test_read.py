import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from raycosttune.core.cost import NodeHours
from raycosttune.core.goal import Goal
from raycosttune.core.observation import Report
from raycosttune.errors import InvalidCostError, InvalidStateError
from raycosttune.report import read_sweep, sweep_of, to_data
from raycosttune.report.run import read_run
from raycosttune.report.view import Status
from raycosttune.results.header import header_row
from raycosttune.results.journal import Journal
from tests.report.sweeps import GOAL, KINDS, SPACE, broken_off, empty, finished, running


def test_a_finished_sweep_shows_its_plan_and_every_trial(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path / "mine"))
    assert (view.name, view.status, view.note) == (
        "mine",
        Status.FINISHED,
        "no further trial pays",
    )
    assert view.plan is not None
    assert view.plan.config == {"workers": 1, "batch_size": 32, "lr": 0.1}
    assert [trial.end for trial in view.trials] == [
        "reached",
        "stopped",
        "failed",
        "out_of_memory",
        "reached",
    ]
    assert view.trials[2].reason == "ValueError: no"
    assert view.trials[0].why == "is the cheapest guess"
    assert view.goal == GOAL
    assert view.notes[0] == "ended: no further trial pays"


def test_what_is_spent_is_what_the_trials_and_profiles_cost(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    trials = math.fsum(trial.cost for trial in view.trials)
    assert view.spent == pytest.approx(trials + view.profile_cost)
    assert view.profile_cost == pytest.approx(2 * 20 / 3600)
    # a on 2 workers for 16 s, b on 1 for 16 s, c on 4 for 7 s, d on 4 for 14 s, e on 1 for 22 s
    assert trials * 3600 == pytest.approx(2 * 16 + 16 + 4 * 7 + 4 * 14 + 22)


def test_cells_have_bounds_about_what_is_likely(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    assert len(view.cells) == 6
    for cell in view.cells:
        for value in (cell.epoch_seconds, cell.cost, cell.seconds):
            assert value is not None
            assert value.low <= value.mid <= value.high
    assert {(c.workers, c.batch_size) for c in view.cells if c.is_timed} == {
        (1, 32),
        (1, 64),
        (2, 32),
        (4, 32),
    }
    assert {(c.workers, c.batch_size) for c in view.cells if c.is_measured} >= {(1, 32), (2, 32)}


def test_the_front_is_of_configurations_that_none_beats(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    best = [choice for choice in view.choices if choice.is_best]
    assert best
    for choice in best:
        assert not any(
            other.deadline < choice.deadline and other.cost < choice.cost for other in view.choices
        )
    assert [choice.is_plan for choice in view.choices].count(True) == 1


def test_workers_are_shown_where_they_report(tmp_path: Path) -> None:
    trials = read_sweep(finished(tmp_path)).trials
    (told,) = [trial for trial in trials if trial.measured is not None]
    assert told.trial_id == "a"
    measured = told.measured
    assert measured is not None
    assert list(measured.epochs) == [1, 2, 3]
    assert list(measured.shares[0]) == [16, 16]
    assert list(measured.compute_seconds[0]) == [1.5, 0.75]


def test_a_running_trial_counts_what_its_own_journal_is_ahead(tmp_path: Path) -> None:
    view = read_sweep(running(tmp_path))
    assert (view.status, view.note) == (Status.RUNNING, "1 trial running")
    assert view.trials[1].is_running
    assert view.trials[1].values == (0.3, 0.5, 0.6)
    assert view.trials[1].expected is not None
    assert view.trials[1].expected >= 3


def test_a_trial_that_was_moved_names_its_workers_in_turn(tmp_path: Path) -> None:
    session = read_run(running(tmp_path)).session
    session.tell("b", Report(4.0, 0.7, 2.0, workers=2))
    session.tell("b", Report(5.0, 0.8, 2.0, workers=1))
    assert [trial.what for trial in sweep_of(session).trials] == [
        "2 workers, batch 32",
        "1 worker, batch 64, then 2 workers, then 1 worker",
    ]


def test_a_sweep_that_nobody_writes_to_is_broken_off(tmp_path: Path) -> None:
    view = read_sweep(broken_off(tmp_path))
    assert view.status is Status.BROKEN_OFF
    assert re.match(r"1 trial without an end, and nothing was written for \d+ days$", view.note)
    assert (view.trials[1].end, view.trials[1].reason) == ("broken_off", "the sweep broke off")
    assert view.plan is not None


def test_an_empty_sweep_says_so(tmp_path: Path) -> None:
    view = read_sweep(empty(tmp_path))
    assert (view.status, view.trials, view.plan) == (Status.EMPTY, (), None)
    assert view.summary.startswith("no plan: no trial has started")
    assert len(view.cells) == 6


@pytest.mark.parametrize("write", KINDS)
def test_a_view_is_json(write: object, tmp_path: Path) -> None:
    assert callable(write)
    data = to_data(read_sweep(write(tmp_path)))
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_reading_changes_nothing_on_disk(tmp_path: Path) -> None:
    finished(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    read_sweep(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_an_older_journal_shows_the_cells_that_it_tried(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path, is_timed=False))
    assert not view.is_timed
    assert {cell.workers for cell in view.cells} == {1, 2, 4}
    assert view.elapsed_seconds == pytest.approx(20 + 16 + 16 + 7 + 14 + 22)
    assert view.plan is not None


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidStateError, match=r"must have a journal, found none @ .*Name the"):
        read_sweep(tmp_path)
    (tmp_path / "journal.jsonl").write_text("")
    with pytest.raises(InvalidStateError, match="got an empty file"):
        read_sweep(tmp_path / "journal.jsonl")


def test_a_cost_of_the_user_s_own_must_be_given(tmp_path: Path) -> None:
    Journal(tmp_path / "raycosttune" / "journal.jsonl").append(header_row(GOAL, "EUR", SPACE))
    with pytest.raises(InvalidCostError, match=r"was scored in EUR.*--cost module:Name"):
        read_sweep(tmp_path)
    assert read_sweep(tmp_path, NodeHours()).unit == "node-hours"


def test_damaged_rows_are_left_out(tmp_path: Path) -> None:
    finished(tmp_path)
    journal = tmp_path / "raycosttune" / "journal.jsonl"
    with journal.open("a") as file:
        file.write('{"row": "asked", "trial_id": "z"}\n{"row": "profile", "trial_id": "y"}\n')
    assert len(read_sweep(tmp_path).trials) == 5


def test_a_goal_to_fall_to_is_read(tmp_path: Path) -> None:
    goal = replace(GOAL, metric="loss", mode="min", target=0.1)
    Journal(tmp_path / "raycosttune" / "journal.jsonl").append(
        header_row(goal, "node-hours", SPACE)
    )
    assert read_sweep(tmp_path).goal == Goal(**vars(goal))
