import sys
from pathlib import Path

import pytest

from raycosttune import CostMetric
from raycosttune.core.plan import NoPlan
from raycosttune.tune.plan import TunePlan
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTrial, FakeTune
from tests.tune.test_failing_cost import Fickle

SAID = "num_samples=1 allowed no further trial; with -1 the search ends by itself"


def begin(
    folder: Path, samples: float, planned_runs: int = 10, cost: CostMetric | None = None
) -> tuple[FakeTune, FakeTrial]:
    goal = GOAL.__class__(**{**vars(GOAL), "planned_runs": planned_runs})
    ray_tune = FakeTune(CostAwareSearch(goal, cost=cost), folder, SPACE)
    ray_tune.search_alg.total_samples = samples
    trial = ray_tune.suggest()
    assert isinstance(trial, FakeTrial)
    assert ray_tune.start() is trial
    return ray_tune, trial


def search_of(ray_tune: FakeTune) -> CostAwareSearch:
    assert isinstance(ray_tune.searcher, CostAwareSearch)
    return ray_tune.searcher


def test_a_sweep_without_a_plan_says_that_its_samples_were_used_up(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path, 1)
    search = search_of(ray_tune)
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    assert "ended early" not in f"{search.plan()} {search.explain()}"
    ray_tune.finish(trial)
    plan = search.plan()
    assert isinstance(plan, NoPlan)
    assert plan.reason.endswith(f"; ended early: {SAID}")
    assert search.explain().endswith(f"\nended early: {SAID}")


def test_a_plan_says_so_too(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path, 1, planned_runs=10_000)
    for epoch in range(1, 21):
        ray_tune.report(trial, accuracy=0.05 * epoch - 0.1, epoch=epoch)
    plan = search_of(ray_tune).plan()
    assert isinstance(plan, TunePlan)
    assert plan.limit == SAID
    assert str(plan).endswith(f" and ended early: {SAID}.")


@pytest.mark.parametrize("samples", [2, sys.maxsize])
def test_a_sweep_whose_samples_are_left_says_nothing(tmp_path: Path, samples: int) -> None:
    ray_tune, trial = begin(tmp_path, samples)
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    ray_tune.finish(trial)
    search = search_of(ray_tune)
    assert "ended early" not in f"{search.plan()} {search.explain()}"


def test_a_search_that_is_over_with_its_last_sample_says_nothing(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path, 1, planned_runs=1)
    for epoch in range(1, 21):
        ray_tune.report(trial, accuracy=0.05 * epoch - 0.1, epoch=epoch)
    search = search_of(ray_tune)
    assert isinstance(search.plan(), TunePlan)
    assert "ended early" not in f"{search.plan()} {search.explain()}"


def test_a_cost_that_fails_is_what_is_told(tmp_path: Path) -> None:
    cost = Fickle()
    ray_tune, trial = begin(tmp_path, 1, cost=cost)
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    cost.fails = "raises"
    ray_tune.finish(trial)
    search = search_of(ray_tune)
    assert "no price today" in str(search.plan())
    assert search.explain() == str(search.plan())
