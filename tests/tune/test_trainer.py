from collections.abc import Callable
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


def test_ray_still_names_its_cleaner_so() -> None:
    from ray.train.v2._internal.callbacks import placement_group_callback  # noqa: PLC0415 - private
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer  # noqa: PLC0415

    assert hasattr(placement_group_callback, trainer.CLEANER)
    assert hasattr(DataParallelTrainer, "_create_default_callbacks")
