"""Ray's trainer without the processes that a test has no use for."""

from typing import Any

from ray.train.torch import TorchTrainer

from raycosttune.tune.trainer import spare_manager, without_cleaner


class LeanTrainer(TorchTrainer):
    """Starts no cleaner of placement groups, and no manager of datasets that aren't there."""

    def _create_default_callbacks(self) -> list[Any]:
        callbacks = without_cleaner(super()._create_default_callbacks())  # type: ignore[misc] # mypy reads V1
        for callback in callbacks:
            spare_manager(callback)
        return callbacks
