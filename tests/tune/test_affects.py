"""Hyperparameters that are declared to change how long an epoch takes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ray import tune

from raycosttune import LearningRate, WorkerHours, read_sweep
from raycosttune.core.plan import Plan
from raycosttune.errors import InvalidSpaceError
from raycosttune.results.past_plan import PastPlan
from raycosttune.results.replay import merge_rows
from raycosttune.train import keys
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTune, journal, session_of
from tests.tune.profiles import begin, profile_of, tell

PRECISIONS = {**SPACE, "model": {"precision": tune.choice(["fp32", "bf16"])}}
NAME = "model/precision"
SECONDS = {"fp32": 10.0, "bf16": 5.0}
EPOCHS = {"fp32": 5, "bf16": 6}


def make_search(**settings: Any) -> CostAwareSearch:
    return CostAwareSearch(
        replace(GOAL, planned_runs=100), cost=WorkerHours(), affects_time=(NAME,), **settings
    )


def swept(folder: Path, search: CostAwareSearch) -> FakeTune:
    """Runs a sweep whose epochs are faster, and a few more, with bf16."""
    ray_tune = FakeTune(search, folder, PRECISIONS)
    while (trial := ray_tune.suggest()) != "FINISHED":
        ray_tune.start()
        precision, n = trial.config["model"]["precision"], trial.config["num_workers"]
        for epoch in range(1, 20):
            value = 0.95 if epoch >= EPOCHS[precision] else 0.5
            seconds = SECONDS[precision] * (1 / n + 0.2)
            told = {keys.SECONDS: seconds, keys.STARTUP_SECONDS: 0.0, keys.ATTEMPT: 1}
            if ray_tune.report(trial, accuracy=value, epoch=epoch, **told) == "STOP":
                break
    return ray_tune


def test_a_sweep_plans_the_recipe_that_takes_less_time_and_its_journal_says_so(
    tmp_path: Path,
) -> None:
    points = [{"model": {"precision": precision}} for precision in ("fp32", "bf16")]
    search = make_search(points_to_evaluate=points)
    sweep = session_of(swept(tmp_path, search))
    plan = search.plan()
    assert isinstance(plan, Plan)
    assert plan.config["model"] == {"precision": "bf16"}
    told = f"{NAME}=bf16: an epoch takes 0.5 times as long as with {NAME}=fp32 ("
    assert told in search.explain()
    assert journal(tmp_path)[0]["cells"]["affects_time"] == [NAME]
    past = read_sweep(tmp_path)
    assert past.space.affects_time == (NAME,)
    anew = past.plan(cost=WorkerHours(), goal=sweep.goal)
    assert isinstance(anew, PastPlan)
    assert (anew.recipe, anew.predicted_seconds) == (plan.recipe, plan.predicted_seconds)
    again = make_search()
    again.set_search_properties(None, None, PRECISIONS)
    merge_rows(again.session, journal(tmp_path))
    assert again.session.plan() == sweep.plan()
    assert again.session.known.times.names == sweep.known.times.names


def test_a_profile_times_the_recipe_that_it_names_and_the_journal_keeps_it(tmp_path: Path) -> None:
    ray_tune, trial = begin(tmp_path, affects_time=())
    assert profile_of(ray_tune, trial).profile.recipe is None
    folder = tmp_path / "declared"
    search = CostAwareSearch(replace(GOAL, planned_runs=1000), profile=True, affects_time=(NAME,))
    other = FakeTune(search, folder, PRECISIONS, factory=ray_tune.factory)
    asked = other.suggest()
    other.start()
    recipe = profile_of(other, asked).profile.recipe
    assert recipe == {NAME: asked.config["model"]["precision"]}
    tell(other, asked)
    names = session_of(other).known.times.names
    assert names == (session_of(other).space.time_class(recipe),)
    again = CostAwareSearch(search.goal, profile=True, affects_time=(NAME,))
    again.set_search_properties(None, None, PRECISIONS)
    merge_rows(again.session, journal(folder))
    assert again.session.known.times.names == names
    assert again.session.profiles == session_of(other).profiles


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("num_workers",), 'got "num_workers", the key of the workers. Leave it out'),
        (("batch_size",), 'got "batch_size", the key of the batch. Leave it out'),
        (("node_type",), 'got "node_type", the key of the type of machine. Leave it out'),
        (("lr",), 'got "lr", the learning rate, which changes no time. Leave it out'),
        (("seed",), r'got "seed", none of them. The domains of the search space are \['),
        (("precison",), r"none of them. The domains .* are \['decay', 'lr', 'model/precision',"),
        (("decay",), 'at most 8 combinations of values, got "decay" with any number of values'),
        (("model/precision", "width"), '"model/precision" with 2 values, "width" with 5 values'),
        (("stepped",), '"stepped" with 9 values'),
    ],
)
def test_a_name_that_can_not_be_kept_apart_is_refused_before_any_trial(
    names: tuple[str, ...], message: str
) -> None:
    space = {
        **PRECISIONS,
        "lr": tune.loguniform(0.1, 1),
        "decay": tune.uniform(0, 1),
        "width": tune.randint(1, 6),
        "stepped": tune.qrandint(8, 72, 8),
        "node_type": tune.choice(["a", "b"]),
    }
    rate = LearningRate(reference_batch=32)
    search = CostAwareSearch(GOAL, affects_time=names, learning_rate=rate)
    with pytest.raises(InvalidSpaceError, match=message):
        search.set_search_properties(None, None, space)
    with pytest.raises(InvalidSpaceError, match=message):
        CostAwareSearch(GOAL, affects_time=names, learning_rate=rate, space=space)
    assert CostAwareSearch(GOAL, affects_time=("width",)).set_search_properties(None, None, space)
