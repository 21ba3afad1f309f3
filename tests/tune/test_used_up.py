import sys
from pathlib import Path

import pytest
from ray.tune.experiment import Trial

from raycosttune import CostMetric, WorkerHours, read_sweep
from raycosttune.core.plan import NoPlan
from raycosttune.report.run import read_run
from raycosttune.tune.plan import TunePlan
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTrial, FakeTune, journal
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


def test_its_journal_says_so_too(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path, 1)
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    ray_tune.finish(trial)
    told = search_of(ray_tune).explain().splitlines()[-1]
    assert journal(tmp_path)[0]["num_samples"] == 1
    past = read_sweep(tmp_path)
    assert past.explain().splitlines()[-1] == told == f"ended early: {SAID}"
    plans = past.plan(), past.plan(cost=WorkerHours()), read_run(tmp_path).session.plan()
    assert all(told in str(plan) for plan in plans)


@pytest.mark.parametrize("samples", [3, sys.maxsize])
def test_a_sweep_that_goes_on_with_other_samples_says_no_more_of_the_first_ones(
    tmp_path: Path, samples: int
) -> None:
    ray_tune, trial = begin(tmp_path, 1)
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    ray_tune.finish(trial)
    ray_tune.searcher.save(str(tmp_path / "state.json"))
    search = CostAwareSearch(GOAL)
    search.restore(str(tmp_path / "state.json"))
    again = FakeTune(search, tmp_path)
    again.search_alg.total_samples = samples
    trial.status = Trial.TERMINATED
    again.add(trial)
    assert "ended early" not in f"{search.plan()} {read_sweep(tmp_path).plan()}"
    headers = [row for row in journal(tmp_path) if row["row"] == "header"]
    assert [header.get("num_samples") for header in headers] == [1, None if samples > 3 else 3]
    assert [header["goal"] for header in headers] == [headers[0]["goal"]] * 2
    once = FakeTune(search, tmp_path)
    once.search_alg.total_samples = samples
    once.add(trial)
    assert len([row for row in journal(tmp_path) if row["row"] == "header"]) == 2


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
