import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raycosttune.core.archive import Archive
from raycosttune.core.cost import WorkerHours
from raycosttune.core.held import paid
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.space import Allocation
from raycosttune.errors import InvalidCostError
from tests.core.drive import goal
from tests.core.growing import SPACE, STEPS, Step

SMALL = settings(max_examples=60)
LIMITS = st.sampled_from((None, 15.0, 40.0))


class Counted:
    """Counts how often it is asked, and fails while it is broken."""

    unit = "EUR"

    def __init__(self) -> None:
        self.count, self.is_broken = 0, False

    def __call__(self, allocation: Allocation, seconds: float) -> float:
        self.count += 1
        return math.nan if self.is_broken else allocation.workers * seconds


def told(known: Knowledge) -> dict[str, object]:
    """Returns what a tally holds, as far as the order of addition leaves it the same."""
    tally = known.tally
    found: dict[str, object] = {
        name: getattr(tally, name)
        for name in (
            *("misses", "failures", "late_starts", "ends", "own_ends", "last_own_end", "given_up"),
            *("period", "is_delivered", "has_values", "live"),
        )
    }
    found |= {"out of memory": sorted(tally.out_of_memory)}
    found |= {f"times {k}": sorted(s) for k, s in tally.epoch_seconds.items()}
    found |= {f"startups {n}": sorted(s) for n, s in tally.startup_seconds.items()}
    for key, history in tally.recipes.items():
        found[key] = history.recipe, history.first, history.reported, history.tried
        for batch, runs in history.runs.items():
            seen, hits = runs.seen, runs.hits
            found[f"{key} {batch}"] = (
                dict(seen.counts),
                seen.low,
                seen.high,
                seen.log_low,
                runs.rank,
            )
            found[f"{key} {batch} runs"] = runs.longest, sorted(map(id, runs.scaled))
            assert tally.runs(batch, key) is runs
            if hits is not None:
                found[f"{key} {batch} hits"] = hits.low, hits.high, hits.most, hits.seconds
                found[f"{key} {batch} turns"] = hits.first, hits.last, hits.latest
                found[f"{key} {batch} own"] = dict(hits.own), dict(hits.in_time)
    found["best"] = {batch: hits.recipe for batch, hits in tally.best.items()}
    found["own"] = {cell: hits.recipe for cell, hits in tally.own.items()}
    return found


@SMALL
@given(STEPS, LIMITS)
def test_what_grows_step_by_step_is_what_all_trials_add_up_to(
    steps: list[Step], limit: float | None
) -> None:
    limits, records = goal(deadline_seconds=limit), dict[str, TrialRecord]()
    archive = Archive(SPACE, limits, WorkerHours())
    moments = []
    for step in steps:
        step.apply(records)
        known = archive.known(records, ())
        afresh = Knowledge(tuple(records.values()), SPACE, limits, WorkerHours(), archive._digests)
        expected = told(afresh)
        assert told(known) == expected
        assert known.digests == afresh.digests
        moments.append((known, expected))
        costs = [paid(record, SPACE, WorkerHours()) for record in records.values()]
        assert archive.spent(records, ()) == math.fsum(costs)
    for known, expected in moments:  # what came later has not changed what was known
        assert told(known) | {"live": None} == expected | {"live": None}


def ended(name: str, end: Ended | None = Ended(EndCause.STOPPED)) -> TrialRecord:  # noqa: B008 - frozen
    return TrialRecord(name, SPACE.cells[0], {}, 0, [Report(1.0, 0.0, 10.0)], end)


def test_what_ended_is_paid_for_once() -> None:
    cost = Counted()
    archive = Archive(SPACE, goal(), cost)
    records = {name: ended(name) for name in "ab"} | {"c": ended("c", None)}
    assert archive.spent(records, ()) == 30.0
    cost.count = 0
    assert archive.spent(records, ()) == 30.0
    assert cost.count == 1


def test_a_cost_that_failed_is_asked_for_again() -> None:
    cost = Counted()
    archive = Archive(SPACE, goal(), cost)
    records = {name: ended(name) for name in "ab"}
    cost.is_broken = True
    for _ in range(2):
        with pytest.raises(InvalidCostError):
            archive.spent(records, ())
    cost.is_broken = False
    assert archive.spent(records, ()) == 20.0


def test_profiles_are_paid_for_and_known_each_time() -> None:
    archive = Archive(SPACE, goal(), Counted())
    profile = ProfileRecord("p", Profile(SPACE.cells[:1]))
    assert archive.known({}, (profile,)).time.is_empty
    profile.show(Profiled({SPACE.cells[0]: 5.0}, 12.0, 2.0, SPACE.cells[1:2]))
    known = archive.known({}, (profile,))
    assert known.time.is_measured(SPACE.cells[0])
    assert known.startup.predict(SPACE.cells[0]).mid == 2.0
    assert SPACE.cells[1] not in known.cells
    assert archive.spent({}, (profile,)) == 12.0
