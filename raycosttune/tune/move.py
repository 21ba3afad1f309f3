"""Trials that go on with other workers."""

from typing import Any

from ray.tune.experiment import Trial

from raycosttune.tune.resources import DriverResources, WorkerResources, workers_in
from raycosttune.tune.sweep import Sweep


def can_move(trial: Trial) -> bool:
    """Tells whether a trial can go on with other workers: with this package's trainables."""
    return isinstance(trial.placement_group_factory, (DriverResources, WorkerResources))


def move(trial: Trial, sweep: Sweep) -> bool:
    """Gives a trial that does not run the config and resources of its changed workers.

    Returns:
        Whether its workers were ever changed. Tune itself forgets a changed config in a restore.
    """
    record = sweep.record(trial.trial_id)
    if record is None or record.resized is None:
        return False
    config = sweep.config(trial.trial_id, trial.config)
    if config is None:
        return True
    trial.set_config(config)
    factory: Any = trial.placement_group_factory
    if isinstance(factory, WorkerResources):
        key, resources = factory.workers_key, factory.resources_per_worker
        trial.update_resources(WorkerResources(workers_in(config, key), resources, key))
    return True
