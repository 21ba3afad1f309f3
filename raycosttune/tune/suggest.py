"""A search space for Ray Tune from a profile and a cluster."""

from typing import Any

from ray import tune

from raycosttune.advise import Cluster, JobProfile, suggest_sweep


def suggest_space(
    profile: JobProfile,
    cluster: Cluster,
    *,
    workers_key: str = "num_workers",
    batch_key: str = "batch_size",
) -> dict[str, Any]:
    """Returns a `param_space` of the workers and batches that are worth a sweep.

    Other hyperparameters are added to it. What a worker's memory holds is no part of it: pass
    `suggest_sweep(profile, cluster).max_local_batch` to `CostAwareSearch`.

    Args:
        profile: Of the job: see `profile_job`.
        cluster: What it may run on.
        workers_key: Key of the worker count.
        batch_key: Key of the global batch.
    """
    sweep = suggest_sweep(profile, cluster)
    return {
        workers_key: tune.choice(list(sweep.workers)),
        batch_key: tune.choice(list(sweep.batches)),
    }
