"""The legal worker counts and batch sizes of a sweep."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal, NoReturn

from raycosttune.core.figure import counted, described
from raycosttune.core.node_type import NodeType, count_of, pairs_of
from raycosttune.core.value import MOST_COUNT, checked, read_count, read_text
from raycosttune.errors import InvalidSpaceError

BatchReading = Literal["global", "local"]


@dataclass(frozen=True, order=True)
class Allocation:
    """Is one choice of workers and batch, and the nodes that it fills.

    Attributes:
        workers: Number of Ray Train workers, n.
        batch_size: Global batch b: samples of one optimiser step over all workers.
        nodes: Number of machines that the workers fill.
        node_type: Type of these machines, "" where there is but one.
    """

    workers: int
    batch_size: int
    nodes: int = 1
    node_type: str = ""

    def __repr__(self) -> str:
        """Writes what a caller would; the type only where there is one."""
        values = ", ".join(f"{name}={value!r}" for name, value in self.data().items())
        return f"Allocation({values})"

    def named(self, recipe: Mapping[str, object]) -> str:
        """Writes it and the hyperparameters of a run: 2 workers, batch 64, lr=0.0316."""
        return described(self.workers, self.batch_size, recipe, self.node_type)

    def data(self) -> dict[str, Any]:
        """Returns it as JSON-able data; the type only where there is one."""
        whole = dict(vars(self))
        if not self.node_type:
            del whole["node_type"]
        return whole

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Allocation":
        """Reads it back; what was written before there were types has none.

        Raises:
            KeyError: If a value is missing.
            ValueError: If a value is of the wrong kind.
        """
        workers, batch, nodes = (
            checked(data, key, read_count) for key in ("workers", "batch_size", "nodes")
        )
        named = "node_type" in data
        return cls(workers, batch, nodes, checked(data, "node_type", read_text) if named else "")

    @property
    def local_batch(self) -> int:
        """Samples of a step on the most loaded worker, ceil(b / n)."""
        return math.ceil(self.batch_size / self.workers)


@dataclass(frozen=True)
class Space:
    """Holds the cells, the choices of workers, batch and type of machine that a sweep may make.

    Attributes:
        workers: Worker counts to choose from.
        batches: Batch sizes to choose from, read as `batch` says.
        batch: "global" when a batch is the sum over workers, "local" when it is each
            worker's own, as in Liang et al. 2022; a cell always holds the global one.
        workers_per_node: Workers that one machine holds; None when one machine holds all.
        divisible: Whether a global batch must split evenly over the workers.
        min_local_batch: Smallest share of a worker.
        max_local_batch: Largest share of a worker, or None.
        max_workers: Most workers that the cluster can ever hold, or None.
        excluded: Pairs of workers and batch, as the user reads it, that can't be chosen.
        node_types: Types of machines to choose from, each with its own size and number where
            it has them; none where machines are all alike. A run is on machines of one type.
        affects_time: Names of the other hyperparameters that change how long an epoch takes, as
            precision or width do; each combination of their values is a class of its own.

    Raises:
        InvalidSpaceError: If a value breaks its rule, a name comes twice, a batch fits no
            worker count, or no cell is left.
    """

    workers: tuple[int, ...]
    batches: tuple[int, ...]
    batch: BatchReading = "global"
    workers_per_node: int | None = None
    divisible: bool = True
    min_local_batch: int = 1
    max_local_batch: int | None = None
    max_workers: int | None = None
    excluded: tuple[tuple[int, int], ...] = ()
    node_types: tuple[NodeType, ...] = ()
    affects_time: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Sorts the grids, checks every value, and that cells are left."""
        object.__setattr__(self, "workers", _grid("workers", self.workers))
        object.__setattr__(self, "batches", _grid("batches", self.batches))
        if self.batch not in ("global", "local"):
            _refuse("batch", 'be "global" or "local"', self.batch)
        for name in (
            "workers_per_node",
            "min_local_batch",
            "max_local_batch",
            "max_workers",
        ):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, count_of(f"Space.{name}", value))
        object.__setattr__(self, "excluded", pairs_of("Space.excluded", self.excluded))
        object.__setattr__(self, "node_types", _types(self.node_types))
        object.__setattr__(self, "affects_time", _names(self.affects_time))
        for batch in self.batches:
            if not any(self._fits(workers, batch) for workers in self.workers):
                pairs = counted(len(self.excluded), "pair")
                excluded = f", {pairs} excluded" if self.excluded else ""
                msg = (
                    f"the batch {batch} can't be split over any of the worker counts "
                    f"{list(self.workers)} (divisible={self.divisible}, local batch in "
                    f"[{self.min_local_batch}, {self.max_local_batch or 'any'}]{excluded}). "
                    "Drop it, or widen the bounds."
                )
                raise InvalidSpaceError(msg)
        if not self.cells:
            msg = (
                f"no worker count of {list(self.workers)} is left: the cluster holds at most "
                f"{self._most}. Offer fewer workers or a larger cluster."
            )
            raise InvalidSpaceError(msg)
        if (most := max(cell.batch_size for cell in self.cells)) > MOST_COUNT:
            _refuse("batches", "be at most 10**12 over all workers", most)

    @cached_property
    def cells(self) -> tuple[Allocation, ...]:
        """Every legal choice within the cluster, sorted."""
        return tuple(
            sorted(
                self.allocation(workers, batch, kind.name)
                for kind in self.types
                for workers in self.workers
                for batch in self.batches
                if self._fits(workers, batch)
                and (workers, batch) not in kind.excluded
                and (kind.max_workers is None or workers <= kind.max_workers)
            )
        )

    @cached_property
    def types(self) -> tuple[NodeType, ...]:
        """The types of machines with what holds of them, one without a name where none is told."""
        per_node, most = self.workers_per_node, self.max_workers
        return tuple(
            replace(
                kind,
                workers_per_node=kind.workers_per_node or per_node,
                max_workers=kind.max_workers or most,
            )
            for kind in self.node_types or (NodeType(""),)
        )

    def type(self, name: str) -> NodeType:
        """Returns a type of machine by its name; of another one nothing is known."""
        return next((kind for kind in self.types if kind.name == name), NodeType(name))

    def time_class(self, recipe: Mapping[str, object]) -> str:
        """Returns the canonical text of what makes a recipe's epochs longer or shorter.

        Recipes of one class have the same epoch times; "" where nothing is declared.
        """
        if not self.affects_time:
            return ""
        return json.dumps({name: recipe.get(name) for name in self.affects_time}, default=str)

    def allocation(self, workers: int, batch: int, node_type: str = "") -> Allocation:
        """Returns the cell of a worker count, a batch as the user reads it, and a type."""
        nodes = self.nodes(workers, node_type)
        return Allocation(workers, self._global_batch(workers, batch), nodes, node_type)

    def data(self) -> dict[str, Any]:
        """Returns it as JSON-able data; types and names only where there are some."""
        whole = asdict(self)
        for name in ("node_types", "affects_time"):
            if not whole[name]:
                del whole[name]
        return whole

    def user_batch(self, allocation: Allocation) -> int:
        """Returns a cell's batch as the user reads it."""
        local = self.batch == "local"
        return allocation.batch_size // allocation.workers if local else allocation.batch_size

    def nodes(self, workers: int, node_type: str = "") -> int:
        """Returns the machines of a type that so many workers fill, packed."""
        return math.ceil(workers / (self.type(node_type).workers_per_node or workers))

    @property
    def _most(self) -> str:
        most = [(counted(kind.max_workers or 0, "worker"), kind.name) for kind in self.types]
        return ", ".join(f"{count} of {name}" if name else count for count, name in most)

    def _global_batch(self, workers: int, batch: int) -> int:
        return batch * workers if self.batch == "local" else batch

    def _fits(self, workers: int, batch: int) -> bool:
        total = self._global_batch(workers, batch)
        local = math.ceil(total / workers)
        even = total % workers == 0 or not self.divisible
        smallest = total // workers
        bounded = self.max_local_batch is None or local <= self.max_local_batch
        is_legal = even and smallest >= self.min_local_batch and bounded
        return is_legal and (workers, batch) not in self.excluded


def _grid(name: str, values: Iterable[int]) -> tuple[int, ...]:
    grid = tuple(sorted({count_of(f"Space.{name}", value) for value in values}))
    if not grid:
        _refuse(name, "hold at least one value", list(grid))
    return grid


def _types(values: Iterable[object]) -> tuple[NodeType, ...]:
    types = tuple(values)
    for k, kind in enumerate(types):
        if not isinstance(kind, NodeType) or not kind.name:
            _refuse("node_types", "hold NodeType with names", kind)
        if any(kind.name == other.name for other in types[:k] if isinstance(other, NodeType)):
            _refuse("node_types", "have different names", kind.name)
    return tuple(kind for kind in types if isinstance(kind, NodeType))


def _names(values: Iterable[object]) -> tuple[str, ...]:
    names = tuple(values)
    texts = tuple(name for name in names if isinstance(name, str) and name)
    if texts != names or len(set(texts)) < len(texts):
        _refuse("affects_time", "hold different names of hyperparameters", list(names))
    return tuple(sorted(texts))


def _refuse(name: str, rule: str, value: object) -> NoReturn:
    msg = f"Space.{name} must {rule}, got {value!r}"
    raise InvalidSpaceError(msg)
