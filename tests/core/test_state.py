import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raycosttune.core.observation import EndCause, Ended, Report, Resized, TrialRecord
from raycosttune.core.space import Allocation
from raycosttune.core.state import (
    VERSION,
    Writer,
    check_version,
    read_report,
    record_from_data,
    record_to_data,
)
from raycosttune.core.value import LEAST_AMOUNT
from raycosttune.errors import InvalidStateError

NUMBERS = st.just(0.0) | st.floats(LEAST_AMOUNT, 1e6)
REPORTS = st.builds(
    Report,
    NUMBERS,
    st.none() | st.floats(-1e6, 1e6),
    NUMBERS,
    NUMBERS,
    st.integers(1, 5),
    st.none() | st.text(),
)
RECORDS = st.builds(
    TrialRecord,
    st.text(min_size=1),
    st.builds(Allocation, st.integers(1, 8), st.integers(1, 512), st.integers(1, 4)),
    st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()),
    st.integers(0, 100),
    st.lists(REPORTS, max_size=3),
    st.none() | st.builds(Ended, st.sampled_from(EndCause), st.text(), NUMBERS),
    resized=st.none() | st.builds(Resized, st.integers(1, 8), st.integers(1, 5), st.text()),
)


@given(record=RECORDS)
def test_a_record_survives_json(record: TrialRecord) -> None:
    assert record_from_data(json.loads(json.dumps(record_to_data(record)))) == record


@given(record=RECORDS, data=st.data())
def test_a_record_that_lacks_a_part_is_refused(record: TrialRecord, data: st.DataObject) -> None:
    damaged = record_to_data(record)
    older_lack = {"resized", "started"}
    del damaged[data.draw(st.sampled_from(sorted(damaged.keys() - older_lack)))]
    with pytest.raises(InvalidStateError, match="a trial's record can't be read"):
        record_from_data(damaged)


@pytest.mark.parametrize(
    "change",
    [
        {"ended": 3},
        {"resized": 3},
        {"resized": {"workers": 0, "attempt": 1, "reason": ""}},
        {"ended": {"cause": "tired"}},
        {"reports": None},
        {"reports": [{"step": 1}]},
        {"allocation": {"cpus": 1}},
        {"recipe": 5},
        {"proposal": "first"},
    ],
)
def test_a_damaged_part_is_shown(change: dict[str, Any]) -> None:
    good = record_to_data(TrialRecord("t", Allocation(1, 64), {}, 0))
    with pytest.raises(InvalidStateError) as caught:
        record_from_data({**good, **change})
    assert repr(next(iter(change.values()))) in str(caught.value)


FULL = record_to_data(
    TrialRecord("t", Allocation(1, 64), {}, 0, [Report(1.0, 0.5, 2.0)], Ended(EndCause.FAILED))
)


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        *(("report", "epoch", value) for value in ("one", None, math.nan, True, 10**400)),
        *(("report", "seconds", value) for value in ("s", math.nan, [1])),
        *(("report", "value", value) for value in ("high", math.inf)),
        *(("report", "attempt", value) for value in ("x", 0, math.inf, 1.5)),
        ("report", "checkpoint", 5),
        ("report", "workers", -1),
        ("report", "noise_scale", "x"),
        *(("ended", key, value) for key, value in (("seconds", "x"), ("reason", 3), ("cause", []))),
        *(("allocation", "workers", value) for value in ("x", 0, -1, 10**30, math.inf)),
        ("allocation", "batch_size", None),
        ("allocation", "nodes", 0),
        *(("record", key, value) for key, value in (("trial_id", [1]), ("proposal", -1))),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_wherever_it_lies(
    part: str, key: str, value: object
) -> None:
    data = json.loads(json.dumps(FULL))
    held = {"report": data["reports"][0], "record": data}.get(part) or data[part]
    held[key] = value
    with pytest.raises(InvalidStateError, match="can't be read"):
        record_from_data(data)


def test_a_change_of_workers_is_read() -> None:
    change = {"workers": 2, "attempt": 3, "reason": "its deadline"}
    assert record_from_data({**FULL, "resized": change}).resized == Resized(2, 3, "its deadline")


def test_what_older_reports_lack_is_unknown_and_amounts_are_cleaned() -> None:
    data = json.loads(json.dumps(FULL))
    report = data["reports"][0]
    del report["workers"], report["noise_scale"]
    report["epoch"], report["seconds"] = -1.0, 1e300
    (read,) = record_from_data(data).reports
    assert (read.epoch, read.seconds, read.workers, read.noise_scale) == (0.0, 0.0, None, None)


@pytest.mark.parametrize("junk", [None, 3, "abc", [1, 2], [[1, 2]]])
def test_what_is_no_record_is_refused(junk: Any) -> None:
    with pytest.raises(InvalidStateError, match="can't be read"):
        record_from_data(junk)


@pytest.mark.parametrize(
    ("state", "found"),
    [({"version": 0}, "0"), ({"version": "1"}, "'1'"), ({}, "None"), (None, "'NoneType'")],
)
def test_another_version_is_refused(state: object, found: str) -> None:
    with pytest.raises(InvalidStateError, match=f"version {VERSION}, got {found}") as caught:
        check_version(state)
    assert "Read it with its own release." in str(caught.value)


def test_this_version_is_read() -> None:
    check_version({"version": VERSION})


def test_an_ended_record_is_written_once_and_a_live_one_each_time() -> None:
    write = Writer()
    record = TrialRecord("t", Allocation(1, 64), {"lr": 0.1}, 0)
    before = write(record)
    record.reports.append(Report(1.0, 0.5, 2.0))
    record.ended = Ended(EndCause.STOPPED)
    after = write(record)
    assert not before["reports"]
    assert write(record) is after
    assert after == record_to_data(record)
    another = TrialRecord("t", Allocation(1, 64), {}, 0, [], Ended(EndCause.FAILED))
    assert write(another) == record_to_data(another)


@pytest.mark.parametrize("others", [[["latency"]], [["latency", "slow"]], [[3, 1.0]], ["ab", 7]])
def test_other_metrics_must_be_pairs_of_a_name_and_a_number(others: list[object]) -> None:
    report = vars(Report(1.0, 0.5, 2.0, others=(("latency", 3.0),)))
    assert read_report(report).others == (("latency", 3.0),)
    with pytest.raises(ValueError, match="must be"):
        read_report({**report, "others": others})
