"""What a large sweep weighs by: when that holds, and what never rests on it."""

import json
import math
from dataclasses import replace

import pytest

from raycosttune.core.abilities import Abilities
from raycosttune.core.basis import FEWEST, PART, Basis
from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Continue, Run, Stop, StopCause
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.prior import Prior
from raycosttune.core.profile import Profile, ProfileRecord
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.errors import InvalidStateError
from tests.core.drive import Factors, amdahl, goal
from tests.core.told import session as profiling
from tests.core.told import shown

SPACE = Space((1, 2, 4), (64, 128, 256))
JOB = amdahl(SPACE, startup_seconds=4.0)
GOAL = goal(planned_runs=10**9, tolerance=0.0, deadline_seconds=1e5)
REACHED = [cell for cell in SPACE.cells if cell.batch_size != 64 and cell.workers != 4]
OPEN, UNTIMED = SPACE.allocation(2, 64), SPACE.allocation(4, 128)
BASE = 24


def ended(
    name: str,
    cell: Allocation,
    *,
    pace: float = 1.0,
    factor: float = 1.0,
    epochs: float | None = None,
    startup: float = 4.0,
    cause: EndCause = EndCause.REACHED,
    lr: float = 0.1,
) -> TrialRecord:
    """Returns a run of two evaluations, of the job's epochs or of some of them in vain."""
    last = math.ceil(JOB.epochs[cell.batch_size] * factor) if epochs is None else epochs
    seconds, value = pace * JOB.epoch_seconds[cell] * last / 2, 0.0 if epochs else 1.0
    reports = [
        Report(last / 2, 0.0, startup + seconds, startup),
        Report(last, value, seconds),
    ]
    return TrialRecord(name, cell, {"lr": lr}, 0, reports, Ended(cause))


def usual(count: int, first: int = 0) -> list[TrialRecord]:
    """Returns runs whose times and epochs scatter a little about the job's."""
    cells = [REACHED[k % len(REACHED)] for k in range(first, first + count)]
    spread = [1 + 0.02 * math.sin(k) for k in range(first, first + count)]
    runs = zip(cells, spread, strict=True)
    vain = {"epochs": 2.0, "cause": EndCause.STOPPED}
    return [
        ended(f"t{k}", cell, pace=by, **({} if k else vain))  # type: ignore[arg-type]
        for k, (cell, by) in enumerate(runs, first)
    ]


def know(records: list[TrialRecord]) -> Knowledge:
    return Knowledge(records, SPACE, GOAL, WorkerHours())


BASIS = Basis(know(usual(BASE)), BASE, BASE, ())


@pytest.mark.parametrize(
    "further",
    [
        [],
        usual(BASE // PART, BASE),
        [ended("u", OPEN, epochs=2.0, cause=EndCause.STOPPED)],
        [ended("u", REACHED[0], lr=0.2, factor=1.4)],
        [ended("u", OPEN, epochs=2.0, cause=EndCause.STOPPED, lr=0.2)],
        [ended("u", REACHED[0], epochs=0.5)],
        [ended("u", REACHED[0], pace=1.04)],
        [replace(ended("u", OPEN, epochs=2.0, lr=0.2), allocation=SPACE.allocation(1, 512))],
    ],
    ids=[
        *("none", "few as usual", "an open cell as expected", "a worse recipe"),
        *("another in vain", "another period", "a time not unlikely", "elsewhere"),
    ],
)
def test_a_basis_holds_while_little_is_new(further: list[TrialRecord]) -> None:
    known = know([*usual(BASE), *further])
    assert BASIS.holds(known, BASE + len(further), known.digests[BASE:])


def test_a_first_epoch_that_is_mostly_loading_moves_no_basis() -> None:
    loading = 100 * max(JOB.epoch_seconds.values())

    def loaded(record: TrialRecord) -> TrialRecord:
        first, *others = record.reports
        return replace(record, reports=[replace(first, seconds=first.seconds + loading), *others])

    records = [loaded(record) for record in usual(BASE)]
    basis = Basis(know(records), BASE, BASE, ())
    begun = loaded(ended("u", OPEN, epochs=2.0, cause=EndCause.STOPPED))
    known = know([*records, replace(begun, reports=begun.reports[:1])])
    assert known.grid.index[OPEN] not in {place for _, place in known.tally.epoch_seconds}
    assert basis.holds(known, BASE + 1, known.digests[BASE:])


FAILED = TrialRecord("u", OPEN, {"lr": 0.1}, 0, [], Ended(EndCause.FAILED))


@pytest.mark.parametrize(
    "further",
    [
        usual(BASE // PART + 1, BASE),
        [FAILED],
        [replace(FAILED, ended=Ended(EndCause.OUT_OF_MEMORY))],
        [ended("u", REACHED[0], lr=0.2, factor=0.7)],
        [ended("u", OPEN)],
        [ended("u", OPEN, lr=0.2)],
        [ended("u", UNTIMED, epochs=2.0, cause=EndCause.STOPPED)],
        [ended("u", OPEN, epochs=2.0, cause=EndCause.STOPPED, pace=30.0)],
        [ended("u", OPEN, epochs=2.0, cause=EndCause.STOPPED, pace=1.5)],
        [ended(f"u{k}", REACHED[0], pace=1.4) for k in range(3)],
        [ended("u", REACHED[0], epochs=60.0)],
        [ended("u", OPEN, epochs=10.0, cause=EndCause.STOPPED)],
        [ended(f"u{k}", REACHED[0], factor=1.5) for k in range(3)],
    ],
    ids=[
        *("too many", "a failure", "out of memory", "a better recipe", "another batch"),
        *("another batch, other recipe", "a first time where the target is reached"),
        *("a time beyond the bounds", "a time that moves the fit", "times that move a median"),
        *("a contradiction", "epochs ruled out", "more epochs"),
    ],
)
def test_what_moves_it_or_is_no_matter_of_degree_ends_a_basis(further: list[TrialRecord]) -> None:
    known = know([*usual(BASE), *further])
    assert not BASIS.holds(known, BASE + len(further), known.digests[BASE:])


def test_a_start_up_far_from_those_before_ends_a_basis() -> None:
    before, late = [ended("a", REACHED[0])], ended("b", REACHED[0], startup=60.0)
    basis = Basis(know(before), 100, 100, ())
    assert basis.holds(know(before), 100, ())
    known = know([*before, late])
    assert not basis.holds(known, 100, known.digests[1:])


def test_nothing_rests_on_what_has_no_incumbent() -> None:
    records = [ended("a", OPEN, epochs=2.0, cause=EndCause.STOPPED)]
    assert not Basis(know(records), 1, 1, ()).holds(know(records), 1, ())


def sweep(
    trials: int = 0, *, prior: Prior | None = None, abilities: Abilities | None = None
) -> Session:
    """Returns a session that adopted so many runs."""
    proposer, cost = Factors([1.0]), WorkerHours()
    what = {"prior": prior, "abilities": abilities}
    made = Session(SPACE, GOAL, cost=cost, proposer=proposer, clock=float, **what)  # type: ignore[arg-type]
    for record in usual(trials):
        made.adopt(record)
    return made


def restored(told: Session, *, has_basis: bool = True) -> Session:
    """Returns a session that was saved and loaded, with what it rests on or without."""
    again, state = told._copy(told._age.clock, has_own_recipes=True), told.state()
    state = state if has_basis else {**state, "basis": None}
    again.load_state(json.loads(json.dumps(state)))
    return again


def test_small_sweeps_rest_on_everything_known() -> None:
    small = sweep(FEWEST - 1)
    assert small.settled is None
    assert small._moments.weighed is small.moment
    assert small.state()["basis"] is None


def test_a_large_sweep_rests_on_what_it_knew_until_that_moves() -> None:
    large = sweep(FEWEST)
    basis = large.settled
    assert basis is not None
    run = large.ask("u")
    assert isinstance(run, Run)
    assert large.settled is basis
    assert large._moments.weighed.known.time is not large.moment.known.time
    large.adopt(ended("v", OPEN))
    assert large.settled is not basis
    assert large.settled is not None
    moved = large.settled
    large.adopt(replace(ended("w", UNTIMED, epochs=2.0), ended=None))
    assert [large.settled, large.settled] == [None, None]  # what moves it has not ended yet
    large.tell("w", Ended(EndCause.STOPPED))
    assert large.settled not in (None, moved)


def test_a_basis_that_a_running_trial_moves_at_once_is_not_used() -> None:
    large = sweep(FEWEST)
    large.adopt(replace(ended("u", UNTIMED, epochs=2.0), ended=None))
    assert large.settled is None
    assert large._moments.weighed is large.moment


def test_a_run_as_expected_is_weighed_by_its_own_times_and_what_was_known() -> None:
    large = sweep(FEWEST)
    large.adopt(replace(ended("u", OPEN, epochs=2.0), ended=None))
    settled = large.settled
    assert settled is not None
    wide, tight = settled.known.time.bounds(OPEN), large._moments.weighed.known.time.bounds(OPEN)
    assert wide[0] < tight[0] < JOB.epoch_seconds[OPEN] < tight[1] < wide[1]
    predicted = large._moments.weighed.known.time.predict(OPEN)
    assert tight[0] <= predicted.mid <= tight[1]
    assert large.decide("u") == Continue()
    assert large._moments.weighed is large._moments.weighed
    other = large.ask("v")
    assert isinstance(other, Run)
    assert other.allocation.batch_size != OPEN.batch_size or other.recipe != {"lr": 0.1}
    large.adopt(replace(ended("w", REACHED[0]), ended=None))
    assert large.settled is settled
    stop = large.decide("w")
    assert isinstance(stop, Stop)
    assert stop.cause is StopCause.REACHED


def test_what_a_restored_sweep_rests_on_is_what_it_rested_on_before() -> None:
    earlier = Prior(tuple(usual(4)))
    large = sweep(FEWEST, prior=earlier)
    large.adopt(replace(ended("live", REACHED[0], epochs=2.0), ended=None))
    assert large.settled is not None
    large.adopt(ended("more", REACHED[1]))
    large.tell("live", Ended(EndCause.STOPPED))
    again = restored(large)
    assert again.state() == large.state()
    assert large.state()["basis"] == {"trials": FEWEST + 1, "without": ["live"]}
    settled, before = again.settled, large.settled
    assert settled is not None
    assert before is not None
    assert settled.known.records == before.known.records
    assert settled.known.time.log_mean.tolist() == before.known.time.log_mean.tolist()
    assert again.ask("next") == large.ask("next")


def test_a_sweep_without_an_earlier_one_is_restored_likewise() -> None:
    large = sweep(FEWEST)
    large.ask("u")
    again = restored(large)
    assert again.settled is not None
    assert again.ask("v") == large.ask("v")
    assert restored(large, has_basis=False).state()["basis"] is None


@pytest.mark.parametrize("junk", [3, {"trials": 2}, {"trials": -1.5, "without": []}])
def test_a_state_whose_basis_can_not_be_read_is_refused(junk: object) -> None:
    small = sweep(3)
    with pytest.raises(InvalidStateError, match="a state must have"):
        sweep().load_state({**small.state(), "basis": junk})


def test_a_profile_ends_a_basis() -> None:
    large = profiling(SPACE, GOAL)
    profile = large.ask("p")
    assert isinstance(profile, Profile)
    for record in usual(FEWEST):
        large.adopt(replace(record, recipe={}))
    assert large.settled is not None
    large.live_profiles[0].take(Ended(EndCause.FAILED))
    assert isinstance(large.ask("r"), Profile | Run)
    large.profiles["p"] = ProfileRecord("p", profile)
    large.tell_profile("p", shown(JOB, profile))
    assert large._archive.basis is None
    assert large.settled is not None
    large.profiles["q"] = ProfileRecord("q", profile)
    large.tell("q", Ended(EndCause.FAILED))
    assert large._archive.basis is None
