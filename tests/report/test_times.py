from raycosttune.report.times import Times
from raycosttune.report.view import Held
from raycosttune.results.rows import Row


def asked(name: str, at: float | None = None, **more: object) -> Row:
    return {**_stamp(at), "row": "asked", "trial_id": name, "workers": 2, **more}


def report(name: str, epoch: float, seconds: float, at: float | None = None, **more: object) -> Row:
    row = {"row": "report", "trial_id": name, "epoch": epoch, "attempt": 1, "seconds": seconds}
    return {**row, **_stamp(at), **more}


def _stamp(at: float | None) -> Row:
    return {} if at is None else {"elapsed_seconds": at}


def test_a_trial_holds_its_workers_from_what_it_paid_to_when_it_reported() -> None:
    times = Times.of(
        [
            asked("a", at=0.0),
            report("a", 1, 5.0, at=10.0),
            report("a", 2, 3.0, at=13.0),
        ]
    )
    assert times.held == {"a": [Held(5.0, 13.0, 2)]}
    assert times.elapsed_seconds == 13
    assert times.is_timed


def test_a_long_pause_is_not_held() -> None:
    times = Times.of(
        [
            asked("a", at=0.0),
            report("a", 1, 5.0, at=5.0),
            report("a", 2, 5.0, at=60.0),
        ]
    )
    assert times.held["a"] == [Held(0.0, 5.0, 2), Held(55.0, 60.0, 2)]


def test_a_change_of_workers_begins_a_new_stretch() -> None:
    rows = [asked("a"), report("a", 1, 5.0), report("a", 2, 5.0, workers=4)]
    assert Times.of(rows).held["a"] == [Held(0.0, 5.0, 2), Held(5.0, 10.0, 4)]


def test_without_times_a_trial_starts_where_the_row_before_it_ended() -> None:
    times = Times.of(
        [asked("a"), report("a", 1, 5.0), asked("b"), report("b", 1, 2.0), report("a", 2, 1.0)]
    )
    assert times.held == {"a": [Held(0.0, 6.0, 2)], "b": [Held(5.0, 7.0, 2)]}
    assert not times.is_timed


def test_a_report_told_twice_counts_once() -> None:
    row = report("a", 1, 5.0)
    assert Times.of([asked("a"), row, row]).elapsed_seconds == 5


def test_rows_that_lack_what_they_need_say_nothing() -> None:
    rows: list[Row] = [
        report("z", 1, 5.0),
        {"row": "report"},
        {"row": "new"},
        asked("a"),
        asked("a"),
    ]
    assert Times.of(rows).held == {"a": [Held(0.0, 0.0, 2)]}


def test_a_trial_after_the_end_means_that_the_search_went_on() -> None:
    over: Row = {"row": "over", "why": "nothing pays"}
    assert Times.of([over]).over == "nothing pays"
    assert not Times.of([over, asked("a")]).over


def test_a_profile_holds_its_most_workers() -> None:
    cells = [{"workers": 1}, {"workers": 4}]
    rows: list[Row] = [
        {"row": "profile", "trial_id": "p", "cells": cells},
        {"row": "profiled", "trial_id": "p", "seconds": 9.0},
    ]
    assert Times.of(rows).held["p"] == [Held(0.0, 9.0, 4)]


def test_damaged_rows_say_what_they_can() -> None:
    rows: list[Row] = [
        {"row": "profile", "trial_id": "p", "cells": [5, {"workers": "x"}, {"workers": 4}]},
        {"row": "profile", "trial_id": "q", "cells": 7},
        {**asked("a"), "workers": "two"},
        {**report("a", 1, 2.0), "workers": [1], "attempt": {}},
        {**report("b", 1, 2.0), "trial_id": ["b"]},
    ]
    times = Times.of(rows)
    assert [times.held[name][0].workers for name in "pqa"] == [4, 1, 1]
