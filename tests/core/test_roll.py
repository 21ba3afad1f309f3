from raycosttune.core.observation import EndCause, Ended, TrialRecord
from raycosttune.core.roll import Roll
from raycosttune.core.space import Allocation

END = Ended(EndCause.STOPPED)


def record(name: str, end: Ended | None = None) -> TrialRecord:
    return TrialRecord(name, Allocation(1, 64), {}, 0, [], end)


def test_each_trial_is_called_once_when_it_has_ended() -> None:
    roll, records = Roll(), {"a": record("a"), "b": record("b", END)}
    assert roll.ended(records) == [(1, records["b"])]
    assert roll.open == [(0, records["a"])]
    assert roll.ended(records) == []
    records["c"] = record("c")
    records["a"].ended = END
    assert roll.ended(records) == [(0, records["a"])]
    assert roll.open == [(2, records["c"])]


def test_a_trial_that_came_and_ended_between_two_calls_is_called() -> None:
    roll, records = Roll(), dict[str, TrialRecord]()
    assert roll.ended(records) == []
    records["a"] = record("a", END)
    assert roll.ended(records) == [(0, records["a"])]
    assert roll.open == []
