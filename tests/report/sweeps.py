"""Sweeps on disk as a search leaves them: finished, running, broken off, empty."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.space import Allocation, Space
from raycosttune.results.header import header_row
from raycosttune.results.journal import Journal
from raycosttune.results.rows import (
    ELAPSED,
    Row,
    asked_row,
    observation_row,
    over_row,
    profile_row,
    profiled_row,
    run_header_row,
    run_report_row,
)

SPACE = Space((1, 2, 4), (32, 64), workers_per_node=2)
GOAL = Goal(metric="accuracy", mode="max", target=0.9, deadline_seconds=100, planned_runs=50)
LONG_AGO = 1e9


class Writer:
    """Writes a sweep's journal, row after row, on a clock of its own.

    Args:
        folder: The experiment's folder.
        goal: The goal.
        is_timed: Whether rows say when they were written.
    """

    def __init__(self, folder: Path, goal: Goal = GOAL, *, is_timed: bool = True) -> None:
        self.folder = folder / "raycosttune"
        self.now = 0.0
        self.is_timed = is_timed
        self._journal = Journal(self.folder / "journal.jsonl")
        self.write(header_row(goal, "worker-hours", SPACE if is_timed else None))

    def write(self, *rows: Row) -> None:
        self._journal.append(
            *({**row, ELAPSED: self.now} if self.is_timed else row for row in rows)
        )

    def trial(
        self,
        name: str,
        cell: tuple[int, int],
        values: list[float | None],
        end: Ended | None = None,
        *,
        recipe: Mapping[str, object] | None = None,
        pace: float = 2.0,
        lists: bool = False,
    ) -> None:
        """Writes a trial with a report for each value."""
        record = TrialRecord(name, SPACE.allocation(*cell), dict(recipe or {}), 0)
        self.write(asked_row(record, "is the cheapest guess"))
        for report in _reports(values, pace):
            self.now += report.seconds
            self.write(observation_row(name, report))
            if lists:
                self.workers(name, report, cell)
        if end is not None:
            self.now += end.seconds
            self.write(observation_row(name, end))

    def workers(self, name: str, report: Report, cell: tuple[int, int]) -> None:
        """Writes a report of the run's own, with what its workers did."""
        workers, batch = cell
        own = Journal(self.folder / "trials" / f"{name}.jsonl")
        if report.epoch == 1:
            own.append(run_header_row(name))
        metrics = {
            "accuracy": report.value,
            "raycosttune/shares": [batch // workers] * workers,
            "raycosttune/compute_seconds": [1.5 / (1 + rank) for rank in range(workers)],
            "raycosttune/idle_seconds": [1.5 - 1.5 / (1 + rank) for rank in range(workers)],
        }
        own.append(run_report_row(name, report, metrics))

    def profile(self, name: str) -> None:
        """Writes a profile of two cells."""
        cells = (Allocation(1, 32, 1), Allocation(2, 32, 1))
        record = ProfileRecord(name, Profile(cells, why="steps are cheap"))
        self.write(profile_row(record))
        self.now += 20
        self.write(profiled_row(name, Profiled({cells[0]: 4.0, cells[1]: 2.5}, 20.0, 10.0)))


def _reports(values: list[float | None], pace: float) -> Iterator[Report]:
    for epoch, value in enumerate(values, start=1):
        startup = 10.0 if epoch == 1 else 0.0
        yield Report(float(epoch), value, pace + startup, startup, checkpoint=f"/model/{epoch}")


def finished(folder: Path, *, is_timed: bool = True) -> Path:
    """Writes a sweep with every kind of end, and returns its folder."""
    sweep = Writer(folder, is_timed=is_timed)
    sweep.profile("p0")
    sweep.trial(
        "a", (2, 32), [0.5, 0.8, 0.92], Ended(EndCause.REACHED, "reached the target 0.9"),
        recipe={"lr": 0.1}, lists=True,
    )  # fmt: skip
    sweep.trial(
        "b", (1, 64), [0.3, 0.5], Ended(EndCause.STOPPED, "can't win"), recipe={"lr": 0.1}, pace=3.0
    )
    sweep.trial("c", (4, 64), [], Ended(EndCause.FAILED, "ValueError: no", 7.0), recipe={"lr": 0.2})
    sweep.trial(
        "d", (4, 32), [0.4, None], Ended(EndCause.OUT_OF_MEMORY, "CUDA out of memory"),
        recipe={"lr": 0.2},
    )  # fmt: skip
    sweep.trial(
        "e", (1, 32), [0.6, 0.85, 0.9], Ended(EndCause.REACHED, "reached the target 0.9"),
        recipe={"lr": 0.1}, pace=4.0,
    )  # fmt: skip
    sweep.write(over_row("no further trial pays"))
    return folder


def running(folder: Path) -> Path:
    """Writes a sweep of which a trial still runs; its run's own journal is ahead."""
    sweep = Writer(folder)
    sweep.trial("a", (2, 32), [0.5, 0.92], Ended(EndCause.REACHED, "reached the target 0.9"))
    sweep.trial("b", (1, 64), [0.3, 0.5], lists=True)
    sweep.workers("b", Report(3.0, 0.6, 3.0), (1, 64))
    return folder


def broken_off(folder: Path) -> Path:
    """Writes a running sweep that nobody has written to for years, its last line torn."""
    journal = running(folder) / "raycosttune" / "journal.jsonl"
    with journal.open("a") as file:
        file.write('{"row": "repo')
    os.utime(journal, (LONG_AGO, LONG_AGO))
    return folder


def empty(folder: Path) -> Path:
    """Writes a sweep without a trial."""
    Writer(folder)
    return folder


KINDS = (finished, running, broken_off, empty)
