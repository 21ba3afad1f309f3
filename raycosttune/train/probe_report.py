"""What the command line says of a profiled job."""

import logging
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from raycosttune.advise import Cluster, Guide, JobProfile, profile_to_data, workspace_bytes
from raycosttune.train.probe_algorithm import AlgorithmProbe, probe_algorithms
from raycosttune.train.probe_machine import available_bytes, check_device
from raycosttune.train.probe_profile import profile_job

logger = logging.getLogger(__name__)


def profiled(
    target: str,
    batch_size: int,
    cluster: Cluster,
    *,
    memory: float | None = None,
    device: str = "cpu",
    threads: int = 1,
    steps: int = 10,
    algorithms: bool = False,
) -> tuple[JobProfile, AlgorithmProbe | None]:
    """Profiles a job.

    Args:
        target: `module:function`, which makes the job.
        batch_size: Global batch.
        cluster: What the job may run on; two workers are timed where it has more than one.
        memory: That a worker may use, bytes; by default all that a GPU has, or an equal part of
            what this machine has left for the workers that it would hold.
        device: "cpu", "cuda" or one of several.
        threads: Of a worker on the CPU.
        steps: Steps timed.
        algorithms: Whether to try the algorithms of each layer.

    Raises:
        InvalidAdviceError: If the job can't be made, does not fit, or an argument is unusable.
        ProbeError: If a step fails.
    """
    check_device(device)
    if memory is None:
        sharing = min(cluster.workers, cluster.workers_per_node or cluster.workers)
        memory = available_bytes(device) / (sharing if device == "cpu" else 1)
    profile = profile_job(
        target,
        batch_size,
        device=device,
        steps=steps,
        threads=threads,
        pair=cluster.workers > 1,
        memory_bytes=memory,
    )
    if not algorithms or profile.memory is None:
        return profile, None
    logger.info("timing the algorithms of each layer")
    local = min(batch_size, profile.memory.largest_batch)
    bound = workspace_bytes(memory, profile.memory.line, local)
    return profile, probe_algorithms(target, local, memory_bytes=bound, device=device)


def report_lines(found: Guide, algorithms: AlgorithmProbe | None) -> Iterator[str]:
    """Yields the lines for people."""
    width = max(map(len, found.limits))
    for name, told in found.limits.items():
        yield f"{name:{width}}  {told}"
    yield ""
    yield "workers  nodes  step seconds  speed-up  efficiency  worker-hours an epoch"
    for row in found.scaling:
        hours = "not known" if row.worker_hours is None else f"{row.worker_hours:.3g}"
        yield (
            f"{row.workers:>7}  {row.nodes:>5}  {row.step_seconds:>12.4g}  {row.speedup:>8.3g}  "
            f"{row.efficiency:>10.0%}  {hours:>21}" + ("" if row.fits else "  does not fit")
        )
    yield ""
    yield from found.advice
    if algorithms is not None:
        yield ""
        yield from _algorithm_lines(algorithms)
    sweep = found.sweep
    yield ""
    yield "a sweep worth its cost:"
    yield f'    "num_workers": tune.choice({list(sweep.workers)}),'
    yield f'    "batch_size": tune.choice({list(sweep.batches)}),'
    if sweep.max_local_batch is not None:
        yield f"    CostAwareSearch(goal, max_local_batch={sweep.max_local_batch})"
    yield from sweep.why


def report_data(
    profile: JobProfile, found: Guide, algorithms: AlgorithmProbe | None
) -> dict[str, Any]:
    """Returns the same for machines, as JSON-able data."""
    return {
        "profile": profile_to_data(profile),
        "overhead_ratio": profile.overhead_ratio,
        "limits": found.limits,
        "scaling": [asdict(row) for row in found.scaling],
        "advice": list(found.advice),
        "algorithms": None
        if algorithms is None
        else {"chosen": dict(algorithms.choice.algorithms), "ratio": algorithms.ratio},
        "sweep": asdict(found.sweep),
    }


def _algorithm_lines(probe: AlgorithmProbe) -> Iterator[str]:
    if probe.ratio == 1:
        yield "algorithms: none is faster than PyTorch's own"
        return
    yield f"algorithms: the step takes {probe.ratio:.2f} times as long with"
    for layer, name in probe.choice.algorithms.items():
        yield f"    {layer}: {name}"
