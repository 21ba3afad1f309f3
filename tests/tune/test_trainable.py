from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray import cloudpickle

from raycosttune.core.goal import Goal
from raycosttune.errors import InvalidSpaceError, InvalidTrainableError
from raycosttune.tune.folder import local_folder
from raycosttune.tune.resources import DriverResources, WorkerResources, workers_in
from raycosttune.tune.search import CostAwareSearch
from raycosttune.tune.trainable import (
    _wait_for_reports,
    elastic,
    function_trainable,
    torch_trainable,
)


def loop(config: dict[str, Any]) -> None:
    del config


class Trainer:
    def fit(self) -> None:
        pass

    def __call__(self, config: dict[str, Any]) -> None:
        pass


@pytest.mark.parametrize("make", [torch_trainable, function_trainable])
@pytest.mark.parametrize("value", [Trainer(), Trainer, "loop", None])
def test_only_a_function_can_be_trained(make: Any, value: object) -> None:
    with pytest.raises(InvalidTrainableError, match="the training function itself"):
        make(value)


def test_a_training_run_reserves_nothing_but_says_what_its_workers_need() -> None:
    trainable: Any = torch_trainable(loop, resources_per_worker={"CPU": 2}, use_gpu=True)
    resources = trainable._resources
    assert isinstance(resources, DriverResources)
    assert resources.resources_per_worker == {"CPU": 2, "GPU": 1.0}
    assert "CPU" not in resources.required_resources
    assert trainable.__name__ == "loop"


def test_a_plain_function_reserves_all_its_workers() -> None:
    trainable: Any = function_trainable(loop, workers_key="cluster/workers")
    resources = trainable._resources({"cluster": {"workers": 3}})
    assert isinstance(resources, WorkerResources)
    assert resources.required_resources == {"CPU": 3.0}
    assert trainable({"cluster": {"workers": 3}}) is None


def test_what_workers_need_survives_a_pickle() -> None:
    for resources in (DriverResources({"CPU": 2}), WorkerResources(2, {"CPU": 2})):
        again = cloudpickle.loads(cloudpickle.dumps(resources))
        assert again == resources
        assert again.resources_per_worker == {"CPU": 2}


def test_the_worker_count_is_found_where_it_lies() -> None:
    assert workers_in({"num_workers": 2}, "num_workers") == 2
    assert workers_in({"a": {"b": 3}}, "a/b") == 3
    assert workers_in({"a/b": 4}, "a/b") == 4


@pytest.mark.parametrize("config", [{"num_workers": 2}, {"a": 3}, {}])
def test_a_config_without_the_worker_count_is_told(config: dict[str, Any]) -> None:
    trainable: Any = function_trainable(loop, workers_key="a/b")
    with pytest.raises(InvalidTrainableError, match=r'got "a/b".*the same workers_key') as caught:
        trainable._resources(config)
    assert f"the config has {sorted(config)}" in str(caught.value)


@pytest.mark.parametrize("make", [torch_trainable, function_trainable])
@pytest.mark.parametrize("resources", [{"CPU": "1"}, {"CPU": -1}, [1], 3])
def test_unusable_resources_are_refused(make: Any, resources: object) -> None:
    with pytest.raises(InvalidSpaceError, match=r"resources_per_worker must map names"):
        make(loop, resources_per_worker=resources)


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        (None, {"CPU": 1}),
        ({}, {"CPU": 1}),
        ({"GPU": 1}, {"CPU": 1, "GPU": 1}),
        ({"CPU": 0, "GPU": 1}, {"CPU": 0, "GPU": 1}),
        ({"memory": 10}, {"CPU": 1, "memory": 10}),
    ],
)
def test_what_is_given_adds_to_one_cpu_everywhere(
    given: dict[str, float] | None, needed: dict[str, float]
) -> None:
    train: Any = torch_trainable(loop, resources_per_worker=given)
    plain: Any = function_trainable(loop, resources_per_worker=given)
    search = CostAwareSearch(Goal(target=0.9), resources_per_worker=given)
    assert train._resources.resources_per_worker == needed
    assert plain._resources({"num_workers": 2}).resources_per_worker == needed
    assert search._setup.resources_per_worker == needed


@pytest.mark.parametrize("make", [torch_trainable, function_trainable])
def test_a_worker_needs_something(make: Any) -> None:
    with pytest.raises(InvalidSpaceError, match=r"one of them above 0, got \{'CPU': 0\}"):
        make(loop, resources_per_worker={"CPU": 0})


@pytest.mark.parametrize("samples", [0, -1, 1.5, "600", True])
def test_samples_are_counted(samples: Any) -> None:
    with pytest.raises(InvalidTrainableError, match=r"samples must be .*got"):
        torch_trainable(loop, samples=samples)
    with pytest.raises(InvalidTrainableError, match=r"min_workers must be .*got"):
        torch_trainable(loop, min_workers=samples)


@pytest.mark.parametrize(
    ("workers", "least", "taken"), [(4, None, 4), (4, 2, (2, 4)), (4, 4, 4), (2, 4, 2)]
)
def test_an_elastic_run_takes_at_most_the_workers_of_its_trial(
    workers: int, least: int | None, taken: int | tuple[int, int]
) -> None:
    assert elastic(workers, least) == taken


def test_a_worker_on_a_gpu_may_need_no_cpu() -> None:
    trainable: Any = torch_trainable(loop, resources_per_worker={"CPU": 0}, use_gpu=True)
    assert trainable._resources.resources_per_worker == {"CPU": 0, "GPU": 1}


def test_a_driver_waits_until_its_reports_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    class Queue:
        waits = 3

        def empty(self) -> bool:
            self.waits -= 1
            return self.waits < 0

    queue = Queue()
    monkeypatch.setattr("raycosttune.tune.trainable.HANDOVER_SECONDS", 0.0)
    _wait_for_reports(SimpleNamespace(_training_actor_item_queue=queue))
    assert queue.waits < 0


def test_a_hidden_queue_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("raycosttune.tune.trainable.HANDOVER_SECONDS", 0.0)
    _wait_for_reports(object())
    assert "hides its report queue" in caplog.text


def test_files_of_remote_experiments_lie_in_the_staging_folder() -> None:
    storage = SimpleNamespace(
        storage_filesystem=SimpleNamespace(type_name="s3"),
        experiment_fs_path="bucket/sweep",
        experiment_driver_staging_path="/staging/sweep",
    )
    assert local_folder(storage) == Path("/staging/sweep")
    storage.storage_filesystem.type_name = "local"
    assert local_folder(storage) == Path("bucket/sweep")
