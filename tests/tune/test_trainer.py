from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from raycosttune.tune import trainer
from raycosttune.tune.resources import DriverResources


class PlacementGroupCleanerCallback:
    """Has the name of Ray's."""


@pytest.fixture
def _ray_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ray.train.torch.TorchTrainer._create_default_callbacks",
        lambda _: [PlacementGroupCleanerCallback(), 1],
    )


def fail() -> Any:
    msg = "no such table"
    raise AttributeError(msg)


@pytest.mark.usefixtures("_ray_callbacks")
@pytest.mark.parametrize(
    ("groups", "resources", "left"),
    [(list, DriverResources({"CPU": 1.0}), 1), (fail, DriverResources({}), 2), (list, {}, 2)],
)
def test_a_run_starts_no_cleaner_of_600_mb_where_its_groups_are_watched(
    monkeypatch: pytest.MonkeyPatch, groups: Callable[[], Any], resources: object, left: int
) -> None:
    context = SimpleNamespace(get_trial_resources=lambda: resources)
    monkeypatch.setattr(trainer, "job_groups", groups)
    monkeypatch.setattr("ray.tune.get_context", lambda: context)
    made: Any = trainer.trainer_class()
    assert len(made._create_default_callbacks(object.__new__(made))) == left


def test_ray_still_names_its_cleaner_so() -> None:
    from ray.train.v2._internal.callbacks import placement_group_callback  # noqa: PLC0415 - private
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer  # noqa: PLC0415

    assert hasattr(placement_group_callback, trainer.CLEANER)
    assert hasattr(DataParallelTrainer, "_create_default_callbacks")
