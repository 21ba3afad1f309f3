"""Asks how often what a search believes of epochs and deadlines is so, on replayed traces.

Usage: OMP_NUM_THREADS=1 python benchmarks/calibration.py --traces DIR --json FILE
           [--seeds 3] [--planned-runs 1,10] [--cost worker-hours|node-hours] [--noise 0.05]
           [--jobs pollux-bert,...] [--processes N]

After each report, and before each new run, it notes for every batch whose run has not ended:

* the 90 % interval of the epochs to the target, by how far the batch's run has come: held out
  where it has none. Hit where the interval, widened by one evaluation to each side, holds the
  epochs that this run needs, or the run that would be made there: its own evaluation noise
  included, as the interval is that of a run. Before a first run, where no run of another batch
  has ended at the target, and beside one that has;
* after each report, the chance that this run meets the deadline on the workers it has, were it
  to go on. Met where the epochs that it still needs take no longer on these workers.

Beside FILE comes FILE with the ending .md. The mean over jobs counts each of them alike, however
many reports it has.
"""

import argparse
import json
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from replay_tasks import JOBS, read, tasks

from raycosttune import NodeHours, WorkerHours
from raycosttune.core.abilities import Abilities
from raycosttune.core.belief import Belief
from raycosttune.core.decision import Answer, Decision
from raycosttune.core.guard import chances
from raycosttune.core.held import present
from raycosttune.core.node_type import Free
from raycosttune.core.observation import TrialRecord, recipe_key
from raycosttune.core.planner import Planner
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation
from raycosttune.simulate import Noise, TraceWorkload, simulate

COSTS: dict[str, NodeHours | WorkerHours] = {
    "worker-hours": WorkerHours(),
    "node-hours": NodeHours(),
}
LEVELS = (0.05, 0.95)
STAGES = {
    "none yet": (-1.0, -1.0),
    "none yet, beside one at the target": (-0.5, -0.5),
    "to 10 %": (0.0, 0.1),
    "to 50 %": (0.1, 0.5),
    "beyond": (0.5, 1.0),
}
CHANCES = (0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0)


@dataclass(frozen=True)
class Job:
    """Is one task with one seed."""

    task: int
    seed: int
    planned_runs: int
    traces: Path
    cost: str
    noise: float


@dataclass
class Notes:
    """Is what was noted.

    Attributes:
        epochs: Job, share of the true epochs that the run has done (-1 for no run, -0.5 beside
            one at the target) and whether the interval held the truth.
        deadlines: Job, chance and whether the deadline would have been met.
    """

    epochs: list[tuple[str, float, bool]] = field(default_factory=list)
    deadlines: list[tuple[str, float, bool]] = field(default_factory=list)


class Watched(Session):
    """Notes what it believes whenever it is asked."""

    def watch(self, workload: TraceWorkload, noise: Noise, seed: int, notes: Notes) -> None:
        """Notes from now on, against what a workload's runs show."""
        self._workload, self._noise, self._seed, self._notes = workload, noise, seed, notes
        self._needed: dict[tuple[Allocation, int], tuple[float, float]] = {}

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
        """See Session.ask."""
        planner = self.moment.forecast
        if planner is not None and not self.live:
            self._note_epochs(planner)
        return super().ask(trial_id, free_workers=free_workers)

    def decide(
        self, trial_id: str, *, free_workers: Free = None, can_resize: bool = True
    ) -> Decision:
        """See Session.decide."""
        record, planner = self.records[trial_id], self.moment.forecast
        needed, end = self._needs(record.allocation, self._repetition(record))
        if planner is not None and record.reports and record.epoch < needed:
            self._note_epochs(planner, record, needed)
            if self.goal.deadline_seconds is not None:
                left = self.goal.deadline_seconds - record.run_seconds
                self._note_deadline(planner, record, left, (needed, end))
        return super().decide(trial_id, free_workers=free_workers, can_resize=can_resize)

    def _repetition(self, record: TrialRecord) -> int:
        """Counts the runs that were begun in a run's cell before it."""
        same = (r.trial_id for r in self.records.values() if r.allocation == record.allocation)
        return list(same).index(record.trial_id)

    def _needs(self, cell: Allocation, repetition: int = 0) -> tuple[float, float]:
        """Returns the epochs that a run needs, and those after which its curve ends."""
        key = cell, repetition
        if key not in self._needed:
            told = self._noise.run(self._workload, cell, seed=self._seed, repetition=repetition)
            shown = [(each.epoch, each.value) for each in told]
            hits = (epoch for epoch, value in shown if self.goal.is_reached(value))
            self._needed[key] = next(hits, math.inf), shown[-1][0]
        return self._needed[key]

    def _note_deadline(
        self, planner: Planner, record: TrialRecord, left: float, ends: tuple[float, float]
    ) -> None:
        cell, batch = present(record, self.space), record.allocation.batch_size
        pace, (needed, end) = self._workload.epoch_seconds(cell), ends
        if math.isinf(needed) and (end - record.epoch) * pace <= left:
            return  # the curve ends before anybody can tell
        outlook = planner.outlook(recipe_key(record.recipe))
        seen = chances(outlook, batch, epoch=record.epoch, seconds_left=left)
        chance = float(seen.in_time[seen.workers.index(cell.workers)])
        is_met = (needed - record.epoch) * pace <= left
        self._notes.deadlines.append((self._workload.name, chance, is_met))

    def _note_epochs(
        self, planner: Planner, record: TrialRecord | None = None, needed: float = 0.0
    ) -> None:
        belief = planner.outlook(planner.new_recipe).belief
        tried = {each.allocation.batch_size for each in self.records.values()}
        reached = any(digest.reached for digest in self.moment.known.digests)
        stage = -0.5 if reached else -1.0
        for batch in belief.law.batches:
            if record is not None and batch == record.allocation.batch_size:
                self._note(belief, batch, needed, record.epoch, record.epoch / needed)
            elif batch not in tried:
                cells = [cell for cell in self.space.cells if cell.batch_size == batch]
                least = min(cells, key=lambda cell: cell.workers)
                self._note(belief, batch, self._needs(least)[0], 0.0, stage)

    def _note(self, belief: Belief, batch: int, needed: float, after: float, stage: float) -> None:
        low, high = np.quantile(belief.stages(batch, after), LEVELS)
        held = low - belief.period <= needed <= high + belief.period
        if math.isfinite(needed):
            self._notes.epochs.append((self._workload.name, stage, bool(held)))


def run(job: Job) -> Notes:
    """Replays a sweep and returns what was noted."""
    task = tasks("pollux-t4")[job.task]
    workload, goal = read(job.traces, task, 0.0)
    goal, cost, notes = replace(goal, planned_runs=job.planned_runs), COSTS[job.cost], Notes()
    noise = Noise(job.noise, curves=True)

    def start(clock: Callable[[], float]) -> Watched:
        able = Abilities(profile=True, resize=True)
        args = workload.space, goal
        session = Watched(*args, cost=cost, max_concurrent=1, abilities=able, clock=clock)
        session.watch(workload, noise, job.seed, notes)
        return session

    limit = goal.deadline_seconds
    simulate(start, workload, cost=cost, deadline_seconds=limit, noise=noise, seed=job.seed)
    return notes


def main() -> None:
    """Reads the arguments, replays, and writes what was noted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--planned-runs", default="1,10")
    parser.add_argument("--cost", choices=sorted(COSTS), default="worker-hours")
    parser.add_argument("--noise", type=float, default=0.05)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    jobs = [
        Job(task, seed, int(planned), options.traces, options.cost, options.noise)
        for planned in options.planned_runs.split(",")
        for task, about in enumerate(tasks("pollux-t4"))
        if about.workload in options.jobs.split(",")
        for seed in range(options.seeds)
    ]
    notes = Notes()
    with ProcessPoolExecutor(options.processes) as pool:
        for found in pool.map(run, jobs, chunksize=2):
            notes.epochs += found.epochs
            notes.deadlines += found.deadlines
    options.json.write_text(json.dumps(vars(notes)))
    text = "\n".join(table(notes))
    options.json.with_suffix(".md").write_text(text + "\n")
    print(text)


def table(notes: Notes) -> Iterator[str]:
    """Yields the tables' lines."""
    names = sorted({name for name, _, _ in notes.epochs})
    yield "Share of 90 % intervals of epochs to the target that hold the truth (and how many):\n"
    yield f"| run of the batch | all | mean over jobs | {' | '.join(names)} |"
    yield "|---" * (len(names) + 3) + "|"
    for stage, (low, high) in STAGES.items():
        rows = [row for row in notes.epochs if low <= row[1] < high or low == row[1] == high]
        each = [[row for row in rows if row[0] == name] for name in names]
        means = [np.mean([row[2] for row in some]) for some in each if some]
        alike = f"{np.mean(means):.0%}" if means else "none"
        shares = [_share(rows), alike, *(_share(some) for some in each)]
        yield f"| {stage} | {' | '.join(shares)} |"
    yield "\nChance to meet the deadline as estimated while a run goes on, and what is so:\n"
    yield "| estimated | so | runs' reports |"
    yield "|---|---|---|"
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for _, chance, is_met in notes.deadlines:
        place = int(
            np.clip(np.searchsorted(CHANCES, chance, side="right") - 1, 0, len(CHANCES) - 2)
        )
        bins[place].append((chance, is_met))
    for place, pairs in sorted(bins.items()):
        met = np.mean([is_met for _, is_met in pairs])
        low, high = CHANCES[place], CHANCES[place + 1]
        mean = np.mean([chance for chance, _ in pairs])
        yield f"| {low:.0%} to {high:.0%}, mean {mean:.0%} | {met:.0%} | {len(pairs)} |"


def _share(rows: list[tuple[str, float, bool]]) -> str:
    return f"{np.mean([row[2] for row in rows]):.0%} ({len(rows)})" if rows else "none"


if __name__ == "__main__":
    main()
