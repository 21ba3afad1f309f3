"""A finished sweep of one's own, replayed from its journal."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from raycosttune.core.cost import CostMetric
from raycosttune.core.digest import summed_up
from raycosttune.core.goal import Goal
from raycosttune.core.measured import space_of
from raycosttune.core.observation import TrialRecord
from raycosttune.core.space import Allocation
from raycosttune.core.timed import timed
from raycosttune.errors import InvalidGoalError, InvalidStateError, InvalidWorkloadError
from raycosttune.results.header import read_header, read_header_cost
from raycosttune.results.journal import FOLDER, journal_of, read_journal
from raycosttune.results.replay import read_trials
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.workload import Curve

STEPS = 100


@dataclass(frozen=True)
class RecordedWorkload(TableWorkload):
    """Is what a sweep measured: its cells, their epoch times and start-ups, its curves.

    At each batch the curve of the recipe is replayed that reached the target first, or came
    furthest: the median of its runs that reached it, of all where none did. It ends where the
    longest of them ended. What a first epoch took beyond the others is start-up, as in the
    sweep itself. A journal holds no steps: a step is taken as a hundredth of an epoch.
    """

    @classmethod
    def read(cls, path: Path | str, goal: Goal) -> "RecordedWorkload":
        """Reads a sweep.

        Args:
            path: The run's folder, or its journal.
            goal: Target by which the recipes of a batch are compared.

        Raises:
            InvalidWorkloadError: If there is no journal, it can't be read, no trial in it
                reported, or its cells lie on machines of several sizes.
        """
        journal = journal_of(path)
        folder = journal.parent.parent if journal.parent.name == FOLDER else journal.parent
        try:
            rows = read_journal(journal) if journal.is_file() else None
            records = None if rows is None else read_trials(rows).values()
        except (InvalidStateError, OSError, KeyError, TypeError, ValueError) as error:
            msg = f"the journal {journal} can't be replayed: {error!r}"
            raise InvalidWorkloadError(msg) from error
        if records is None:
            msg = f"a recorded sweep must have a journal, found none @ {journal}"
            raise InvalidWorkloadError(msg)
        try:
            return cls.of(records, goal, name=folder.name)
        except InvalidWorkloadError as error:
            msg = f"{error} @ {journal}"
            raise InvalidWorkloadError(msg) from error

    @classmethod
    def of(
        cls, records: Iterable[TrialRecord], goal: Goal, *, name: str = "recorded"
    ) -> "RecordedWorkload":
        """Builds the workload of trial records; those without a value or a time are left out.

        Raises:
            InvalidWorkloadError: If none is left, or their cells lie on machines of several
                sizes.
        """
        times: dict[Allocation, list[float]] = defaultdict(list)
        starts: dict[int, list[float]] = defaultdict(list)
        runs: dict[int, list[TrialRecord]] = defaultdict(list)
        for told in records:
            record = replace(told, reports=[report.cleaned() for report in told.reports])
            # Parts on other workers are left out: their nodes are not recorded.
            cell, (seconds, startups) = record.allocation, timed(record)
            if cell.workers in seconds and _values(record):
                times[cell].extend(seconds[cell.workers])
                starts[cell.workers].extend(startups.get(cell.workers, ()))
                runs[cell.batch_size].append(record)
        if not times:
            msg = "a trial must have reported the metric and its time, none did"
            raise InvalidWorkloadError(msg)
        space = space_of(times)
        epochs = {cell: statistics.median(times[cell]) for cell in space.cells}
        return cls(
            name=name,
            space=space,
            epochs=epochs,
            steps={cell: seconds / STEPS for cell, seconds in epochs.items()},
            curves={batch: _curve(of_batch, goal) for batch, of_batch in runs.items()},
            startups={n: statistics.median(seconds) for n, seconds in starts.items()},
        )


def read_recorded_header(path: Path | str) -> tuple[Goal, str | None, CostMetric | None]:
    """Returns the goal of a recorded sweep, the unit of its cost and, if it is there, the metric.

    Args:
        path: The run's folder, or its journal.

    Raises:
        InvalidWorkloadError: If there is no journal with a header, or no goal in it.
    """
    journal = journal_of(path)
    try:
        rows = read_journal(journal)
        header = next((row for row in rows if row["row"] == "header"), None)
        if header is not None:
            return *read_header(header), read_header_cost(header)
    except (InvalidGoalError, InvalidStateError, OSError) as error:
        msg = f"the journal {journal} can't be replayed: {error}"
        raise InvalidWorkloadError(msg) from error
    msg = f"{path} holds no journal of a sweep; a folder of traces needs --workload"
    raise InvalidWorkloadError(msg)


def _values(record: TrialRecord) -> dict[float, float]:
    return {r.epoch: r.value for r in record.run if r.value is not None}


def _curve(records: Iterable[TrialRecord], goal: Goal) -> Curve:
    by_recipe: dict[str, list[TrialRecord]] = defaultdict(list)
    for record in records:
        by_recipe[record.key].append(record)

    def rank(runs: list[TrialRecord]) -> tuple[float, float]:
        best = max(goal.sign * value for run in runs for value in _values(run).values())
        return min(map(needed, runs)), -best

    def needed(run: TrialRecord) -> float:
        seen = summed_up(run, goal).epochs
        return math.inf if seen is None else seen.high

    best = min(by_recipe.values(), key=rank)
    reached = [run for run in best if math.isfinite(needed(run))]
    points: dict[float, list[float]] = defaultdict(list)
    for record in reached or best:
        for epoch, value in _values(record).items():
            points[epoch].append(value)
    epochs = tuple(sorted(points))
    return Curve(epochs, tuple(statistics.median(points[epoch]) for epoch in epochs))
