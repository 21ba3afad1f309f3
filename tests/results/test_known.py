import json
from typing import Any

import pytest

from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.prior import Prior
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidStateError
from raycosttune.results.keys import SearchKeys, read_keys
from raycosttune.results.known import known_row, read_known

CELL = Allocation(2, 64, 1, "v100")
TRIAL = TrialRecord("A/t", CELL, {"lr": 0.1}, 0, [Report(1.0, 0.5, 3.0)], Ended(EndCause.FINISHED))


def profiles() -> tuple[ProfileRecord, ...]:
    shown = ProfileRecord("A/p", Profile((CELL,)))
    shown.show(Profiled({CELL: 3.0}, 9.0, 1.0))
    return shown, ProfileRecord("A/lost", Profile((CELL,)))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_a_sweep_began_with_comes_back_from_its_row(elsewhere: bool) -> None:
    prior = Prior((TRIAL,), profiles(), 2.0, elsewhere)
    row = json.loads(json.dumps(known_row(prior)))
    read = read_known([{"row": "header"}, row])
    assert read is not None
    assert (read.records, read.samples, read.is_elsewhere) == (prior.records, 2.0, elsewhere)
    assert read.profiles[0] == prior.profiles[0]
    assert not read.profiles[1].is_live


def test_older_journals_tell_of_nothing_known() -> None:
    assert read_known([{"row": "header"}]) is None
    assert read_keys({"row": "header"}) is None


@pytest.mark.parametrize(
    "wrong", [{"records": 3}, {"samples": "x"}, {"profiles": [{}]}, {"records": [{"a": 1}]}]
)
def test_a_row_that_cannot_be_read_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidStateError, match="can't be read"):
        read_known([{**known_row(Prior(())), **wrong}])


@pytest.mark.parametrize("wrong", [3, {}, {"paths": {"a": 1}, "workers_key": "a"}])
def test_keys_that_cannot_be_read_are_named(wrong: object) -> None:
    with pytest.raises(InvalidStateError, match="keys of its space"):
        read_keys({"space": wrong})


def test_the_keys_of_a_header_make_a_config() -> None:
    paths = {"n": ["n"], "b": ["b"], "o/lr": ["o", "lr"], "on/type": ["on", "type"]}
    header = {"workers_key": "n", "batch_key": "b", "paths": paths}
    keys = read_keys({"space": header})
    assert keys == SearchKeys("n", "b", None, {key: tuple(path) for key, path in paths.items()})
    assert keys.config(CELL, 32, {"o/lr": 0.1}) == {"n": 2, "b": 32, "o": {"lr": 0.1}}
    typed = read_keys({"space": {**header, "types": ["v100"], "type_key": "on/type"}})
    assert typed is not None
    assert typed.config(CELL, 32, {"gone": 1})["on"] == {"type": "v100"}
