"""Asks how often a search's intervals of the metric at some batch and epochs hold, on traces.

Usage: OMP_NUM_THREADS=1 python benchmarks/metric_surface.py --traces DIR --json FILE
           [--seeds 2] [--planned-runs 1,10] [--cost worker-hours|node-hours] [--noise 0.05]
           [--jobs pollux-bert,...] [--deadline 1.0] [--processes N]

Before each new run, and after the first few reports of a run and ever fewer later ones, the sweep
is asked what a run comes to at every batch that has not reached the target: at six epochs, closer
at first, from the next evaluation to the last one that fits into the deadline on the fastest
workers; without a deadline up to half as many again as the run needs. Truth is the best value that
this run, or the one that would be made there, reports by then, its own evaluation noise included;
a run ends at the target. Epochs that the curve does not have are not asked for. `--deadline 0.3`
shortens every deadline to that: that of twice the fastest time then is one that nothing can meet.

Beside the intervals, that of a plain isotonic surface: the worst and the best value that curves so
far allow by the order of batches and epochs alone, widened by the same noise. Where an interval
is open it ends, for its width, at the target or at the worst value seen. Widths and errors are
parts of the way from there to the target. Beside FILE comes FILE with the ending .md.
"""

import argparse
import json
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from calibration import COSTS
from replay_tasks import JOBS, read, tasks

from raycosttune.core.abilities import Abilities
from raycosttune.core.array import Floats
from raycosttune.core.decision import Answer, Decision
from raycosttune.core.metric_surface import MetricSurface
from raycosttune.core.node_type import Free
from raycosttune.core.observation import TrialRecord
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation
from raycosttune.core.time_surrogate import Z90
from raycosttune.simulate import Noise, TraceWorkload, simulate

REPORTS = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89}
ASKED = 6
TINY = 1e-9
KINDS = {
    "another": "another batch, none at the target",
    "beside": "another batch, beside one at the target",
    "rest": "the rest of a run",
}


@dataclass(frozen=True)
class Case:
    """Is one task with one seed."""

    task: int
    seed: int
    planned_runs: int
    options: argparse.Namespace


@dataclass(frozen=True)
class Row:
    """Is one question and its answers, all but the counts as gaps to the target.

    Attributes:
        job: Name of the workload.
        kind: Key of KINDS.
        best: The true best value by then.
        value: The true evaluation then.
        ends: The interval, its better end first, infinite where it is open.
        mid: The median.
        plain: The interval of the isotonic surface.
        span: The largest gap of any level.
    """

    job: str
    kind: str
    best: float
    value: float
    ends: tuple[float, float]
    mid: float
    plain: tuple[float, float]
    span: float

    def holds(self, ends: tuple[float, float], gap: float) -> bool:
        """Tells whether an interval holds a gap; a run ends at the target."""
        return ends[0] - TINY <= max(gap, 0.0) <= ends[1] + TINY

    def width(self, ends: tuple[float, float]) -> float:
        """Returns the width of an interval as a part of the way to the target."""
        least, most = (min(max(end, 0.0), self.span) for end in ends)
        return (most - least) / self.span

    @property
    def error(self) -> float:
        """What the median is off the truth by, as a part of the way to the target."""
        return abs(self.mid - max(self.best, 0.0)) / self.span


class Watched(Session):
    """Notes what it predicts whenever it is asked."""

    def watch(self, workload: TraceWorkload, noise: Noise, seed: int, rows: list[Row]) -> None:
        """Notes from now on, against what a workload's runs show."""
        self._workload, self._noise, self._seed, self._rows = workload, noise, seed, rows
        self._curves: dict[tuple[Allocation, int], tuple[Floats, Floats]] = {}

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
        """See Session.ask."""
        if not self.live:
            self._note()
        return super().ask(trial_id, free_workers=free_workers)

    def decide(
        self, trial_id: str, *, free_workers: Free = None, can_resize: bool = True
    ) -> Decision:
        """See Session.decide."""
        if len(self.records[trial_id].reports) in REPORTS:
            self._note()
        return super().decide(trial_id, free_workers=free_workers, can_resize=can_resize)

    def _note(self) -> None:
        surface = self.moment.surface
        if surface is None or not surface.gaps[0]:
            return
        digests = self.known.digests
        done = {d.record.allocation.batch_size for d in digests if d.reached}
        runs = {record.allocation.batch_size: record for record in self.records.values()}
        points = np.array([(d.record.allocation.batch_size, *p) for d in digests for p in d.gaps])
        for batch in set(surface.batches) - done:
            run = runs.get(batch)
            if run is None or not run.reports:
                cells = (cell for cell in self.space.cells if cell.batch_size == batch)
                least = min(cells, key=lambda cell: cell.workers)
                kind = "beside" if done else "another"
                self._ask(surface, batch, self._gaps(least, 0), 0.0, kind, points)
            else:
                truth = self._gaps(run.allocation, self._repetition(run))
                self._ask(surface, batch, truth, run.epoch, "rest", points)

    def _ask(
        self,
        surface: MetricSurface,
        batch: int,
        truth: tuple[Floats, Floats],
        begun: float,
        kind: str,
        points: Floats,
    ) -> None:
        epochs, gaps = truth
        best = np.minimum.accumulate(gaps)
        ahead = np.flatnonzero((epochs > begun) & (epochs <= self._most(batch, epochs, best)))
        if not len(ahead):
            return
        goal, sign = self.goal, self.goal.sign
        for k in ahead[np.unique(np.geomspace(1, len(ahead), ASKED).round().astype(int)) - 1]:
            told = surface.predict(batch, float(epochs[k]))
            low, mid, high = (sign * (goal.target - x) for x in (told.low, told.mid, told.high))
            plain = _plain(points, batch, float(epochs[k]), Z90 * surface.noise)
            ends = (high, low) if sign > 0 else (low, high)
            where = self._workload.name, kind
            shown = float(best[k]), float(gaps[k])
            self._rows.append(Row(*where, *shown, ends, mid, plain, float(surface.gaps[0])))

    def _most(self, batch: int, epochs: Floats, best: Floats) -> float:
        """Returns the most epochs that anybody asks for."""
        if self.goal.deadline_seconds is None:
            needed = epochs[best <= 0]
            return 1.5 * float(needed[0]) if len(needed) else math.inf
        cells = (cell for cell in self.space.cells if cell.batch_size == batch)
        return self.goal.deadline_seconds / min(map(self._workload.epoch_seconds, cells))

    def _repetition(self, record: TrialRecord) -> int:
        """Counts the runs that were begun in a run's cell before it."""
        same = (r.trial_id for r in self.records.values() if r.allocation == record.allocation)
        return list(same).index(record.trial_id)

    def _gaps(self, cell: Allocation, repetition: int) -> tuple[Floats, Floats]:
        """Returns the epochs of a run and its gaps to the target, negative beyond it."""
        key = cell, repetition
        if key not in self._curves:
            told = self._noise.run(self._workload, cell, seed=self._seed, repetition=repetition)
            epochs, values = np.array([(each.epoch, each.value) for each in told]).T
            self._curves[key] = epochs, self.goal.sign * (self.goal.target - values)
        return self._curves[key]


def _plain(points: Floats, batch: int, epoch: float, slack: float) -> tuple[float, float]:
    """Bounds a gap by order: a smaller batch and more epochs bring a run nearer."""
    batches, epochs, gaps = points.T
    nearer = gaps[(batches <= batch) & (epochs >= epoch)]
    farther = gaps[(batches >= batch) & (epochs <= epoch)]
    low = float(np.max(nearer, initial=-math.inf))
    high = float(np.min(farther, initial=math.inf))
    return min(low, high) - slack, max(low, high) + slack


def run(case: Case) -> list[Row]:
    """Replays a sweep and returns what was asked."""
    options, task = case.options, tasks("pollux-t4")[case.task]
    workload, goal = read(options.traces, task, 0.0)
    limit = goal.deadline_seconds and goal.deadline_seconds * options.deadline
    goal = replace(goal, planned_runs=case.planned_runs, deadline_seconds=limit)
    cost, noise, rows = COSTS[options.cost], Noise(options.noise, curves=True), list[Row]()

    def start(clock: Callable[[], float]) -> Watched:
        able = Abilities(profile=True, resize=True)
        args = workload.space, goal
        session = Watched(*args, cost=cost, max_concurrent=1, abilities=able, clock=clock)
        session.watch(workload, noise, case.seed, rows)
        return session

    simulate(start, workload, cost=cost, deadline_seconds=limit, noise=noise, seed=case.seed)
    return rows


def main() -> None:
    """Reads the arguments, replays, and writes what was asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--planned-runs", default="1,10")
    parser.add_argument("--cost", choices=sorted(COSTS), default="worker-hours")
    parser.add_argument("--noise", type=float, default=0.05)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--deadline", type=float, default=1.0)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    cases = [
        Case(task, seed, int(planned), options)
        for planned in options.planned_runs.split(",")
        for task, about in enumerate(tasks("pollux-t4"))
        if about.workload in options.jobs.split(",")
        for seed in range(options.seeds)
    ]
    with ProcessPoolExecutor(options.processes) as pool:
        rows = [row for found in pool.map(run, cases) for row in found]
    options.json.write_text(json.dumps([asdict(row) for row in rows]))
    text = "\n".join(table(rows))
    options.json.with_suffix(".md").write_text(text + "\n")
    print(text)


def table(rows: list[Row]) -> Iterator[str]:
    """Yields the lines of the table, the mean over jobs last for each kind of question."""
    yield (
        "| asked of | job | questions | in 90 % interval | single evaluations | open "
        "| median width | median error | plain: in interval | plain: median width |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for kind, name in (*KINDS.items(), ("", "all")):
        of_kind = [row for row in rows if kind in ("", row.kind)]
        found = []
        for job in sorted({row.job for row in of_kind}):
            some = [row for row in of_kind if row.job == job]
            found.append(_figures(some))
            yield f"| {name} | {job} | {len(some)} | {_cells(found[-1])} |"
        if found:
            yield f"| {name} | mean over jobs | {len(of_kind)} | {_cells(np.mean(found, axis=0))} |"


def _figures(rows: list[Row]) -> Floats:
    def mean(told: Iterator[bool]) -> float:
        return float(np.mean(list(told)))

    return np.array(
        [
            mean(row.holds(row.ends, row.best) for row in rows),
            mean(row.holds(row.ends, row.value) for row in rows),
            mean(not all(map(math.isfinite, row.ends)) for row in rows),
            np.median([row.width(row.ends) for row in rows]),
            np.median([row.error for row in rows]),
            mean(row.holds(row.plain, row.best) for row in rows),
            np.median([row.width(row.plain) for row in rows]),
        ]
    )


def _cells(figures: Floats) -> str:
    return " | ".join(f"{figure:.0%}" for figure in figures)


if __name__ == "__main__":
    main()
