"""What a short profile of a job showed, and the laws that follow from it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raycosttune.advise.allreduce import Link, ring_seconds
from raycosttune.advise.loading import exposed_loading_seconds
from raycosttune.advise.memory import MemoryLine
from raycosttune.advise.quantity import amount, count, of_kind, positive
from raycosttune.advise.speedup import overhead_ratio
from raycosttune.advise.step import ComputeLine, StepLaw
from raycosttune.errors import InvalidAdviceError


@dataclass(frozen=True)
class Pair:
    """Is what two workers of one node showed, with an equal share each.

    Attributes:
        samples: Of each worker's share.
        step_seconds: Of their step.
        compute_seconds: Of the same step without the exchange, both at once.
        exchange_seconds: Of an all-reduce of the gradients alone.
        latency_seconds: Of an all-reduce of one number.

    Raises:
        InvalidAdviceError: If a number is unusable.
    """

    samples: int
    step_seconds: float
    compute_seconds: float
    exchange_seconds: float
    latency_seconds: float

    def __post_init__(self) -> None:
        """Checks the numbers."""
        count("Pair.samples", self.samples)
        for name in ("step_seconds", "compute_seconds", "exchange_seconds", "latency_seconds"):
            amount(f"Pair.{name}", getattr(self, name))


@dataclass(frozen=True)
class Memory:
    """Is what is known of a worker's memory.

    Attributes:
        line: Bytes of a step against the samples of a worker.
        available_bytes: What a worker may use.
        largest_batch: Samples of a worker that fit.

    Raises:
        InvalidAdviceError: If a number is unusable.
    """

    line: MemoryLine
    available_bytes: float
    largest_batch: int

    def __post_init__(self) -> None:
        """Checks the numbers."""
        of_kind("Memory.line", self.line, MemoryLine)
        positive("Memory.available_bytes", self.available_bytes)
        count("Memory.largest_batch", self.largest_batch)


@dataclass(frozen=True)
class Cluster:
    """Is what the job may run on.

    Attributes:
        workers: At most.
        workers_per_node: That one node holds, None where it holds all.
        link: Between nodes, None where it is not known.

    Raises:
        InvalidAdviceError: If a number is unusable.
    """

    workers: int
    workers_per_node: int | None = None
    link: Link | None = None

    def __post_init__(self) -> None:
        """Checks both numbers."""
        count("Cluster.workers", self.workers)
        count("Cluster.workers_per_node", self.workers_per_node or 1)
        if self.link is not None:
            of_kind("Cluster.link", self.link, Link)

    def nodes(self, workers: int) -> int:
        """Returns the nodes that so many workers fill, packed."""
        return math.ceil(workers / (self.workers_per_node or workers))


@dataclass(frozen=True)
class JobProfile:
    """Is what a profile showed.

    Attributes:
        batch_size: Global batch that was profiled.
        samples: Of an epoch, None where they were made up: their loading tells nothing then.
        parameter_bytes: That workers exchange in a step.
        compute: Of one worker, loading apart.
        loading_seconds: Between two batches of one worker where nothing else is done.
        waiting_seconds: What its loop waited for a batch.
        loaders: Processes that load meanwhile, 0 where the worker loads by itself.
        pair: Of two workers, None where none were started.
        memory: None where it was not measured.
        made_up: Shape of samples that stood for data, None where data were read.

    Raises:
        InvalidAdviceError: If a number is unusable.
    """

    batch_size: int
    samples: int | None
    parameter_bytes: float
    compute: ComputeLine
    loading_seconds: float = 0.0
    waiting_seconds: float = 0.0
    loaders: int = 0
    pair: Pair | None = None
    memory: Memory | None = None
    made_up: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Checks the numbers."""
        of_kind("JobProfile.compute", self.compute, ComputeLine)
        if self.pair is not None:
            of_kind("JobProfile.pair", self.pair, Pair)
        if self.memory is not None:
            of_kind("JobProfile.memory", self.memory, Memory)
        count("JobProfile.batch_size", self.batch_size)
        if self.samples is not None:
            count("JobProfile.samples", self.samples)
        for name in ("parameter_bytes", "loading_seconds", "waiting_seconds", "loaders"):
            amount(f"JobProfile.{name}", getattr(self, name))
        positive("the compute of a step", self.compute.seconds(self.batch_size))

    @property
    def compute_seconds(self) -> float:
        """Of the batch on one worker."""
        return self.compute.seconds(self.batch_size)

    @property
    def pair_seconds(self) -> float | None:
        """What the exchange of two workers adds to a step."""
        if self.pair is None:
            return None
        return max(0.0, self.pair.step_seconds - self.pair.compute_seconds)

    @property
    def crowding(self) -> float:
        """Compute of a worker that shares its node over that of one alone; 1 where not known."""
        if self.pair is None:
            return 1.0
        alone = self.compute.seconds(self.pair.samples)
        return max(1.0, self.pair.compute_seconds / alone)

    @property
    def overhead_ratio(self) -> float | None:
        """R_O of Lemma 3.1: what is not shared over the compute that is."""
        if self.pair_seconds is None or self.compute.sample_seconds == 0:
            return None
        shared = self.crowding * self.compute.sample_seconds * self.batch_size
        fixed = self.crowding * self.compute.fixed_seconds
        return overhead_ratio(shared, fixed + self.pair_seconds)

    @property
    def hidden_part(self) -> float | None:
        """How much of the exchange of two workers hides behind their compute, from 0 to 1."""
        if self.pair is None or self.pair_seconds is None or not self.pair.exchange_seconds:
            return None
        return max(0.0, 1 - self.pair_seconds / self.pair.exchange_seconds)

    @property
    def link(self) -> Link | None:
        """What joins two workers of a node: a ring of two takes latency + S / B twice, halved."""
        if self.pair is None or not self.parameter_bytes:
            return None
        moving = self.pair.exchange_seconds - self.pair.latency_seconds
        if moving <= 0:
            return None
        return Link(self.parameter_bytes / moving, self.pair.latency_seconds / 2)

    def law(self, cluster: Cluster) -> StepLaw:
        """Returns the law of a step's compute and exchange on a cluster.

        Where no pair was timed the exchange counts as nothing; across nodes it is not known
        unless their link is.
        """
        far = None
        if cluster.link is not None:
            far = ring_seconds(self.parameter_bytes, 2, cluster.link)
        return StepLaw(
            self.compute,
            self.pair_seconds or 0.0,
            workers_per_node=cluster.workers_per_node,
            far_pair_seconds=far,
            crowding=self.crowding,
        )

    def step_seconds(self, workers: int, batch_size: int, cluster: Cluster) -> float:
        """Returns a whole step of a global batch, what loading adds included.

        Raises:
            InvalidAdviceError: If the workers fill several nodes, whose link is not known.
        """
        step = self.law(cluster).seconds(workers, batch_size)
        share = math.ceil(batch_size / workers)
        loading = self.loading_seconds * share / self.batch_size
        return step + exposed_loading_seconds(loading, step, in_background=self.loaders > 0)


def profile_to_data(profile: JobProfile) -> dict[str, Any]:
    """Returns a profile as JSON-able data."""
    pair, memory = profile.pair, profile.memory
    return {
        "batch_size": profile.batch_size,
        "samples": profile.samples,
        "parameter_bytes": profile.parameter_bytes,
        "compute": vars(profile.compute),
        "loading_seconds": profile.loading_seconds,
        "waiting_seconds": profile.waiting_seconds,
        "loaders": profile.loaders,
        "pair": pair and vars(pair),
        "memory": memory and {**vars(memory), "line": vars(memory.line)},
        "made_up": None if profile.made_up is None else list(profile.made_up),
    }


def profile_from_data(data: Mapping[str, Any]) -> JobProfile:
    """Reads a profile back.

    Raises:
        InvalidAdviceError: If a value is missing, of another kind or unusable.
    """
    of_kind("a profile", data, Mapping)
    try:
        return _profile_of(data)
    except (KeyError, TypeError) as error:
        why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        msg = f"a profile must hold what profile_to_data writes: {why}. Profile the job again"
        raise InvalidAdviceError(msg) from error


def _profile_of(data: Mapping[str, Any]) -> JobProfile:
    pair, memory, made_up = data["pair"], data["memory"], data["made_up"]
    return JobProfile(
        **{
            **data,
            "compute": ComputeLine(**data["compute"]),
            "pair": pair and Pair(**pair),
            "memory": memory and Memory(**{**memory, "line": MemoryLine(**memory["line"])}),
            "made_up": None if made_up is None else tuple(made_up),
        }
    )
