"""Trials rebuilt from what Tune itself keeps of them, where state and journal are lost."""

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.utils import flatten_dict

from raycosttune.core.figure import counted
from raycosttune.core.observation import TrialRecord
from raycosttune.core.session import Session
from raycosttune.tune.convert import Config, ParamSpace
from raycosttune.tune.sweep import Sweep

logger = logging.getLogger(__name__)
RESULTS = "result.json"  # Tune's own log of a trial, a result a line
WHY = "rebuilt from Tune's own record of it"


def rebuild(sweep: Sweep, trial: Trial, experiment: Path) -> None:
    """Takes a restored trial in that neither state nor journal knows; says so loudly.

    Its cell and recipe are read from its config, its reports from the results that Tune has
    logged. What Tune has not saved either is lost, and so is a profile.

    Args:
        sweep: A restored sweep.
        trial: The trial, as Tune has restored it.
        experiment: The experiment's folder.
    """
    record = record_in(trial.config, trial.trial_id, sweep.session, sweep.params)
    if record is None:
        logger.error(
            "the restored trial %s is in no journal and its config is none of this search: what "
            "it cost and showed isn't counted.",
            trial.trial_id,
        )
        return
    sweep.session.adopt(record, WHY)
    sweep.start(trial.trial_id, trial.trial_id)
    storage: Any = trial.storage
    for result in logged_results(Path(storage.trial_fs_path) / RESULTS):
        sweep.observe(trial.trial_id, flatten_dict(result))
    sweep.add(trial.trial_id, trial.config, experiment)
    logger.error(
        "the restored trial %s is in no journal; it is rebuilt from Tune's own record, with %s.",
        trial.trial_id,
        counted(len(record.reports), "report"),
    )


def record_in(
    config: Config, trial_id: str, session: Session, params: ParamSpace
) -> TrialRecord | None:
    """Returns the record of a trial that ran on a config, None where it is none of the space."""
    try:
        workers, batch, *given = (
            _value(config, params.paths[key])
            for key in (params.workers_key, params.batch_key, *params.domains)
        )
        node_type = _value(config, params.paths[params.type_key]) if params.types else ""
    except (KeyError, TypeError):
        return None
    space, recipe = session.space, dict(zip(params.domains, given, strict=True))
    for cell in space.cells:
        found = cell.workers, space.user_batch(cell), cell.node_type
        if found == (workers, batch, node_type):
            rate = session.learning_rate
            proposed = recipe if rate is None else rate.undo(recipe, cell.batch_size)
            return TrialRecord(trial_id, cell, proposed, len(session.records))
    return None


def logged_results(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the results in Tune's own log of a trial; lines that can't be read are left out."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            result = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(result, dict):
            yield result


def _value(config: Mapping[str, Any], path: tuple[str, ...]) -> Any:  # noqa: ANN401 - the user's
    value: Any = config
    for key in path:
        value = value[key]
    return value
