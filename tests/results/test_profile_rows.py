import json
import logging
from typing import Any

import pytest

from raycosttune.core.abilities import Abilities
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended
from raycosttune.core.profile import Profile, Profiled
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.results.replay import merge_rows, read_run_profile, read_trials
from raycosttune.results.rows import (
    Row,
    failed_cells,
    observation_row,
    profile_row,
    profiled_row,
    read_profile,
    read_profiled,
)

CELL, OTHER = Allocation(1, 32, 1), Allocation(1, 64, 1)
SHOWN = Profiled({CELL: 2.0}, 20.0, 12.0)
ROW = profiled_row("a", SHOWN, {OTHER: {"reason": "no memory", "out_of_memory": True}})


def make_session() -> Session:
    goal = Goal(metric="accuracy", mode="max", target=0.9)
    space = Space((1, 2), (32, 64))
    return Session(space, goal, abilities=Abilities(profile=True), clock=lambda: 0.0)


def test_rows_of_a_profile_come_back_from_json() -> None:
    session = make_session()
    assert isinstance(session.ask("a"), Profile)
    row = json.loads(json.dumps(profile_row(session.profiles["a"])))
    assert read_profile(row) == session.profiles["a"]
    assert read_profiled(json.loads(json.dumps(ROW))).epoch_seconds == SHOWN.epoch_seconds
    assert [cell["reason"] for cell in failed_cells(ROW)] == ["no memory"]
    assert failed_cells(profiled_row("a", SHOWN)) == []


def test_a_session_learns_profiles_once() -> None:
    told = make_session()
    told.ask("a")
    told.tell("a", end := Ended(EndCause.FAILED, "it died", 7.0))
    told.ask("b")
    rows = [profile_row(told.profiles["a"]), observation_row("a", end)]
    rows += [profile_row(told.profiles["b"]), {**ROW, "trial_id": "b"}]
    told.tell_profile("b", read_profiled(ROW))
    read = make_session()
    assert merge_rows(read, rows) == 2
    assert merge_rows(read, rows) == 0
    assert read.profiles == told.profiles
    assert read.spent == told.spent > 0
    assert read_trials(rows) == {}


def test_a_profile_of_another_space_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    told, read = make_session(), make_session()
    told.ask("a")
    assert merge_rows(read, [profile_row(told.profiles["a"]), ROW], lambda _: False) == 0
    assert read.profiles == {}
    assert "isn't of this search space" in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        {"cells": None},
        {"cells": [1]},
        {"cells": 3},
        {"cells": [{"workers": 1}]},
        {"seconds": None},
        {"seconds": "20"},
        {"startup_seconds": None},
    ],
)
def test_a_result_that_cannot_be_read_is_left_out(
    change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    session = make_session()
    session.ask("a")
    broken: Row = {**ROW, **change}
    with caplog.at_level(logging.WARNING):
        assert merge_rows(session, [broken]) == 0
    assert "left out" in caplog.text
    assert session.profiles["a"].is_live
    assert read_run_profile([broken]) is None
    assert read_run_profile([ROW, broken, {"row": "report"}]) == ROW
