"""The legal worker counts and batch sizes of a sweep."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NoReturn

from raycosttune.core.figure import counted
from raycosttune.core.value import read_count
from raycosttune.errors import InvalidSpaceError

BatchReading = Literal["global", "local"]


@dataclass(frozen=True, order=True)
class Allocation:
    """Is one choice of workers and batch, and the nodes that it fills.

    Attributes:
        workers: Number of Ray Train workers, n.
        batch_size: Global batch b: samples of one optimiser step over all workers.
        nodes: Number of machines that the workers fill.
    """

    workers: int
    batch_size: int
    nodes: int = 1

    @property
    def local_batch(self) -> int:
        """Samples of a step on the most loaded worker, ceil(b / n)."""
        return math.ceil(self.batch_size / self.workers)


@dataclass(frozen=True)
class Space:
    """Holds the cells, the pairs of workers and batch that a sweep may choose.

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

    Raises:
        InvalidSpaceError: If a value breaks its rule, a batch fits no worker count, or
            no cell is left.
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
                object.__setattr__(self, name, _count(name, value))
        object.__setattr__(self, "excluded", _pairs(self.excluded))
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
                f"{counted(self.max_workers or 0, 'worker')}. Offer fewer workers or a larger "
                "cluster."
            )
            raise InvalidSpaceError(msg)

    @cached_property
    def cells(self) -> tuple[Allocation, ...]:
        """Every legal choice within the cluster, sorted."""
        return tuple(
            sorted(
                self.allocation(workers, batch)
                for workers in self.workers
                for batch in self.batches
                if self._fits(workers, batch)
                and (self.max_workers is None or workers <= self.max_workers)
            )
        )

    def allocation(self, workers: int, batch: int) -> Allocation:
        """Returns the cell of a worker count and a batch as the user reads it."""
        return Allocation(workers, self._global_batch(workers, batch), self.nodes(workers))

    def user_batch(self, allocation: Allocation) -> int:
        """Returns a cell's batch as the user reads it."""
        local = self.batch == "local"
        return allocation.batch_size // allocation.workers if local else allocation.batch_size

    def nodes(self, workers: int) -> int:
        """Returns the machines that so many workers fill, packed."""
        return math.ceil(workers / (self.workers_per_node or workers))

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
    grid = tuple(sorted({_count(name, value) for value in values}))
    if not grid:
        _refuse(name, "hold at least one value", list(grid))
    return grid


def _pairs(values: Iterable[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    for value in values:
        if not isinstance(value, tuple | list) or len(value) != 2:  # noqa: PLR2004 - a pair
            _refuse("excluded", "hold pairs of workers and batch", value)
    return tuple(
        (_count("excluded", workers), _count("excluded", batch)) for workers, batch in values
    )


def _count(name: str, value: object) -> int:
    number = read_count(value)
    if number is None:
        _refuse(name, "be whole numbers of at least 1 and at most 10**12", value)
    return number


def _refuse(name: str, rule: str, value: object) -> NoReturn:
    msg = f"Space.{name} must {rule}, got {value!r}"
    raise InvalidSpaceError(msg)
