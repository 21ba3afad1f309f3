import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import tune

from raycosttune.core.goal import Goal
from raycosttune.core.plan import NoPlan
from raycosttune.errors import InvalidStateError
from raycosttune.tune.plan import TunePlan
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTune, session_of, write_run

QUESTIONS = ("plan", "estimate", "explain", "pareto")


def tuner_of(
    search: CostAwareSearch, folder: Path | None = None, ray_tune: FakeTune | None = None
) -> Any:
    """Makes the parts of a tuner that are read: a new one's, or a restored one's."""
    run = SimpleNamespace(storage_path=str(folder and folder.parent), name=folder and folder.name)
    trials = [] if ray_tune is None else ray_tune.trials
    local = SimpleNamespace(
        _tune_config=SimpleNamespace(search_alg=search),
        _is_restored=folder is not None,
        _experiment_analysis=SimpleNamespace(trials=trials),
        get_run_config=lambda: run,
    )
    return SimpleNamespace(_local_tuner=local)


def run_trial(folder: Path, *, state: str = "searcher-state-1.pkl", **reports: Any) -> FakeTune:
    """Runs a trial to the target, with a state saved after its first report."""
    ray_tune = FakeTune(CostAwareSearch(GOAL), folder, SPACE)
    trial = ray_tune.suggest("t1")
    trial.config["seed"] = SPACE["seed"]
    ray_tune.start()
    ray_tune.report(trial, accuracy=0.5, epoch=1, **reports)
    if state:
        ray_tune.searcher.save(str(folder / state))
    ray_tune.report(trial, accuracy=0.95, epoch=2, **reports)
    return ray_tune


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("is_restored", [False, True])
def test_a_search_that_has_not_run_says_to_call_fit_first(
    tmp_path: Path, question: str, is_restored: bool
) -> None:
    tuner = tuner_of(CostAwareSearch(GOAL), tmp_path if is_restored else None)
    with pytest.raises(InvalidStateError, match=rf"{question}\(\) must .*Call fit\(\)"):
        getattr(CostAwareSearch.of(tuner), question)()


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_search_whose_metric_has_not_arrived_says_so_too(question: str) -> None:
    search = CostAwareSearch(Goal(target=0.9), space=SPACE)
    with pytest.raises(InvalidStateError, match=r"Call fit\(\)"):
        getattr(search, question)()


@pytest.mark.parametrize(
    ("goal", "space", "missing"),
    [
        (GOAL, None, "the space to CostAwareSearch(space=...)"),
        (Goal(target=0.9), SPACE, "metric and mode to the Goal"),
        (Goal(target=0.9, metric="loss"), SPACE, "mode to the Goal"),
        (
            Goal(target=0.9, mode="max"),
            None,
            "the space to CostAwareSearch(space=...), and metric to the Goal",
        ),
    ],
)
def test_an_estimate_names_what_is_missing(
    goal: Goal, space: dict[str, Any] | None, missing: str
) -> None:
    with pytest.raises(InvalidStateError) as caught:
        CostAwareSearch(goal, space=space).estimate()
    assert str(caught.value).endswith(f"for an estimate before that give {missing}.")


@pytest.mark.parametrize(
    ("metric", "space", "why"),
    [
        ("accuracy", {**SPACE, "num_workers": [1, 2]}, '"num_workers" must hold whole numbers'),
        ("loss", SPACE, "metric must be the same"),
    ],
)
def test_after_a_failed_start_its_error_is_said_again(
    metric: str, space: dict[str, Any], why: str
) -> None:
    search = CostAwareSearch(GOAL)
    with pytest.raises(ValueError, match=why):
        search.set_search_properties(metric, "max", space)
    for question in QUESTIONS:
        with pytest.raises(InvalidStateError, match=f"whose start failed: {why}"):
            getattr(search, question)()
    search.set_search_properties("accuracy", "max", SPACE)
    assert isinstance(search.plan(), NoPlan)


def test_a_search_with_its_space_says_a_failed_start_again_too() -> None:
    search = CostAwareSearch(GOAL, space=SPACE)
    with pytest.raises(ValueError, match="metric must be the same"):
        search.set_search_properties("loss", "max", {})
    for question in QUESTIONS:
        with pytest.raises(InvalidStateError, match="whose start failed: metric must be the same"):
            getattr(search, question)()
    search.set_search_properties("accuracy", "max", {})
    assert isinstance(search.plan(), NoPlan)


def test_a_restored_run_is_known_before_it_goes_on(tmp_path: Path) -> None:
    ran = run_trial(tmp_path)
    left: Any = ran.searcher
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    search = CostAwareSearch.of(tuner_of(CostAwareSearch(GOAL), tmp_path, ran))
    plan = search.plan()
    assert isinstance(plan, TunePlan)
    assert plan == left.plan()
    assert plan.config["seed"] == SPACE["seed"]
    assert search.explain() == left.explain()
    told = search.metric_at(plan.allocation.batch_size, 1)
    assert told is not None
    assert told == left.metric_at(plan.allocation.batch_size, 1)
    assert search.estimate().spent == left.estimate().spent > 0
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    search.restore(str(tmp_path / "searcher-state-1.pkl"))
    assert len(search.session.records) == 1


def test_a_trial_that_tune_forgot_has_the_constants_of_the_others(tmp_path: Path) -> None:
    ran = run_trial(tmp_path)
    other = SimpleNamespace(trial_id="t0", config={"num_workers": 1, "batch_size": 1, "seed": 1})
    known: Any = SimpleNamespace(trials=[other])
    plan = CostAwareSearch.of(tuner_of(CostAwareSearch(GOAL), tmp_path, known)).plan()
    assert isinstance(plan, TunePlan)
    assert plan.config == {**ran.trials[0].config}


def test_reports_that_only_the_run_itself_wrote_are_known(tmp_path: Path) -> None:
    ray_tune = FakeTune(CostAwareSearch(GOAL), tmp_path, SPACE)
    ray_tune.suggest("t1")
    ray_tune.searcher.save(str(tmp_path / "searcher-state-1.pkl"))
    write_run(tmp_path, "t1", [(1, 1, 0.95)])
    search = CostAwareSearch.of(tuner_of(CostAwareSearch(GOAL), tmp_path, ray_tune))
    assert not isinstance(search.plan(), NoPlan)


@pytest.mark.parametrize("content", [b"{", b'{"version": 1}', None])
def test_a_run_whose_state_is_lost_is_known_by_its_journal(
    tmp_path: Path, content: bytes | None
) -> None:
    ran = run_trial(tmp_path)
    state = tmp_path / "searcher-state-1.pkl"
    state.unlink()
    if content is not None:
        state.write_bytes(content)
    search = CostAwareSearch.of(tuner_of(CostAwareSearch(Goal(target=0.9)), tmp_path, ran))
    left: Any = ran.searcher
    assert search.plan() == left.plan()


@pytest.mark.parametrize("header", [{}, {"space": {}}, {"space": 1, "goal": 1}, {"goal": {}}])
def test_a_journal_that_lacks_its_space_or_goal_tells_nothing_without_a_state(
    tmp_path: Path, header: dict[str, Any]
) -> None:
    ran = run_trial(tmp_path, state="")
    path = tmp_path / "raycosttune" / "journal.jsonl"
    first, *rows = path.read_text().splitlines()
    known = {key: value for key, value in json.loads(first).items() if key != "space"}
    path.write_text("\n".join([json.dumps({**known, **header}), *rows]) + "\n")
    search = CostAwareSearch.of(tuner_of(CostAwareSearch(GOAL), tmp_path, ran))
    with pytest.raises(InvalidStateError, match=r"Call fit\(\)"):
        search.plan()


@pytest.mark.parametrize("content", [b"{", b'{"version": 1}'])
def test_what_is_damaged_is_left_where_it_lies(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    ran = run_trial(tmp_path)
    (tmp_path / "searcher-state-1.pkl").write_bytes(content)
    space = {"num_workers": SPACE["num_workers"], "batch_size": SPACE["batch_size"], "seed": 1}
    search = CostAwareSearch.of(tuner_of(CostAwareSearch(GOAL, space=space), tmp_path, ran))
    with caplog.at_level(logging.WARNING):
        assert isinstance(search.plan(), TunePlan)
    assert "can't be read" in caplog.text
    assert (tmp_path / "searcher-state-1.pkl").read_bytes() == content


def test_the_session_and_the_journal_may_be_damaged_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ran = run_trial(tmp_path)
    state = tmp_path / "searcher-state-1.pkl"
    changed = state.read_text().replace('"elapsed_seconds"', '"elapsed"').replace("sha256", "was")
    state.write_text(changed)
    journal = tmp_path / "raycosttune" / "journal.jsonl"
    search = CostAwareSearch.of(tuner_of(CostAwareSearch(GOAL), tmp_path, ran))
    with caplog.at_level(logging.WARNING):
        assert isinstance(search.plan(), TunePlan)
        journal.write_text("no JSON\n")
        assert isinstance(search.plan(), NoPlan)
    assert "saved search can't be read" in caplog.text
    assert "journal can't be read" in caplog.text
    assert state.exists()


def test_a_run_on_other_machines_asks_for_its_cluster(tmp_path: Path) -> None:
    ray_tune = FakeTune(CostAwareSearch(GOAL, workers_per_node=1), tmp_path, SPACE)
    ray_tune.suggest("t1")
    session_of(ray_tune).records["t1"].allocation = session_of(ray_tune).space.cells[-1]
    ray_tune.searcher.save(str(tmp_path / "searcher-state-1.pkl"))
    search = CostAwareSearch.of(tuner_of(CostAwareSearch(GOAL), tmp_path, ray_tune))
    with pytest.raises(InvalidStateError, match=r"nodes=2.*Call fit\(\) first, or connect"):
        search.plan()


def test_a_folder_that_is_not_local_can_not_be_read() -> None:
    tuner = tuner_of(CostAwareSearch(GOAL), Path("s3://bucket/sweep"))
    with pytest.raises(InvalidStateError, match=r"Call fit\(\)"):
        CostAwareSearch.of(tuner).plan()


def test_a_sweep_under_way_is_told_of_rather_than_its_past(tmp_path: Path) -> None:
    ran = run_trial(tmp_path)
    search = CostAwareSearch(GOAL)
    CostAwareSearch.of(tuner_of(search, tmp_path, ran))
    search.set_search_properties(None, None, {**SPACE, "batch_size": tune.choice([32])})
    assert isinstance(search.plan(), NoPlan)
