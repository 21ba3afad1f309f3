"""Trials that go on with other workers."""

import logging
from collections import Counter
from typing import Any

from ray.tune.experiment import Trial

from raycosttune.core.decision import Resize
from raycosttune.core.figure import counted, of_type
from raycosttune.core.going import fewer_workers
from raycosttune.core.held import present
from raycosttune.core.observation import TrialRecord
from raycosttune.core.profile import ProfileRecord
from raycosttune.core.space import Allocation
from raycosttune.tune.resources import DriverResources, WorkerResources, workers_in
from raycosttune.tune.sweep import Sweep

logger = logging.getLogger(__name__)


def can_move(trial: Trial) -> bool:
    """Tells whether a trial can go on with other workers: with this package's trainables."""
    return isinstance(trial.placement_group_factory, (DriverResources, WorkerResources))


def cell_of(known: TrialRecord | ProfileRecord, sweep: Sweep) -> Allocation:
    """Returns what a trial or profile holds or waits for."""
    if isinstance(known, TrialRecord):
        return present(known, sweep.session.space)
    return known.profile.held


def workers_of(trial: Trial, sweep: Sweep) -> Counter[str]:
    """Returns the workers that a trial holds or waits for by type, none where it isn't ours."""
    known = sweep.known(trial.trial_id)
    if known is None:
        return Counter()
    held = cell_of(known, sweep)
    return Counter({held.node_type: held.workers})


def fit(trial: Trial, sweep: Sweep) -> None:
    """Lets a trial that the cluster is too small for go on with fewer workers, or ends it."""
    known = sweep.known(trial.trial_id)
    if known is None or not known.is_live:
        return
    held, space = cell_of(known, sweep), sweep.session.space
    is_offered = any(kind.name == held.node_type for kind in space.types)
    most = space.type(held.node_type).max_workers if is_offered else 0
    if most is None or held.workers <= most:
        return
    why = f"the cluster holds at most {counted(most, 'worker')}{of_type(held.node_type)}"
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
        trial.update_resources(factory.moved(workers_in(config, factory.workers_key)))
    return True
