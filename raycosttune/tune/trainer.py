"""Ray's trainer for PyTorch without the processes that it starts beside each run for nothing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ray import tune

from raycosttune.tune.resources import DriverResources

if TYPE_CHECKING:
    from ray.train.torch import TorchTrainer

CLEANER = "PlacementGroupCleanerCallback"
DATASETS = "DatasetsCallback"


def trainer_class() -> "type[TorchTrainer]":
    """Returns a TorchTrainer that leaves its placement groups to this package's collector.

    Ray's own cleaner is a detached process of some 600 MB for each run. Where there is no
    dashboard it never ends once the run was stopped, nor when the sweep's driver has died. It
    stays where nobody watches the run's groups, or Tune's process can't read Ray's tables.

    Ray's manager of datasets is a process for each start of workers, 2 s of a processor. A run
    that was given no dataset of Ray Data has nothing to manage.
    """
    from ray.train.torch import TorchTrainer  # noqa: PLC0415 - needs torch

    class SweptTrainer(TorchTrainer):
        def _create_default_callbacks(self) -> list[Any]:
            callbacks: list[Any] = super()._create_default_callbacks()  # type: ignore[misc] # mypy reads V1
            for callback in callbacks:
                spare_manager(callback)
            return without_cleaner(callbacks) if is_watched() else callbacks

    return SweptTrainer


def without_cleaner(callbacks: list[Any]) -> list[Any]:
    """Returns the callbacks of a run but the one that starts Ray's cleaner."""
    return [callback for callback in callbacks if type(callback).__name__ != CLEANER]


def spare_manager(callback: Any) -> None:  # noqa: ANN401 - any of Ray's
    """Lets Ray's callback for datasets start no process where it has none."""
    if type(callback).__name__ == DATASETS and getattr(callback, "_datasets", None) == {}:
        callback.before_init_train_context = no_datasets


def no_datasets(workers: Sequence[object]) -> dict[str, list[Any]]:
    """Returns what each worker is given for its datasets.

    Args:
        workers: Those of a run without any.
    """
    return {"dataset_shard_provider": [NoDatasets()] * len(workers)}


class NoDatasets:
    """Says to each worker that its run has no dataset."""

    def get_dataset_shard(self, dataset_info: Any) -> NoReturn:  # noqa: ANN401 - Train's own
        """See Ray Train's DatasetShardProvider."""
        msg = (
            "a loop under torch_trainable must load its own data, got a call for Ray Train's "
            f"dataset {dataset_info.dataset_name!r}. Read it inside of the loop."
        )
        raise KeyError(msg)


def is_watched() -> bool:
    """Tells whether this trial's placement groups are found and removed when it has ended."""
    resources = tune.get_context().get_trial_resources()
    return isinstance(resources, DriverResources) and resources.is_swept
