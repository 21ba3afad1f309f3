"""Trials that go on with other workers."""

import logging
from typing import Any

from ray.tune.experiment import Trial

from raycosttune.core.decision import Resize
from raycosttune.core.figure import counted
from raycosttune.core.going import fewer_workers
from raycosttune.core.held import present
from raycosttune.core.observation import TrialRecord
from raycosttune.tune.resources import DriverResources, WorkerResources, workers_in
from raycosttune.tune.sweep import Sweep

logger = logging.getLogger(__name__)


def can_move(trial: Trial) -> bool:
    """Tells whether a trial can go on with other workers: with this package's trainables."""
    return isinstance(trial.placement_group_factory, (DriverResources, WorkerResources))


def workers_of(trial: Trial, sweep: Sweep) -> int:
    """Returns the workers that a trial holds or waits for, 0 where it isn't ours."""
    known = sweep.known(trial.trial_id)
    if isinstance(known, TrialRecord):
        return present(known, sweep.session.space).workers
    return 0 if known is None else known.profile.held.workers


def fit(trial: Trial, sweep: Sweep) -> None:
    """Lets a trial that the cluster is too small for go on with fewer workers, or ends it."""
    most, known = sweep.session.space.max_workers, sweep.known(trial.trial_id)
    if most is None or known is None or not known.is_live or workers_of(trial, sweep) <= most:
        return
    why = f"the cluster holds at most {counted(most, 'worker')}"
    fewer = None
    if isinstance(known, TrialRecord) and sweep.session.can_resize and can_move(trial):
        fewer = fewer_workers(known, sweep.session.space)
    if fewer is None:
        sweep.drop(trial.trial_id, why)
    else:
        logger.warning("%s goes on with %s: %s", trial.trial_id, counted(fewer, "worker"), why)
        sweep.resize(trial.trial_id, Resize(fewer, why))


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
