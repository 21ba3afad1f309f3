"""A sweep of short trials that may be killed at any moment, and what its folder tells of it."""

import json
import math
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ray import tune

from raycosttune.core.cost import WorkerHours
from raycosttune.core.goal import Goal
from raycosttune.core.observation import TrialRecord
from raycosttune.core.plan import NoPlan
from raycosttune.results.journal import read_journal
from raycosttune.results.replay import read_names, read_trials
from raycosttune.results.rows import Row
from raycosttune.tune import CostAwareScheduler, CostAwareSearch

NAME = "sweep"


class SweepFolder:
    """Reads what a sweep has left so far, from outside of the process that leads it.

    Attributes:
        folder: Holds the experiment, the log of work and the result.
    """

    def __init__(self, folder: Path) -> None:
        """Reads below a folder, which may be empty yet."""
        self.folder = folder

    @property
    def experiment(self) -> Path:
        """Tune's folder of the experiment."""
        return self.folder / NAME

    def is_restorable(self) -> bool:
        """Tells whether Tune has saved the state of its trials."""
        return any(self.experiment.glob("experiment_state-*.json"))

    def records(self) -> dict[str, TrialRecord]:
        """Returns every trial that the journal knows."""
        return read_trials(self._rows())

    def ended(self) -> dict[str, TrialRecord]:
        """Returns the trials whose end is in the journal."""
        return {name: record for name, record in self.records().items() if not record.is_live}

    def names(self) -> dict[str, str]:
        """Returns the ids of records by the new ids of trials that Tune had forgotten."""
        return read_names(self._rows())

    def starts(self) -> list[str]:
        """Lists Tune's ids of the trials that began to work, as they did themselves."""
        log = self.folder / "work.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line.split()[1] for line in lines if line.startswith("start ")]

    def started(self) -> list[str]:
        """Lists the ids of the records of the trials that began to work."""
        names = self.names()
        return [names.get(trial, trial) for trial in self.starts()]

    def spent(self) -> float:
        """Returns the cost of everything in the journal, in worker-hours."""
        records = self.records().values()
        return math.fsum(WorkerHours()(r.allocation, r.seconds) for r in records)

    def result(self) -> dict[str, Any] | None:
        """Returns what the sweep wrote when it was over, None before."""
        path = self.folder / "result.json"
        result: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
        return result

    def _rows(self) -> list[Row]:
        return read_journal(self.experiment / "raycosttune" / "journal.jsonl")


def run_sweep(
    folder: Path,
    trainable: Callable[[dict[str, Any]], object],
    goal: Goal,
    space: dict[str, Any],
    **settings: Any,
) -> None:
    """Runs a sweep, or goes on with it where it was killed, and writes its result.

    Args:
        folder: Where everything of the sweep lies.
        trainable: What a trial runs.
        goal: Target and limits.
        space: The search space.
        settings: Further arguments of `TuneConfig`.
    """
    sweep = SweepFolder(folder)
    if tune.Tuner.can_restore(str(sweep.experiment)):
        tuner = tune.Tuner.restore(str(sweep.experiment), trainable, param_space=space)
    else:
        shutil.rmtree(sweep.experiment, ignore_errors=True)
        tuner = tune.Tuner(
            trainable,
            param_space=space,
            tune_config=tune.TuneConfig(
                search_alg=CostAwareSearch(goal, cost=WorkerHours(), max_concurrent=2),
                scheduler=CostAwareScheduler(),
                **settings,
            ),
            run_config=tune.RunConfig(
                name=NAME,
                storage_path=str(folder),
                verbose=0,
                failure_config=tune.FailureConfig(max_failures=3),
            ),
        )
    tuner.fit()
    search = CostAwareSearch.of(tuner)
    plan, session = search.plan(), search.session
    result = {
        "spent": session.spent,
        "ended": [name for name, record in session.records.items() if not record.is_live],
        "plan": None if isinstance(plan, NoPlan) else str(plan),
        "explained": search.explain(),
    }
    scratch = folder / "result.new"
    scratch.write_text(json.dumps(result))
    scratch.replace(folder / "result.json")


def train_slowly(
    log: Path, config: dict[str, Any], epochs: int, seconds: float, loss: Callable[[int], float]
) -> None:
    """Works for some epochs as a function of Tune's, and logs that it began."""
    note(log, f"start {tune.get_context().get_trial_id()}")
    for epoch in range(1, epochs + 1):
        time.sleep(seconds / config["num_workers"])
        tune.report({"loss": loss(epoch), "epoch": epoch})


def note(log: Path, line: str) -> None:
    """Appends a line that is on disk before anything else is done."""
    with log.open("a") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
