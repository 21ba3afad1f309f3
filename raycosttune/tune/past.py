"""A sweep as its experiment's folder tells it, read before Tune goes on with it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raycosttune.core.goal import Goal
from raycosttune.errors import InvalidStateError, RayCostTuneError
from raycosttune.results.header import read_header, read_samples
from raycosttune.results.journal import read_journal
from raycosttune.results.replay import merge_rows, read_names
from raycosttune.results.rows import Row, read_profiled
from raycosttune.train.keys import FOLDER
from raycosttune.tune.convert import Config, ParamSpace
from raycosttune.tune.domain import read_space
from raycosttune.tune.ledger import Ledger
from raycosttune.tune.profile import holds
from raycosttune.tune.profile_run import without_profile
from raycosttune.tune.saved import Saved, read_saved, saved_states
from raycosttune.tune.setup import Setup, goal_with
from raycosttune.tune.sweep import Sweep

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Past:
    """Is what a restored tuner knows of the run that it will go on with.

    Attributes:
        folder: The experiment's folder, None where it isn't a local one.
        configs: The config of each trial, by its id.
    """

    folder: Path | None
    configs: Mapping[str, Config]

    def sweep(self, goal: Goal, setup: Setup, params: ParamSpace | None) -> Sweep | None:
        """Returns the sweep as it was left, None where too little of it is saved.

        Nothing on disk is touched, and Tune's own restore later starts from the same files.

        Raises:
            InvalidStateError: If it ran on another cluster than is seen from here.
        """
        if self.folder is None or not self.configs:
            return None
        saved, rows = _newest(self.folder), _rows(self.folder)
        params = params or (_space(rows) if saved is None else saved.params)
        if params is None:
            return None
        if saved is not None:
            goal = goal_with(goal, saved.metric, saved.mode)
        elif told := _goal(rows):
            goal = goal_with(goal, told.metric, told.mode)
        # A saved space is without its constants; every trial's config has them.
        constants = params.constants or without_profile(next(iter(self.configs.values())))
        sweep = Sweep(setup.session(goal, params), replace(params, constants=constants))
        if saved is not None:
            _load(saved, sweep)
        sweep.session.num_samples = read_samples(rows)
        merge_rows(sweep.session, rows, lambda record: holds(params, record))
        ledger = Ledger()
        ledger.experiment = self.folder
        for known in sweep.session.records:
            for report in ledger.run_reports(known, goal.metric or "", goal):
                sweep.session.tell(known, report)
        for known in [record.trial_id for record in sweep.session.live_profiles]:
            if (row := ledger.run_profile(known)) is not None:
                sweep.session.tell_profile(known, read_profiled(row))
        names = {**sweep.aliases, **read_names(rows)}
        configs = {names.get(name, name): without_profile(c) for name, c in self.configs.items()}
        sweep.configs.update(configs)
        _check_cells(sweep)
        return sweep


def past_of(tuner: object) -> Past | None:
    """Returns what a restored tuner knows, None of one that was never run."""
    local: Any = getattr(tuner, "_local_tuner", None)
    if not getattr(local, "_is_restored", False):
        return None
    run, analysis = local.get_run_config(), getattr(local, "_experiment_analysis", None)
    folder = Path(str(run.storage_path)).expanduser() / str(run.name)
    trials = getattr(analysis, "trials", None) or ()
    return Past(
        folder if folder.is_dir() else None, {trial.trial_id: trial.config for trial in trials}
    )


def not_begun(
    what: str, goal: Goal, params: ParamSpace | None, failure: str = ""
) -> InvalidStateError | None:
    """Returns the error of a search that is asked for results before it has run.

    Args:
        what: What it is asked for.
        goal: Its goal.
        params: Its search space, None where none has arrived.
        failure: Why Tune's run could not begin, "" where none was tried.

    Returns:
        The error, None where all that a session is made of is there and no start failed.
    """
    unnamed = [name for name in ("metric", "mode") if getattr(goal, name) is None]
    parts = [] if params else ["the space to CostAwareSearch(space=...)"]
    parts += [f"{' and '.join(unnamed)} to the Goal"] if unnamed else []
    if not parts and not failure:
        return None
    got = f"one whose start failed: {failure}" if failure else "a search without a trial."
    before = f"; for an estimate before that give {', and '.join(parts)}" if parts else ""
    msg = (
        f"{what}() must be called once Tune has run, got {got} Call fit() of its Tuner first, "
        f"or tune.run{before}."
    )
    return InvalidStateError(msg)


def _newest(folder: Path) -> Saved | None:
    """Reads the state that Tune's own restore will take."""
    for path in saved_states(folder):
        try:
            return read_saved(path)
        except (InvalidStateError, OSError) as error:
            logger.warning("the saved search can't be read: %s", error)
    return None


def _load(saved: Saved, sweep: Sweep) -> None:
    if saved.session is not None:
        try:
            sweep.session.load_state(saved.session)
        except InvalidStateError as error:
            logger.warning("the saved search can't be read: %s @ %s", error, saved.path)
        else:
            sweep.aliases.update(saved.aliases)


def _rows(folder: Path) -> list[Row]:
    try:
        return read_journal(folder / FOLDER / "journal.jsonl")
    except (InvalidStateError, OSError) as error:
        logger.warning("the journal can't be read: %s", error)
        return []


def _space(rows: Sequence[Row]) -> ParamSpace | None:
    """Returns the search space from a journal's header, None where it can't be read."""
    states = [row["space"] for row in rows if row["row"] == "header" and row.get("space")]
    try:
        return read_space(states[-1]) if states else None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        logger.warning("the journal's search space can't be read: %s", error)
        return None


def _goal(rows: Sequence[Row]) -> Goal | None:
    headers = [row for row in rows if row["row"] == "header"]
    try:
        return read_header(headers[-1])[0] if headers else None
    except RayCostTuneError as error:
        logger.warning("the journal's goal can't be read: %s", error)
        return None


def _check_cells(sweep: Sweep) -> None:
    cells = sweep.session.space.cells
    foreign = [r.allocation for r in sweep.session.records.values() if r.allocation not in cells]
    if foreign:
        msg = (
            f"a restored sweep must be read on the cluster that it ran on, got a trial on "
            f"{foreign[0]}, which doesn't exist here. Call fit() first, or connect by ray.init."
        )
        raise InvalidStateError(msg)
