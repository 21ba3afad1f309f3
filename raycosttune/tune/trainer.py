"""Ray's trainer for PyTorch without the process that it starts beside each run."""

from typing import TYPE_CHECKING, Any

from ray import tune

from raycosttune.tune.resources import DriverResources

if TYPE_CHECKING:
    from ray.train.torch import TorchTrainer

CLEANER = "PlacementGroupCleanerCallback"


def trainer_class() -> "type[TorchTrainer]":
    """Returns a TorchTrainer that leaves its placement groups to this package's collector.

    Ray's own cleaner is a detached process of some 600 MB for each run. Where there is no
    dashboard it never ends once the run was stopped, nor when the sweep's driver has died. It
    stays where nobody watches the run's groups, or Tune's process can't read Ray's tables.
    """
    from ray.train.torch import TorchTrainer  # noqa: PLC0415 - needs torch

    class SweptTrainer(TorchTrainer):
        def _create_default_callbacks(self) -> list[Any]:
            callbacks: list[Any] = super()._create_default_callbacks()  # type: ignore[misc] # mypy reads V1
            return without_cleaner(callbacks) if is_watched() else callbacks

    return SweptTrainer


def without_cleaner(callbacks: list[Any]) -> list[Any]:
    """Returns the callbacks of a run but the one that starts Ray's cleaner."""
    return [callback for callback in callbacks if type(callback).__name__ != CLEANER]


def is_watched() -> bool:
    """Tells whether this trial's placement groups are found and removed when it has ended."""
    resources = tune.get_context().get_trial_resources()
    return isinstance(resources, DriverResources) and resources.is_swept
