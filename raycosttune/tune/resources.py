"""What a trial's driver asks of Tune, and what its workers will ask of Ray Train."""

from collections.abc import Collection, Mapping
from typing import Any

from ray.tune import PlacementGroupFactory
from ray.util.placement_group import PlacementGroup

from raycosttune.core.value import read_name, read_real
from raycosttune.errors import InvalidSpaceError, InvalidTrainableError
from raycosttune.tune.collector import WATCH, can_sweep

# One byte: Tune refuses a driver that asks for nothing, and a hundredth of a CPU would cost
# a worker on a node whose CPUs are a multiple of the worker's.
DRIVER = {"memory": 1}
WORKERS_KEY = "num_workers"
TYPE_KEY = "node_type"
ByType = Mapping[str, Mapping[str, float]]
SAME_KEY = "Give both the same workers_key."


class DriverResources(PlacementGroupFactory):
    """Reserves next to nothing for the driver, and remembers the workers' needs.

    Ray Train reserves the workers itself; were they reserved here too, every trial would
    hold them twice and the sweep would stand still.

    Attributes:
        resources_per_worker: What each worker of the run needs.
        workers_key: Where the trainable reads the worker count.
        resources_by_type: What workers need beside it on each type of machine.
        node_type_key: Where the trainable reads the type of machine.
        is_swept: Whether the process that runs Tune finds and removes the groups that the run
            leaves behind.
    """

    is_swept = False

    def __init__(
        self,
        resources_per_worker: Mapping[str, float],
        workers_key: str = WORKERS_KEY,
        resources_by_type: ByType | None = None,
        node_type_key: str = TYPE_KEY,
    ) -> None:
        super().__init__([dict(DRIVER)])
        self.resources_per_worker = dict(resources_per_worker)
        self.workers_key = workers_key
        self.resources_by_type = dict(resources_by_type or {})
        self.node_type_key = node_type_key

    def to_placement_group(self) -> PlacementGroup:
        """Reserves for a driver, and watches from here on that its workers don't outlive it."""
        WATCH.watch()
        self.is_swept = can_sweep()
        group: PlacementGroup = super().to_placement_group()  # type: ignore[no-untyped-call]
        return group


class WorkerResources(PlacementGroupFactory):
    """Reserves all workers of a plain function, one bundle each.

    Attributes:
        resources_per_worker: What each worker needs, whatever its type of machine.
        workers_key: Where the trainable reads the worker count.
        resources_by_type: What workers need beside it on each type of machine.
        node_type_key: Where the trainable reads the type of machine.
    """

    def __init__(
        self,
        workers: int,
        resources_per_worker: Mapping[str, float],
        workers_key: str = WORKERS_KEY,
        resources_by_type: ByType | None = None,
        node_type_key: str = TYPE_KEY,
        node_type: str = "",
    ) -> None:
        self.resources_per_worker = dict(resources_per_worker)
        self.workers_key = workers_key
        self.resources_by_type = dict(resources_by_type or {})
        self.node_type_key = node_type_key
        self._node_type = node_type
        super().__init__([self._each for _ in range(workers)])

    def moved(self, workers: int) -> "WorkerResources":
        """Returns what so many workers reserve on the same type of machine."""
        keys = self.workers_key, self.resources_by_type, self.node_type_key
        return WorkerResources(workers, self.resources_per_worker, *keys, self._node_type)

    @property
    def _each(self) -> dict[str, float]:
        return {**self.resources_per_worker, **self.resources_by_type.get(self._node_type, {})}


def workers_in(config: Mapping[str, Any], workers_key: str) -> int:
    """Returns the worker count of a nested config.

    Raises:
        InvalidTrainableError: If the config has no such key.
    """
    value = _value_in(config, workers_key)
    if value is None:
        msg = (
            f'a trainable\'s workers_key must lie in the config, got "{workers_key}"; the '
            f"config has {sorted(map(str, config))}. {SAME_KEY}"
        )
        raise InvalidTrainableError(msg)
    return int(value)


def type_in(config: Mapping[str, Any], node_type_key: str, by_type: ByType) -> str:
    """Returns the type of machine of a nested config, "" where a trainable has no types.

    Raises:
        InvalidTrainableError: If a trainable that has types is given none, or another one.
    """
    if not by_type:
        return ""
    value = _value_in(config, node_type_key)
    if value not in by_type:
        msg = (
            f"a trainable with resources_by_type must be given one of its types, {list(by_type)}, "
            f'in the config under "{node_type_key}", got {value!r}.'
        )
        raise InvalidTrainableError(msg)
    return str(value)


def _value_in(config: Mapping[str, Any], joined: str) -> Any:  # noqa: ANN401 - the user's
    """Returns the value of a nested config, None where it has none."""
    if joined in config:
        return config[joined]
    value: Any = config
    for part in joined.split("/"):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def check_types(types: Collection[str], by_type: ByType, keys: tuple[str, str]) -> None:
    """Refuses types of machine that nobody says how to place workers on.

    Args:
        types: Those that are searched.
        by_type: What workers need on each.
        keys: Where the trainable reads the type, and where the search writes it.

    Raises:
        InvalidTrainableError: If a type has no resources, or the keys differ.
    """
    missing = [name for name in types if name not in by_type]
    if missing:
        example = f"{{{', '.join(f'{name!r}: {{{name!r}: 1}}' for name in missing)}}}"
        msg = (
            f"resources_by_type must say what a worker needs on each type, got nothing for "
            f"{missing}. Name a resource that its nodes alone have: torch_trainable(train_loop, "
            f"resources_by_type={example}); of GPUs Ray has accelerator_type:NAME by itself."
        )
        raise InvalidTrainableError(msg)
    if types and keys[0] != keys[1]:
        msg = (
            "node_type_key must be the same in the trainable and in CostAwareSearch, got "
            f'"{keys[0]}" and "{keys[1]}". Give both the same node_type_key.'
        )
        raise InvalidTrainableError(msg)


def read_by_type(by_type: object) -> dict[str, dict[str, float]]:
    """Returns what workers need on each type of machine.

    Raises:
        InvalidSpaceError: If it maps no names to resources, or a type needs nothing of its own.
    """
    given = {} if by_type is None else by_type
    if isinstance(given, Mapping):
        known = {name: _amounts(needs) for name, needs in given.items() if read_name(name)}
        if len(known) == len(given) and all(known.values()):
            return {name: needs for name, needs in known.items() if needs}
    msg = (
        "resources_by_type must map each type of machine to resources that its nodes have, names "
        f"to numbers of at least 0, one of them above 0, got {by_type!r}. Write "
        '{"v100": {"accelerator_type:V100": 0.001}}.'
    )
    raise InvalidSpaceError(msg)


def _amounts(needs: object) -> dict[str, float] | None:
    """Returns resources, None for what is none or asks for nothing."""
    if not isinstance(needs, Mapping):
        return None
    amounts = {name: read_real(amount) for name, amount in needs.items()}
    known = {
        name: amount
        for name, amount in amounts.items()
        if isinstance(name, str) and amount is not None and amount >= 0
    }
    return known if len(known) == len(needs) and any(known.values()) else None


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


def read_resources(
    resources: object, *, use_gpu: bool = False, by_type: ByType | None = None
) -> dict[str, float]:
    """Returns what a worker needs: one CPU, with `use_gpu` one GPU, and what is given over it.

    Raises:
        InvalidSpaceError: If it is no mapping of names to numbers of at least 0, or nothing
            is above 0 where a worker needs nothing else by its type of machine.
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
    if (
        not isinstance(given, Mapping)
        or len(known) < len(given)
        or not (by_type or any(needed.values()))
    ):
        msg = (
            "resources_per_worker must map names to numbers of at least 0, one of them above 0, "
            f'got {resources!r}. Write {{"CPU": 1}}.'
        )
        raise InvalidSpaceError(msg)
    return needed
