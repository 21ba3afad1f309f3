"""Symptoms that users of Ray have told of; tests/threads.md has them all, with their tests."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import ray
from ray import tune
from ray._private.state import state
from ray.core.generated import gcs_pb2
from ray.tune import PlacementGroupFactory
from ray.tune.experiment import Trial
from ray.tune.search import ConcurrencyLimiter, Searcher

from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause
from raycosttune.errors import InvalidSpaceError, InvalidTrainableError
from raycosttune.tune import torch_trainable
from raycosttune.tune.collector import job_groups
from raycosttune.tune.placement import own_use
from raycosttune.tune.plan import TunePlan
from raycosttune.tune.search import CostAwareSearch
from tests.tune.fakes import GOAL, SPACE, FakeTrial, FakeTune, begin, session_of

TESTS = Path(__file__).parents[1]
THREADS = 30
AT_LEAST = 22
tables: Any = gcs_pb2


def test_each_thread_has_a_test_or_a_line_in_the_limits() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (TESTS / "threads.md").read_text().splitlines()
        if re.match(r"\|\s*\d+", line)
    ]
    assert [int(row[0]) for row in rows] == list(range(1, THREADS + 1))
    tested = 0
    for row in rows:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", row[-1])
        tested += bool(named)
        assert named or "docs/limits.md" in row[-1], row
        for path, name in named:
            assert f"def {name}(" in (TESTS / path).read_text(), (path, name)
    assert tested >= AT_LEAST


class Tables:
    """Stands for Ray's tables of placement groups and actors."""

    def __init__(self, *groups: Any, **actors: bool) -> None:
        self.groups, self.actors = groups, actors

    def get_placement_group_table(self) -> list[bytes]:
        return [group.SerializeToString() for group in self.groups]

    def get_actor_info(self, actor: ray.ActorID) -> bytes | None:
        is_alive = self.actors.get(f"a{actor.binary()[0]}")
        if is_alive is None:
            return None
        kind = tables.ActorTableData
        info: bytes = kind(state=kind.ALIVE if is_alive else kind.DEAD).SerializeToString()
        return info


JOB = b"\1\0\0\0"


def group(name: int, creator: int, status: str, **more: Any) -> Any:
    kind = tables.PlacementGroupTableData
    made = kind(
        placement_group_id=bytes([name]) + bytes(13) + JOB,
        creator_job_id=JOB,
        creator_actor_id=bytes([creator]) + bytes(11) + JOB,
        state=getattr(kind, status),
        **more,
    )
    made.bundles.add(unit_resources={"CPU": 2.0}, node_id=b"\xab" if status == "CREATED" else b"")
    return made


def test_a_group_that_was_pending_when_its_trial_died_is_an_orphan_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ray's own cleaner never hears of a group that was not created yet."""
    shown = Tables(
        group(1, 1, "PENDING"),
        group(2, 2, "CREATED"),
        group(3, 1, "REMOVED"),
        group(4, 3, "PENDING", is_detached=True),
        group(5, 4, "CREATED"),
        a1=False,
        a2=True,
    )
    monkeypatch.setattr(state, "_connect_and_get_accessor", lambda: shown)
    context = SimpleNamespace(get_job_id=JOB.hex)
    monkeypatch.setattr("ray.get_runtime_context", lambda: context)
    found = {g.id.binary()[0]: is_dead for g, is_dead in job_groups()}
    assert found == {1: True, 2: False, 5: True}
    assert own_use() == {"ab": {"CPU": 4.0}}


@pytest.mark.parametrize(
    "resources",
    [PlacementGroupFactory([{"CPU": 1}] * 3), PlacementGroupFactory([{"memory": 1}, {"CPU": 1}])],
)
def test_workers_reserved_by_tune_for_a_run_of_ray_train_are_refused(
    monkeypatch: pytest.MonkeyPatch, resources: PlacementGroupFactory
) -> None:
    """Ray Train reserves them again, and the trial waits for ever."""
    context = SimpleNamespace(get_trial_resources=lambda: resources)
    monkeypatch.setattr("ray.tune.get_context", lambda: context)
    trainable = tune.with_resources(torch_trainable(lambda _: None), resources)
    with pytest.raises(InvalidTrainableError, match=r"Ray Train reserves the workers .* itself"):
        trainable({"num_workers": 2})


def test_a_scheduler_s_stop_and_a_deadline_of_each_trial_go_together(tmp_path: Path) -> None:
    """A limit for each trial beside Tune's own `stop`."""
    goal = Goal(metric="accuracy", mode="max", target=0.9, deadline_seconds=5.0)
    ray_tune = FakeTune(CostAwareSearch(goal, max_concurrent=4), tmp_path, SPACE)
    late, stopped = ray_tune.suggest(), ray_tune.suggest()
    while ray_tune.start() is not None:
        pass
    assert ray_tune.report(late, accuracy=0.1, epoch=1, time_this_iter_s=6.0) == "STOP"
    ray_tune.report(stopped, accuracy=0.1, epoch=1)
    stopped.last_result["done"] = True
    ray_tune.stop_trial(stopped)  # as Tune does for its own `stop`
    ends = [session_of(ray_tune).records[t.trial_id].ended.cause for t in (late, stopped)]
    assert ends[0] is EndCause.STOPPED
    assert ends[1] in (EndCause.STOPPED, EndCause.FINISHED)


def test_keys_four_deep_and_a_nested_metric_are_found(tmp_path: Path) -> None:
    space = {
        "a": {"b": {"c": {"workers": tune.choice([1, 2]), "lr": tune.uniform(0.1, 0.2)}}},
        "loader": {"size": {"of": {"batch": tune.choice([32, 64])}}},
    }
    goal = Goal(metric="val/top/1", mode="max", target=0.9)
    search = CostAwareSearch(goal, workers_key="a/b/c/workers", batch_key="loader/size/of/batch")
    ray_tune = FakeTune(search, tmp_path, space)
    trial = ray_tune.suggest()
    ray_tune.start()
    assert ray_tune.report(trial, **{"val/top/1": 0.95, "epoch": 1}) == "STOP"
    plan = search.plan()
    assert isinstance(plan, TunePlan)
    config = plan.config
    assert config["a"]["b"]["c"]["workers"] in (1, 2)
    assert 0.1 <= config["a"]["b"]["c"]["lr"] <= 0.2
    assert config["loader"]["size"]["of"]["batch"] in (32, 64)


@pytest.mark.parametrize("space", [lambda _: {"num_workers": 1}, [SPACE], "num_workers"])
def test_a_space_that_is_no_mapping_is_refused_with_what_to_write(space: Any) -> None:
    """A space that is defined while it runs."""
    with pytest.raises(InvalidSpaceError, match="space must be "):
        CostAwareSearch(GOAL, space=space)


def test_four_trials_overlap_where_four_may(tmp_path: Path) -> None:
    """A limit of Tune's that is ignored, or trials one by one."""
    limited = ConcurrencyLimiter(CostAwareSearch(GOAL, max_concurrent=8), max_concurrent=4)
    ray_tune = FakeTune(limited, tmp_path, SPACE)
    trials = [ray_tune.suggest() for _ in range(5)]
    assert [isinstance(trial, FakeTrial) for trial in trials] == [True] * 4 + [False]
    while ray_tune.start() is not None:
        pass
    assert [trial.status for trial in trials[:4]] == [Trial.RUNNING] * 4


def test_a_limiter_in_batches_around_a_search_that_limits_itself_ends(tmp_path: Path) -> None:
    """It blocked for ever."""
    limited = ConcurrencyLimiter(CostAwareSearch(GOAL, max_concurrent=2), 4, batch=True)
    ray_tune = FakeTune(limited, tmp_path, SPACE)
    for _ in range(100):
        trial = ray_tune.suggest()
        if trial == Searcher.FINISHED:
            break
        running = [t for t in ray_tune.trials if t.status == Trial.RUNNING]
        assert trial is not None or running, "nothing runs, and nothing is suggested"
        if isinstance(trial, FakeTrial):
            ray_tune.start()
            continue
        ray_tune.report(running[0], accuracy=0.95, epoch=1)
    else:
        pytest.fail("the search never ends")
    assert all(trial.status == Trial.TERMINATED for trial in ray_tune.trials)


def test_numbers_of_numpy_are_taken_as_metrics(tmp_path: Path) -> None:
    """Values that no JSON can hold."""
    ray_tune, (trial,) = begin(tmp_path)
    ray_tune.report(trial, accuracy=np.float32(0.5), epoch=np.int64(1), other=np.zeros(3))
    (report,) = session_of(ray_tune).records[trial.trial_id].reports
    assert (type(report.value), type(report.epoch)) == (float, float)
    ray_tune.searcher.save(str(tmp_path / "state"))
    assert (tmp_path / "state").exists()
