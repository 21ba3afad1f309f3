from collections.abc import Callable
from inspect import signature
from types import SimpleNamespace
from typing import Any

import pytest
from ray import cloudpickle
from ray.tune import PlacementGroupFactory

from raycosttune.tune import collector, trainer
from raycosttune.tune.resources import DriverResources


class PlacementGroupCleanerCallback:
    """Has the name of Ray's."""


@pytest.fixture
def _ray_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ray.train.torch.TorchTrainer._create_default_callbacks",
        lambda _: [PlacementGroupCleanerCallback(), 1],
    )


def reserved(monkeypatch: pytest.MonkeyPatch, groups: Callable[[], Any]) -> DriverResources:
    """Reserves for a driver in a process that can read Ray's tables, or can't."""
    monkeypatch.setattr(collector, "job_groups", groups)
    monkeypatch.setattr(collector.WATCH, "watch", lambda: None)
    monkeypatch.setattr(PlacementGroupFactory, "to_placement_group", lambda _: "group")
    resources = DriverResources({"CPU": 1.0})
    resources.to_placement_group()
    return resources


def fail() -> Any:
    msg = "no such table"
    raise AttributeError(msg)


@pytest.mark.usefixtures("_ray_callbacks")
@pytest.mark.parametrize(
    ("groups", "is_ours", "left"), [(list, True, 1), (fail, True, 2), (list, False, 2)]
)
def test_a_run_starts_no_cleaner_of_600_mb_where_its_groups_are_watched(
    monkeypatch: pytest.MonkeyPatch, groups: Callable[[], Any], is_ours: bool, left: int
) -> None:
    resources = cloudpickle.loads(cloudpickle.dumps(reserved(monkeypatch, groups)))
    context = SimpleNamespace(get_trial_resources=lambda: resources if is_ours else {"cpu": 1})
    monkeypatch.setattr("ray.tune.get_context", lambda: context)
    made: Any = trainer.trainer_class()
    assert len(made._create_default_callbacks(object.__new__(made))) == left


class DatasetsCallback:
    """Has the name of Ray's, and would start a process for its datasets."""

    def __init__(self, datasets: dict[str, object]) -> None:
        self._datasets = datasets

    def before_init_train_context(self, workers: list[object]) -> dict[str, list[Any]]:
        return {"dataset_shard_provider": ["a process"] * len(workers)}


def given(datasets: dict[str, object]) -> list[Any]:
    """Returns what two workers are given for their datasets, through a pickle as Ray's are."""
    callback = DatasetsCallback(datasets)
    trainer.spare_manager(callback)
    sent = cloudpickle.loads(cloudpickle.dumps(callback))
    (providers,) = sent.before_init_train_context([1, 2]).values()
    return list(cloudpickle.loads(cloudpickle.dumps(providers)))


def test_a_run_without_datasets_starts_no_process_for_them() -> None:
    assert given({"train": 1}) == ["a process"] * 2
    providers = given({})
    assert len(providers) == 2
    for provider in providers:
        with pytest.raises(KeyError, match="Ray Train's dataset 'train'"):
            provider.get_dataset_shard(SimpleNamespace(dataset_name="train", world_rank=0))


def test_the_trainer_spares_its_callback_for_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    callbacks = [DatasetsCallback({}), PlacementGroupCleanerCallback()]
    made: Any = trainer.trainer_class()
    monkeypatch.setattr(trainer, "is_watched", lambda: False)
    monkeypatch.setattr(
        "ray.train.torch.TorchTrainer._create_default_callbacks", lambda _: callbacks
    )
    assert made._create_default_callbacks(object.__new__(made)) == callbacks
    assert callbacks[0].before_init_train_context is trainer.no_datasets  # type: ignore[attr-defined]


def test_ray_still_gives_its_workers_their_datasets_so() -> None:
    from ray.train.v2._internal.callbacks.datasets import (  # noqa: PLC0415 - private
        DatasetsCallback as Own,
    )
    from ray.train.v2._internal.execution.worker_group.worker import (  # noqa: PLC0415 - private
        RayTrainWorker,
    )

    callback: Any = Own(SimpleNamespace(dataset_config=None), {})  # type: ignore[arg-type] # a fake
    trainer.spare_manager(callback)
    assert callback.before_init_train_context is trainer.no_datasets
    taken = signature(RayTrainWorker.init_train_context).parameters
    assert trainer.no_datasets([1]).keys() <= taken.keys()


def test_ray_still_names_its_cleaner_so() -> None:
    from ray.train.v2._internal.callbacks import placement_group_callback  # noqa: PLC0415 - private
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer  # noqa: PLC0415 - private

    assert hasattr(placement_group_callback, trainer.CLEANER)
    assert hasattr(DataParallelTrainer, "_create_default_callbacks")
