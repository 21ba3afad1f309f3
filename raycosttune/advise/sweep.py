"""The workers and batches that are worth a sweep, from a profile and a cluster."""

from dataclasses import dataclass
from itertools import takewhile

from raycosttune.advise.job import Cluster, JobProfile
from raycosttune.advise.quantity import of_kind
from raycosttune.advise.wording import counted
from raycosttune.errors import InvalidAdviceError

LEAST_GAIN = 1.05  # of the speed that more workers must bring at the largest batch
SMALLER, LARGER = 4, 16  # how far batches reach from the one that was profiled
FEWEST_STEPS = 8  # of an epoch


@dataclass(frozen=True)
class Sweep:
    """Is a search space, and why.

    Attributes:
        workers: Worker counts.
        batches: Global batches.
        max_local_batch: Samples of a worker that fit, None where it is not known.
        why: A sentence for each bound.
    """

    workers: tuple[int, ...]
    batches: tuple[int, ...]
    max_local_batch: int | None
    why: tuple[str, ...]


def suggest_sweep(profile: JobProfile, cluster: Cluster) -> Sweep:
    """Returns the workers and batches between which a sweep should choose.

    Batches are the profiled one, times or over powers of two; worker counts are powers of two,
    and all that there are, where they are faster than fewer at the largest batch. Each batch splits
    evenly over some of them, and its shares fit into their memory.

    Args:
        profile: Of the job.
        cluster: What it may run on.

    Raises:
        InvalidAdviceError: If either is of another type.
    """
    of_kind("profile", profile, JobProfile)
    of_kind("cluster", cluster, Cluster)
    why: list[str] = []
    most_local = None if profile.memory is None else profile.memory.largest_batch
    highest = LARGER * profile.batch_size
    epoch = highest if profile.samples is None else profile.samples // FEWEST_STEPS
    if max(profile.batch_size, epoch) < highest:
        highest = max(profile.batch_size, epoch)
        why.append(f"batches of at most {highest}: an epoch has {profile.samples} samples")
    if most_local is not None and most_local * cluster.workers < highest:
        highest = most_local * cluster.workers
        why.append(
            f"batches of at most {highest}: {most_local} samples fit on each of "
            f"{cluster.workers} workers"
        )
    batches = [batch for batch in _batches(profile.batch_size) if batch <= highest]
    workers, slow = _workers(profile, cluster, max(batches, default=highest))
    why += slow

    def fits(count: int, batch: int) -> bool:
        return batch % count == 0 and (most_local is None or batch // count <= most_local)

    if batches and not any(fits(count, batches[-1]) for count in workers):
        workers.append(cluster.workers)  # memory needs them
    batches = [batch for batch in batches if any(fits(count, batch) for count in workers)]
    if not batches:
        share = max(1, min(highest // cluster.workers, most_local or highest))
        workers, batches = [cluster.workers], [cluster.workers * share]
    workers = [count for count in workers if any(fits(count, batch) for batch in batches)]
    return Sweep(tuple(workers), tuple(batches), most_local, tuple(why))


def _batches(middle: int) -> list[int]:
    """Returns whole batches from a quarter to sixteen times the middle one."""
    below = [middle // part for part in (SMALLER, 2) if middle % part == 0]
    factors = takewhile(lambda factor: factor <= LARGER, (2**k for k in range(64)))
    return [*below, *(middle * factor for factor in factors)]


def _workers(profile: JobProfile, cluster: Cluster, batch: int) -> tuple[list[int], list[str]]:
    """Returns worker counts that are each faster at a batch than all fewer, and what was left out.

    More workers than two may be faster again: these share a machine, and one has it for itself.
    """
    powers = takewhile(lambda n: n < cluster.workers, (2**k for k in range(64)))
    kept, fastest, why = [1], profile.step_seconds(1, batch, cluster), []
    for workers in [*powers, cluster.workers][1:]:
        try:
            seconds = profile.step_seconds(workers, batch, cluster)
        except InvalidAdviceError as error:
            why.append(f"at most {counted(kept[-1])}: {error}")
            break
        if seconds * LEAST_GAIN > fastest:
            why.append(
                f"not {counted(workers)}: a step of {batch} takes {seconds:.3g} s, "
                f"on {kept[-1]} {fastest:.3g} s"
                + (", which gains too little" if seconds < fastest else "")
            )
            continue
        kept.append(workers)
        fastest = seconds
    return kept, why
