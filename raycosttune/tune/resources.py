"""What a trial's driver asks of Tune, and what its workers will ask of Ray Train."""

from collections.abc import Mapping
from typing import Any

from ray.tune import PlacementGroupFactory

# One byte: Tune refuses a driver that asks for nothing, and a hundredth of a CPU would cost
# a worker on a node whose CPUs are a multiple of the worker's.
DRIVER = {"memory": 1}


class DriverResources(PlacementGroupFactory):
    """Reserves next to nothing for the driver, and remembers the workers' needs.

    Ray Train reserves the workers itself; were they reserved here too, every trial would
    hold them twice and the sweep would stand still.

    Attributes:
        resources_per_worker: What each worker of the run needs.
    """

    def __init__(self, resources_per_worker: Mapping[str, float]) -> None:
        super().__init__([dict(DRIVER)])
        self.resources_per_worker = dict(resources_per_worker)


class WorkerResources(PlacementGroupFactory):
    """Reserves all workers of a plain function, one bundle each.

    Attributes:
        resources_per_worker: What each worker needs.
    """

    def __init__(self, workers: int, resources_per_worker: Mapping[str, float]) -> None:
        super().__init__([dict(resources_per_worker) for _ in range(workers)])
        self.resources_per_worker = dict(resources_per_worker)


def workers_in(config: Mapping[str, Any], workers_key: str) -> int:
    """Returns the worker count of a nested config.

    Raises:
        KeyError: If the config has no such key.
    """
    if workers_key in config:
        return int(config[workers_key])
    value: Any = config
    for part in workers_key.split("/"):
        value = value[part]
    return int(value)
