import numpy as np
import pytest

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import CostMetric, WorkerHours
from raycosttune.core.decision import (
    Answer,
    Continue,
    Decision,
    Finished,
    Resize,
    Run,
    Stop,
    StopCause,
)
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.node_type import Free
from raycosttune.core.observation import Ended, Observation, Report, TrialRecord
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.rehearsal import (
    MOST_TRIALS,
    Clock,
    LearnedSurface,
    NumberedRecipes,
    PriorSurface,
    rehearse,
)
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from tests.core.drive import amdahl, goal

SPACE = Space((1, 2), (64, 128))
GOAL = goal(deadline_seconds=60)
JOB = amdahl(SPACE, startup_seconds=5.0)


class Endless:
    """Is a sweep of one trial that nothing stops."""

    def __init__(self) -> None:
        self.space: Space = SPACE
        self.goal: Goal = GOAL
        self.cost: CostMetric = WorkerHours()
        self.max_concurrent: int | None = None
        self.records: dict[str, TrialRecord] = {}
        self.ended = 0

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
        del free_workers
        if self.records:
            return Finished("enough")
        self.records[trial_id] = TrialRecord(trial_id, SPACE.cells[0], {}, 0)
        return Run(SPACE.cells[0], {}, "may run")

    def tell(self, trial_id: str, observation: Observation) -> bool:
        if isinstance(observation, Report):
            self.records[trial_id].reports.append(observation)
        self.ended += isinstance(observation, Ended)
        return True

    def tell_profile(self, trial_id: str, profiled: Profiled) -> bool:
        del trial_id, profiled
        raise AssertionError

    def decide(self, trial_id: str) -> Decision:
        assert trial_id in self.records
        return Continue()

    @property
    def known(self) -> Knowledge:
        return Knowledge(list(self.records.values()), SPACE, GOAL, self.cost)

    @property
    def live(self) -> list[TrialRecord]:
        return []

    @property
    def live_profiles(self) -> list[ProfileRecord]:
        return []

    @property
    def spent(self) -> float:
        return sum(record.seconds for record in self.records.values())

    @property
    def elapsed_seconds(self) -> float:
        return 0.0


def test_a_rehearsed_trial_ends_even_where_nothing_stops_it() -> None:
    sweep, clock = Endless(), Clock()
    surface = PriorSurface(SPACE, GOAL, np.random.default_rng(0))
    assert rehearse(sweep, surface, clock) == (1, sweep.spent)
    assert sweep.ended == 1
    assert clock() == pytest.approx(sweep.spent)


def test_a_surface_drawn_from_measurements_keeps_to_them() -> None:
    cell, other = SPACE.cells[:2]
    known = Knowledge([JOB.record(GOAL, cell, "done")], SPACE, GOAL, WorkerHours())
    for seed in range(20):
        surface = LearnedSurface(known, np.random.default_rng(seed))
        assert surface.epoch_seconds(cell) == pytest.approx(JOB.epoch_seconds[cell])
        predicted = known.time.predict(other)
        assert predicted.low <= surface.epoch_seconds(other) <= predicted.high
        assert surface.startup_seconds(cell) == pytest.approx(5.0)
        low, high = known.accuracy.bounds("{}", cell.batch_size)
        assert low <= surface.epochs(cell, {}) <= high
        assert surface.epochs(other, {"recipe": 1}) == surface.epochs(other, {"recipe": 1})


def test_rehearsed_recipes_are_told_apart() -> None:
    proposer = NumberedRecipes()
    assert proposer.propose(3, []) != proposer.propose(4, [])


def test_a_sweep_that_never_ends_is_left_after_the_most_trials() -> None:
    class Busy(Endless):
        def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
            del free_workers
            self.records[trial_id] = TrialRecord(trial_id, SPACE.cells[0], {}, 0)
            return Run(SPACE.cells[0], {}, "may run")

        def decide(self, trial_id: str) -> Decision:
            assert trial_id in self.records
            return Stop(StopCause.COST, "enough")

    surface = PriorSurface(SPACE, GOAL, np.random.default_rng(0))
    assert rehearse(Busy(), surface, Clock())[0] == MOST_TRIALS


def planned() -> Session:
    known = Space((1, 2, 4), (64, 128, 256))
    abilities = Abilities(profile=True, resize=True)
    return Session(known, GOAL, cost=WorkerHours(), abilities=abilities, clock=Clock())


def test_profiles_are_rehearsed_those_that_run_first() -> None:
    sweep, clock = planned(), Clock()
    first = sweep.ask("first")
    assert isinstance(first, Profile)
    surface = PriorSurface(sweep.space, GOAL, np.random.default_rng(0))
    count, spent = rehearse(sweep, surface, clock)
    shown = sweep.profiles["first"].shown
    assert shown is not None
    assert set(shown.epoch_seconds) == set(first.cells)
    assert not sweep.live_profiles
    assert count == len(sweep.records) + len(sweep.profiles) - 1
    assert spent == sweep.spent > 0
    trained = sum(record.seconds for record in sweep.records.values())
    timed = sum(record.seconds for record in sweep.profiles.values())
    assert clock() == pytest.approx(trained + timed)


def test_a_rehearsed_run_changes_its_workers_where_the_sweep_says_so() -> None:
    class Resizing(Endless):
        def decide(self, trial_id: str) -> Decision:
            reports = self.records[trial_id].reports
            if len(reports) == 3:
                return Resize(2, "two are faster")
            return Stop(StopCause.COST, "enough") if len(reports) == 5 else Continue()

    sweep = Resizing()
    surface = LearnedSurface(
        Knowledge([JOB.record(GOAL, SPACE.cells[0], "done")], SPACE, GOAL, WorkerHours()),
        np.random.default_rng(0),
    )
    rehearse(sweep, surface, Clock())
    (record,) = sweep.records.values()
    assert [report.workers for report in record.reports] == [1, 1, 1, 2, 2]
    assert [report.startup_seconds > 0 for report in record.reports] == [True] + 2 * [False] + [
        True,
        False,
    ]
