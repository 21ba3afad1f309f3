import shutil
from pathlib import Path

import pytest
from ray import tune

from raycosttune import InvalidGoalError, WorkerHours, read_sweep
from raycosttune.core.figure import described
from raycosttune.core.goal import Goal
from raycosttune.core.plan import Plan
from raycosttune.errors import InvalidSpaceError
from raycosttune.report import sweep_of
from raycosttune.report.glance import glance_of
from raycosttune.report.lines import Lines
from raycosttune.report.run import read_run
from raycosttune.results.past_plan import PastPlan
from raycosttune.tune.plan import TunePlan
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTune


def swept(folder: Path) -> FakeTune:
    """Runs a sweep of one trial that reaches the target, after another that does not."""
    ray_tune = FakeTune(CostAwareSearch(GOAL, cost=WorkerHours()), folder, SPACE)
    trial = ray_tune.suggest()
    ray_tune.start()
    ray_tune.report(trial, accuracy=0.5, epoch=1)
    ray_tune.report(trial, accuracy=0.95, epoch=2)
    return ray_tune


def test_a_new_sweep_begins_with_what_an_earlier_one_measured(tmp_path: Path) -> None:
    first = swept(tmp_path / "FIRST")
    earlier = read_sweep(tmp_path / "FIRST")
    assert earlier.space == first.searcher.session.space  # type: ignore[attr-defined]
    goal = Goal(metric="accuracy", mode="max", target=0.9, planned_runs=1)
    search = CostAwareSearch(goal, cost=WorkerHours(), known=earlier)
    again = FakeTune(search, tmp_path / "SECOND", SPACE)
    assert again.suggest() == "FINISHED"
    plan = search.plan()
    assert isinstance(plan, TunePlan)
    assert plan.trial_id == "FIRST/t1"
    assert plan.spent == 0
    assert plan.config["num_workers"] == plan.allocation.workers
    assert search.explain().startswith("known from an earlier sweep: 1 trial\n")


def test_a_plan_of_an_earlier_sweep_is_shown_live_and_in_a_report(tmp_path: Path) -> None:
    swept(tmp_path / "FIRST")
    search = CostAwareSearch(GOAL, cost=WorkerHours(), known=read_sweep(tmp_path / "FIRST"))
    FakeTune(search, tmp_path / "SECOND", SPACE)
    plan = search.plan()
    assert isinstance(plan, TunePlan)
    what = described(plan.allocation.workers, plan.allocation.batch_size, plan.recipe)
    best = glance_of(search.session, name="SECOND").best
    assert best is not None
    assert best.what == what
    assert Lines()(search.session)[-1].startswith(f"best so far: {what}: ")
    planned = sweep_of(search.session).plan
    assert planned is not None
    assert planned.what == what


def test_more_data_is_searched_with_what_is_expected(tmp_path: Path) -> None:
    swept(tmp_path / "FIRST")
    earlier = read_sweep(tmp_path / "FIRST").scaled(3)
    search = CostAwareSearch(GOAL, cost=WorkerHours(), known=earlier)
    again = FakeTune(search, tmp_path / "SECOND", SPACE)
    trial = again.suggest()
    assert trial != "FINISHED"
    again.start()
    again.report(trial, accuracy=0.95, epoch=1)
    assert isinstance(search.plan(), TunePlan)


def test_an_earlier_sweep_of_another_metric_is_refused_before_any_trial(tmp_path: Path) -> None:
    swept(tmp_path / "FIRST")
    goal = Goal(metric="loss", mode="min", target=0.1)
    search = CostAwareSearch(goal, known=read_sweep(tmp_path / "FIRST"))
    with pytest.raises(InvalidGoalError, match="metric and mode that the sweep reported"):
        FakeTune(search, tmp_path / "SECOND", SPACE)


def test_an_earlier_sweep_must_be_one() -> None:
    with pytest.raises(InvalidSpaceError, match=r"known must be an earlier sweep.*read_sweep"):
        CostAwareSearch(GOAL, known="~/ray_results/RUN")  # type: ignore[arg-type]


def test_a_wrong_argument_that_is_long_is_named_by_its_kind() -> None:
    with pytest.raises(InvalidSpaceError, match=r"known must be an earlier sweep, got a dict\. "):
        CostAwareSearch(GOAL, known={"trials": list(range(999))})  # type: ignore[arg-type]


def test_a_journal_names_its_space_and_how_the_rate_follows(tmp_path: Path) -> None:
    rate = {"learning_rate": None}
    space = {**SPACE, "batch_size": tune.choice([32, 64, 128])}
    search = CostAwareSearch(GOAL, cost=WorkerHours(), workers_per_node=2)
    ray_tune = FakeTune(search, tmp_path, space)
    ray_tune.suggest()
    sweep = read_sweep(tmp_path)
    assert sweep.space.batches == (32, 64, 128)
    assert sweep.space.workers_per_node == 2
    assert {"learning_rate": sweep.learning_rate} == rate


def test_on_other_machines_one_epoch_is_enough_for_a_plan(tmp_path: Path) -> None:
    swept(tmp_path / "FIRST")
    earlier = read_sweep(tmp_path / "FIRST").on_other_machines()
    goal = Goal(metric="accuracy", mode="max", target=0.9, planned_runs=1)
    search = CostAwareSearch(
        goal,
        cost=WorkerHours(),
        known=earlier,
        space={
            "num_workers": tune.choice([1, 2]),
            "batch_size": tune.choice([earlier.space.batches[0]]),
        },
    )
    again = FakeTune(search, tmp_path / "SECOND", {"seed": 1})
    trial = again.suggest()
    assert trial != "FINISHED"
    again.start()
    again.report(trial, accuracy=0.5, epoch=1)
    assert isinstance(search.plan(), TunePlan)


@pytest.mark.parametrize("samples", [1.0, 3.0])
def test_a_journal_holds_what_its_sweep_began_with(tmp_path: Path, samples: float) -> None:
    swept(tmp_path / "FIRST")
    earlier = read_sweep(tmp_path / "FIRST").scaled(samples)
    goal = Goal(metric="accuracy", mode="max", target=0.9, planned_runs=100)
    search = CostAwareSearch(goal, cost=WorkerHours(), known=earlier)
    again = FakeTune(search, tmp_path / "SECOND", SPACE)
    trial = again.suggest()
    assert trial != "FINISHED"
    shutil.rmtree(tmp_path / "FIRST")
    past = read_sweep(tmp_path / "SECOND")
    assert past.earlier == search.session.prior
    plan, again_plan = search.session.plan(), past.plan()
    assert type(again_plan).__name__ == ("PastPlan" if isinstance(plan, Plan) else "NoPlan")
    said = f"known from an earlier sweep: {past.earlier}"
    assert search.explain().startswith(f"{said}\n")
    assert past.explain().startswith(f"{said}\n")
    assert said in read_run(tmp_path / "SECOND").session.explain()
    assert said in sweep_of(read_run(tmp_path / "SECOND").session).notes


def test_a_third_sweep_knows_the_first_by_the_second(tmp_path: Path) -> None:
    swept(tmp_path / "FIRST")
    goal = Goal(metric="accuracy", mode="max", target=0.9, planned_runs=100)
    search = CostAwareSearch(goal, cost=WorkerHours(), known=read_sweep(tmp_path / "FIRST"))
    FakeTune(search, tmp_path / "SECOND", SPACE).suggest()
    known = read_sweep(tmp_path / "SECOND").prior(goal)
    assert [record.trial_id for record in known.records] == ["FIRST/t1", "SECOND/t1"]
    elsewhere = read_sweep(tmp_path / "FIRST").on_other_machines()
    search = CostAwareSearch(goal, cost=WorkerHours(), known=elsewhere)
    FakeTune(search, tmp_path / "THIRD", SPACE).suggest()
    known = read_sweep(tmp_path / "THIRD").prior(goal)
    assert [record.trial_id for record in known.records] == ["THIRD/t1"]


def test_the_plan_of_a_past_sweep_has_the_config_that_was_searched(tmp_path: Path) -> None:
    space = {**SPACE, "optimizer": {"lr": tune.choice([0.1])}}
    search = CostAwareSearch(GOAL, cost=WorkerHours())
    ray_tune = FakeTune(search, tmp_path, space)
    trial = ray_tune.suggest()
    ray_tune.start()
    ray_tune.report(trial, accuracy=0.95, epoch=1)
    plan, known = search.plan(), read_sweep(tmp_path).plan()
    assert isinstance(plan, TunePlan)
    assert isinstance(known, PastPlan)
    assert known.config is not None
    assert known.config == plan.config  # of the trial here, which Tune gives its constants later
    assert known.config["optimizer"] == {"lr": 0.1}
