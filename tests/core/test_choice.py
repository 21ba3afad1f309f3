from collections.abc import Sequence
from typing import Any

import pytest

from raycosttune.core.choice import (
    PROPOSALS,
    choose,
    choose_recipe,
    experiments,
    is_certified,
    nothing_left,
)
from raycosttune.core.constraint import Bound
from raycosttune.core.cost import NodeHours
from raycosttune.core.decision import Finished
from raycosttune.core.experiment import Experiment
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Recipe, Report, TrialRecord, recipe_key
from raycosttune.core.planner import Planner
from raycosttune.core.proposer import NoHyperparameters, Scored
from raycosttune.core.space import Space
from tests.core.drive import amdahl, goal

SPACE = Space((1, 2), (64, 128))
CELL, OTHER = SPACE.cells[:2]
JOB = amdahl(SPACE)
FIRST: Recipe = {"lr": 0.1}
SECOND: Recipe = {"lr": 0.2}


class Recorder:
    """Proposes recipes in turn and keeps what it was asked."""

    def __init__(self, *recipes: Recipe) -> None:
        self.recipes = recipes
        self.asked: list[tuple[int, list[Scored]]] = []

    def propose(self, index: int, records: Sequence[Scored]) -> Recipe:
        self.asked.append((index, list(records)))
        return self.recipes[index % len(self.recipes)]


def trial(recipe: Recipe, *values: float, ended: bool = True) -> TrialRecord:
    reports = [Report(k + 1.0, value, 10.0) for k, value in enumerate(values)]
    end = Ended(EndCause.STOPPED) if ended else None
    return TrialRecord(f"{recipe}", CELL, recipe, 0, reports, end)


def know(*records: TrialRecord, **limits: Any) -> Knowledge:
    return Knowledge(records, SPACE, goal(**limits), NodeHours())


def at(recipe: str | None) -> Experiment:
    return Experiment(CELL, recipe, 1.0, 2.0, 1.0, "pays")


def test_before_a_success_every_cell_is_ranked_and_afterwards_what_pays() -> None:
    assert len(experiments(know(), NoHyperparameters())) == len(SPACE.cells)
    known = know(JOB.record(goal(), CELL, "t"), planned_runs=1000)
    after = experiments(known, NoHyperparameters())
    assert after
    assert all(experiment.value > 0 for experiment in after)


def test_a_recipe_can_be_new_only_where_there_is_something_to_propose() -> None:
    record = JOB.record(goal(), CELL, "t")
    assert {e.recipe for e in experiments(know(), NoHyperparameters())} == {"{}"}
    assert {e.recipe for e in experiments(know(), Recorder(FIRST))} == {None}
    known = know(record, planned_runs=1000)
    assert None not in {e.recipe for e in experiments(known, NoHyperparameters())}
    assert None in {e.recipe for e in experiments(known, Recorder(FIRST))}


def test_with_a_planner_its_runs_are_ranked_before_and_after_a_success() -> None:
    for records in ([], [JOB.record(goal(), CELL, "t")]):
        known = know(*records, planned_runs=1000)
        planner = Planner(know(JOB.record(goal(), CELL, "t")), recipes=False, can_resize=True)
        found = experiments(known, NoHyperparameters(), planner)
        assert found == (
            planner.further_runs(known.incumbent) if known.incumbent else planner.first_runs()
        )


def test_nothing_is_tried_once_the_only_run_is_made() -> None:
    known = know(JOB.record(goal(), CELL, "t"), planned_runs=1)
    assert experiments(known, Recorder(FIRST)) == []
    assert nothing_left(known) == "the target is reached and no further run is planned"


def test_nothing_is_tried_once_the_gap_is_within_the_tolerance() -> None:
    records = [JOB.record(goal(), cell, str(cell)) for cell in SPACE.cells]
    known = know(*records, planned_runs=1000)
    assert is_certified(known)
    assert experiments(known, Recorder(FIRST)) == []
    assert nothing_left(known) == "nothing untried can be cheaper, within the tolerance of 3%"
    assert not is_certified(know())


def test_nothing_left_says_what_is_missing() -> None:
    expected = "no untried configuration can be expected to reach the target"
    assert nothing_left(know()) == expected
    limits = dict[str, Any](
        deadline_seconds=60, max_epochs=5, sweep_deadline_seconds=90.5, sweep_budget=2
    )
    assert nothing_left(know(**limits, constraints=(Bound(metric="latency", at_most=20),))) == (
        f"{expected} within the limits (60 s a run, 5 epochs, latency <= 20, 90.5 s for the sweep, "
        "2 node-hours for the sweep)"
    )
    open_gap = know(JOB.record(goal(), CELL, "t"))
    assert nothing_left(open_gap) == "no further trial pays for itself"
    busy = know(JOB.record(goal(), CELL, "t"), TrialRecord("live", SPACE.cells[-1], {}, 1))
    assert nothing_left(busy).endswith("itself beside what the running ones may find")


def test_a_recipe_tried_before_is_not_proposed_again() -> None:
    proposer = Recorder(SECOND)
    known = know(trial(FIRST, 0.0, 1.0))
    assert choose_recipe(known, at(recipe_key(FIRST)), proposer) == FIRST
    assert proposer.asked == []


def test_a_new_recipe_is_asked_for_with_every_score() -> None:
    proposer = Recorder(FIRST, SECOND)
    known = know(trial(FIRST, 0.0, 1.0))
    assert choose_recipe(known, at(None), proposer) == SECOND
    ((index, scored),) = proposer.asked
    assert index == 1
    assert [one.recipe for one in scored] == [FIRST]
    assert scored[0].score == pytest.approx(known.accuracy.scores()[0])


def test_a_proposer_that_repeats_itself_is_not_asked_for_ever() -> None:
    proposer = Recorder(FIRST)
    assert choose_recipe(know(trial(FIRST, 0.0, 1.0)), at(None), proposer) is None
    assert len(proposer.asked) == PROPOSALS


@pytest.mark.parametrize(
    ("record", "is_open"),
    [
        (trial(FIRST), True),
        (trial(FIRST, 0.0), False),
        (trial(FIRST, ended=False), False),
    ],
)
def test_a_known_recipe_is_open_where_it_has_shown_nothing_yet(
    record: TrialRecord, is_open: bool
) -> None:
    chosen = choose_recipe(know(record), at(None), Recorder(FIRST))
    assert chosen == (FIRST if is_open else None)


def test_a_known_recipe_is_open_in_another_cell_until_the_target_is_reached() -> None:
    elsewhere = Experiment(OTHER, None, 1.0, 2.0, 1.0, "pays")
    assert choose_recipe(know(trial(FIRST, 0.0)), elsewhere, Recorder(FIRST)) == FIRST
    assert choose_recipe(know(trial(FIRST, 1.0)), elsewhere, Recorder(FIRST)) is None


def test_a_search_whose_proposals_were_all_tried_is_over() -> None:
    known = know(trial(FIRST, 0.0, 1.0))
    ended = choose(known, [at(None), at(None)], Recorder(FIRST), None)
    assert ended == Finished(nothing_left(known))
