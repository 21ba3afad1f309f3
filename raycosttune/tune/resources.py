"""What a trial's driver asks of Tune, and what its workers will ask of Ray Train."""

from collections.abc import Mapping
from typing import Any

from ray.tune import PlacementGroupFactory
from ray.util.placement_group import PlacementGroup

from raycosttune.core.value import read_real
from raycosttune.errors import InvalidSpaceError, InvalidTrainableError
from raycosttune.tune.collector import WATCH, can_sweep

# One byte: Tune refuses a driver that asks for nothing, and a hundredth of a CPU would cost
# a worker on a node whose CPUs are a multiple of the worker's.
DRIVER = {"memory": 1}
WORKERS_KEY = "num_workers"
SAME_KEY = "Give both the same workers_key."


class DriverResources(PlacementGroupFactory):
    """Reserves next to nothing for the driver, and remembers the workers' needs.

    Ray Train reserves the workers itself; were they reserved here too, every trial would
    hold them twice and the sweep would stand still.

    Attributes:
        resources_per_worker: What each worker of the run needs.
        workers_key: Where the trainable reads the worker count.
        is_swept: Whether the process that runs Tune finds and removes the groups that the run
            leaves behind.
    """

    is_swept = False

    def __init__(
        self, resources_per_worker: Mapping[str, float], workers_key: str = WORKERS_KEY
    ) -> None:
        super().__init__([dict(DRIVER)])
        self.resources_per_worker = dict(resources_per_worker)
        self.workers_key = workers_key

    def to_placement_group(self) -> PlacementGroup:
        """Reserves for a driver, and watches from here on that its workers don't outlive it."""
        WATCH.watch()
        self.is_swept = can_sweep()
        group: PlacementGroup = super().to_placement_group()  # type: ignore[no-untyped-call]
        return group


class WorkerResources(PlacementGroupFactory):
    """Reserves all workers of a plain function, one bundle each.

    Attributes:
        resources_per_worker: What each worker needs.
        workers_key: Where the trainable reads the worker count.
    """

    def __init__(
        self,
        workers: int,
        resources_per_worker: Mapping[str, float],
        workers_key: str = WORKERS_KEY,
    ) -> None:
        super().__init__([dict(resources_per_worker) for _ in range(workers)])
        self.resources_per_worker = dict(resources_per_worker)
        self.workers_key = workers_key


def workers_in(config: Mapping[str, Any], workers_key: str) -> int:
    """Returns the worker count of a nested config.

    Raises:
        InvalidTrainableError: If the config has no such key.
    """
    if workers_key in config:
        return int(config[workers_key])
    value: Any = config
    for part in workers_key.split("/"):
        if not isinstance(value, Mapping) or part not in value:
            msg = (
                f'a trainable\'s workers_key must lie in the config, got "{workers_key}"; the '
                f"config has {sorted(map(str, config))}. {SAME_KEY}"
            )
            raise InvalidTrainableError(msg)
        value = value[part]
    return int(value)


def check_driver(resources: object) -> None:
    """Refuses a run of Ray Train for whose workers Tune has reserved resources too.

    Raises:
        InvalidTrainableError: If Tune has reserved more than one bundle.
    """
    bundles = getattr(resources, "bundles", ())
    if len(bundles) > 1:
        msg = (
            "a torch_trainable must be left the resources that it asks Tune for, got "
            f"{len(bundles)} bundles: Ray Train reserves the workers of a trial itself, and would "
            "wait for ever for those that Tune holds. Pass torch_trainable(train_loop, "
            "resources_per_worker=...) to Tune as it returns, without tune.with_resources."
        )
        raise InvalidTrainableError(msg)


def check_workers_key(trainable: str, search: str) -> None:
    """Refuses a trainable that reads the worker count elsewhere than the search writes it.

    Raises:
        InvalidTrainableError: If the keys differ.
    """
    if trainable != search:
        msg = (
            "workers_key must be the same in the trainable and in CostAwareSearch, got "
            f'"{trainable}" and "{search}". {SAME_KEY}'
        )
        raise InvalidTrainableError(msg)


def read_resources(resources: object, *, use_gpu: bool = False) -> dict[str, float]:
    """Returns what a worker needs: one CPU, with `use_gpu` one GPU, and what is given over it.

    Raises:
        InvalidSpaceError: If it is no mapping of names to numbers of at least 0, or nothing
            is above 0.
    """
    default = {"CPU": 1.0, **({"GPU": 1.0} if use_gpu else {})}
    given = {} if resources is None else resources
    known: dict[str, float] = {}
    if isinstance(given, Mapping):
        amounts = {name: read_real(amount) for name, amount in given.items()}
        known = {
            name: amount
            for name, amount in amounts.items()
            if isinstance(name, str) and amount is not None and amount >= 0
        }
    needed = {**default, **known}
    if not isinstance(given, Mapping) or len(known) < len(given) or not any(needed.values()):
        msg = (
            "resources_per_worker must map names to numbers of at least 0, one of them above 0, "
            f'got {resources!r}. Write {{"CPU": 1}}.'
        )
        raise InvalidSpaceError(msg)
    return needed
