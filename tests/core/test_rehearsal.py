import numpy as np
import pytest

from raycosttune.core.cost import CostMetric, WorkerHours
from raycosttune.core.decision import Answer, Continue, Decision, Finished, Run
from raycosttune.core.goal import Goal
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import Ended, Observation, Report, TrialRecord
from raycosttune.core.rehearsal import (
    Clock,
    LearnedSurface,
    NumberedRecipes,
    PriorSurface,
    rehearse,
)
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

    def ask(self, trial_id: str, *, free_workers: int | None = None) -> Answer:
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
