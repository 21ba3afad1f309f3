"""What limits a job's scaling, and what to do about it, in numbers and in words."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from raycosttune.advise.allreduce import ring_bandwidth
from raycosttune.advise.job import Cluster, JobProfile
from raycosttune.advise.loading import loaders_to_hide
from raycosttune.advise.quantity import of_kind
from raycosttune.advise.server import parameter_servers
from raycosttune.advise.speedup import speedup_limit, workers_for_efficiency
from raycosttune.advise.sweep import Sweep, suggest_sweep
from raycosttune.advise.wording import counted, seconds, size
from raycosttune.errors import InvalidAdviceError

WORTHWHILE = 0.5  # efficiency below which workers cost more than twice what one does
HIDDEN = 0.05  # of a step: waits below this share count as hidden
CROWDED = 1.25  # compute beside another worker over that alone
FEWEST_SHARING = 2
WELL = 0.8  # an efficiency that is worth a bandwidth


@dataclass(frozen=True)
class Scaling:
    """Is what some workers make of the profiled batch.

    Attributes:
        workers: How many.
        nodes: That they fill.
        step_seconds: Of a step, loading included.
        speedup: Over one worker, as if the batch fitted into its memory.
        efficiency: Speed-up over workers.
        worker_hours: Of an epoch, None where its samples are not known.
        fits: Whether each one's share fits into its memory, as far as that was measured.
    """

    workers: int
    nodes: int
    step_seconds: float
    speedup: float
    efficiency: float
    worker_hours: float | None
    fits: bool


@dataclass(frozen=True)
class Guide:
    """Is advice on a job.

    Attributes:
        limits: A sentence for each of compute, loading, sync and memory.
        scaling: By workers.
        advice: Sentences, the most useful first.
        sweep: What a sweep should choose between.
    """

    limits: dict[str, str]
    scaling: tuple[Scaling, ...]
    advice: tuple[str, ...]
    sweep: Sweep


def guide(profile: JobProfile, cluster: Cluster) -> Guide:
    """Returns what follows from a profile for a cluster.

    Args:
        profile: Of the job.
        cluster: What it may run on.

    Raises:
        InvalidAdviceError: If either is of another type.
    """
    of_kind("profile", profile, JobProfile)
    of_kind("cluster", cluster, Cluster)
    scaling = tuple(_scaling(profile, cluster))
    return Guide(
        limits=_limits(profile),
        scaling=scaling,
        advice=tuple(_advice(profile, cluster, scaling)),
        sweep=suggest_sweep(profile, cluster),
    )


def _scaling(profile: JobProfile, cluster: Cluster) -> Iterator[Scaling]:
    batch = profile.batch_size
    one = profile.step_seconds(1, batch, cluster)
    steps = None if profile.samples is None else math.ceil(profile.samples / batch)
    most = math.inf if profile.memory is None else profile.memory.largest_batch
    counts = sorted({*(2**k for k in range(cluster.workers.bit_length())), cluster.workers})
    for workers in counts:
        try:
            took = profile.step_seconds(workers, batch, cluster)
        except InvalidAdviceError:  # the link between nodes is not known
            return
        fast = one / took
        hours = None if steps is None else workers * took * steps / 3600
        fits = math.ceil(batch / workers) <= most
        yield Scaling(workers, cluster.nodes(workers), took, fast, fast / workers, hours, fits)


def _limits(profile: JobProfile) -> dict[str, str]:
    compute, batch = profile.compute, profile.batch_size
    told = {
        "compute": f"{seconds(profile.compute_seconds)} a step of {batch} on one worker: "
        f"{seconds(compute.fixed_seconds)} at any batch, "
        f"{seconds(compute.sample_seconds)} a sample",
        "loading": _loading(profile),
    }
    if profile.pair is not None and profile.pair_seconds is not None:
        ratio, hidden = profile.overhead_ratio, profile.hidden_part
        told["sync"] = (
            f"two workers' exchange adds {seconds(profile.pair_seconds)} to a step; of "
            f"{size(profile.parameter_bytes)} alone it takes "
            f"{seconds(profile.pair.exchange_seconds)}"
            + ("" if hidden is None else f", {hidden:.0%} of it hidden")
            + ("" if ratio is None else f"; overhead ratio {ratio:.3g}")
            + f"; on one machine each computes {profile.crowding:.2f} times as long"
        )
    if profile.memory is not None:
        line = profile.memory.line
        told["memory"] = (
            f"{size(line.fixed_bytes)} at any batch, {size(line.sample_bytes)} a sample: at most "
            f"{profile.memory.largest_batch} samples a worker in "
            f"{size(profile.memory.available_bytes)}"
        )
    return told


def _loading(profile: JobProfile) -> str:
    if profile.made_up is not None:
        shape = "x".join(map(str, profile.made_up))
        return f"not known, as samples of {shape} were made up"
    return (
        f"{seconds(profile.loading_seconds)} a batch alone; a step waits "
        f"{seconds(profile.waiting_seconds)} for it: "
        f"{'hidden' if _loading_is_hidden(profile) else 'not hidden'}"
    )


def _advice(profile: JobProfile, cluster: Cluster, scaling: tuple[Scaling, ...]) -> Iterator[str]:
    if not scaling[-1].fits:
        many = counted(scaling[-1].workers)
        yield (
            f"batch {profile.batch_size}: it does not fit on {many}. Take a smaller one, or "
            "accumulate gradients"
        )
        return
    crowding = 1.0 if cluster.workers_per_node == 1 else profile.crowding
    yield from _worker_advice(profile, scaling, crowding)
    if not _loading_is_hidden(profile):
        needed = loaders_to_hide(
            profile.loading_seconds, profile.compute_seconds, max(1, profile.loaders)
        )
        some = "more" if needed is None else f"num_workers={needed}"
        yield f"load in the background: {some} in the DataLoader would hide it"
    if profile.overhead_ratio is not None:
        yield from _lemma(profile, profile.overhead_ratio, crowding)
        yield from _exchange_advice(profile, cluster, scaling[-1].workers)


def _worker_advice(
    profile: JobProfile, scaling: tuple[Scaling, ...], crowding: float
) -> Iterator[str]:
    batch = profile.batch_size
    fitting = [each for each in scaling if each.fits]
    good = [each for each in fitting if each.efficiency >= WORTHWHILE]
    best = max(good or fitting[:1], key=lambda each: each.speedup)
    if fitting[0].workers > 1:
        yield f"batch {batch}: it takes the memory of {counted(fitting[0].workers)}"
    if best.workers > 1:
        yield (
            f"batch {batch}: up to {best.workers} workers are {best.speedup:.3g} times as fast as "
            f"one, at {1 / best.efficiency:.2f} times its worker-hours"
        )
    elif (fastest := max(fitting, key=lambda each: each.speedup)).workers > 1:
        yield (
            f"batch {batch}: one worker is the cheapest; {fastest.workers} are "
            f"{fastest.speedup:.3g} times as fast, at {1 / fastest.efficiency:.2f} times its "
            "worker-hours"
        )
    elif len(scaling) > 1:
        yield (
            f"batch {batch}: one worker is best, {scaling[1].workers} are "
            f"{scaling[1].speedup:.2f} times as fast"
        )
    if crowding >= CROWDED:
        yield (
            f"two workers on one machine each compute {crowding:.2f} times as long as one "
            "alone: give each worker cores of its own, or each machine fewer workers"
        )


def _exchange_advice(profile: JobProfile, cluster: Cluster, many: int) -> Iterator[str]:
    law = profile.law(cluster)
    if many == 1:
        return
    if law.exchange_seconds(many) > 0:
        yield (
            f"from batch {law.hiding_batch(many)} on, {many} workers compute for as long as "
            "they exchange"
        )
    if profile.parameter_bytes:
        yield from _bandwidth_advice(profile, cluster, many)


def _lemma(profile: JobProfile, ratio: float, crowding: float) -> Iterator[str]:
    """Says what Lemma 3.1 allows, of one worker alone: crowded ones share less."""
    least = WORTHWHILE * crowding
    most = workers_for_efficiency(least, ratio) if least <= 1 else 0
    if most is None:
        return
    limit = speedup_limit(ratio) / crowding
    if limit <= 1:
        yield f"by Lemma 3.1 no number of workers is faster than one at batch {profile.batch_size}"
        return
    few = "no number of them keeps" if most < FEWEST_SHARING else f"at most {most} of them keep"
    yield (
        f"by Lemma 3.1 no number of workers is more than {limit:.3g} times as fast as one at "
        f"batch {profile.batch_size}, and {few} an efficiency of {WORTHWHILE:.0%}"
    )


def _bandwidth_advice(profile: JobProfile, cluster: Cluster, many: int) -> Iterator[str]:
    compute = profile.law(cluster).compute_seconds(many, profile.batch_size)
    one = profile.compute_seconds
    allowed = one / (many * WELL) - compute  # what the exchange may add to a step
    if allowed > 0:
        wanted = ring_bandwidth(profile.parameter_bytes, many, allowed)
        yield f"for {WELL:.0%} efficiency {many} workers need a ring of {size(wanted)}/s"
    else:
        yield (
            f"no link gives {many} workers {WELL:.0%} efficiency at batch {profile.batch_size}: "
            f"their compute alone leaves {one / (many * compute):.0%}"
        )
    link = cluster.link or profile.link
    if link is not None:
        rate = link.bytes_per_second
        servers = parameter_servers(profile.parameter_bytes, many, rate, compute)
        yield (
            f"parameter servers in place of a ring: {servers} of {size(rate)}/s "
            f"{'hides' if servers == 1 else 'each hide'} the exchange of {many} workers"
        )


def _loading_is_hidden(profile: JobProfile) -> bool:
    if profile.made_up is not None:
        return True
    whole = profile.compute_seconds + profile.waiting_seconds
    return profile.waiting_seconds <= HIDDEN * whole
