"""Asks how often what a search believes of epochs and deadlines is so, on replayed traces.

Usage: OMP_NUM_THREADS=1 python benchmarks/calibration.py --traces DIR --json FILE
           [--seeds 3] [--planned-runs 1,10] [--cost worker-hours|node-hours] [--noise 0.05]

After each report, and before each new run, it notes for every batch whose run has not ended:

* the 90 % interval of the epochs to the target, by how far the batch's run has come: held out
  where it has none. Hit where the interval, widened by one evaluation to each side, holds the
  true epochs, those of the traces' mean curve;
* after each report, the chance that this run meets the deadline on the workers it has, were it
  to go on. Met where start-up and true epochs on these workers take no longer.

Beside FILE comes FILE with the ending .md.
"""

import argparse
import json
import math
import os
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from replay_tasks import read, tasks

from raycosttune import NodeHours, WorkerHours
from raycosttune.core.abilities import Abilities
from raycosttune.core.decision import Answer, Decision
from raycosttune.core.guard import chances
from raycosttune.core.held import present
from raycosttune.core.node_type import Free
from raycosttune.core.planner import Planner
from raycosttune.core.proposer import recipe_key
from raycosttune.core.session import Session
from raycosttune.simulate import Noise, TraceWorkload, simulate

COSTS: dict[str, NodeHours | WorkerHours] = {
    "worker-hours": WorkerHours(),
    "node-hours": NodeHours(),
}
LEVELS = (0.05, 0.95)
STAGES = {"held out": (-1.0, 0.0), "to 10 %": (0.0, 0.1), "to 50 %": (0.1, 0.5), "on": (0.5, 1.0)}
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
        epochs: Job, share of the true epochs that the run has done (negative for no run) and
            whether the interval held the truth.
        deadlines: Job, chance and whether the deadline would have been met.
    """

    epochs: list[tuple[str, float, bool]] = field(default_factory=list)
    deadlines: list[tuple[str, float, bool]] = field(default_factory=list)


class Watched(Session):
    """Notes what it believes whenever it is asked."""

    def watch(self, workload: TraceWorkload, notes: Notes) -> None:
        """Notes from now on, against a workload's truth."""
        self._workload, self._notes = workload, notes

    def ask(self, trial_id: str, *, free_workers: Free = None) -> Answer:
        """See Session.ask."""
        planner = self.moment.forecast
        if planner is not None and not self.live:
            self._note_epochs(planner, {})
        return super().ask(trial_id, free_workers=free_workers)

    def decide(self, trial_id: str, **options: Any) -> Decision:  # noqa: ANN401 - passed on
        """See Session.decide."""
        record, planner = self.records[trial_id], self.moment.forecast
        batch = record.allocation.batch_size
        needed = self._workload.curve(batch).epochs_to(self.goal)
        if planner is not None and record.reports and record.epoch < needed:
            self._note_epochs(planner, {batch: record.epoch})
            if self.goal.deadline_seconds is not None:
                seen = chances(
                    planner.outlook(recipe_key(record.recipe)),
                    batch,
                    epoch=record.epoch,
                    seconds_left=self.goal.deadline_seconds - record.run_seconds,
                )
                cell = present(record, self.space)
                took = needed * self._workload.epoch_seconds(cell)
                took += self._workload.startup_seconds(cell.workers)
                chance = float(seen.in_time[seen.workers.index(cell.workers)])
                is_met = took <= self.goal.deadline_seconds
                self._notes.deadlines.append((self._workload.name, chance, is_met))
        return super().decide(trial_id, **options)

    def _note_epochs(self, planner: Planner, done: dict[int, float]) -> None:
        belief = planner.outlook(planner.new_recipe).belief
        tried = {record.allocation.batch_size for record in self.records.values()}
        for batch in belief.law.batches:
            if batch in tried and batch not in done:
                continue
            needed = self._workload.curve(batch).epochs_to(self.goal)
            after = done.get(batch, 0.0)
            low, high = np.quantile(belief.stages(batch, after), LEVELS)
            held = low - belief.period <= needed <= high + belief.period
            share = after / needed if batch in done else -1.0
            if math.isfinite(needed):
                self._notes.epochs.append((self._workload.name, share, bool(held)))


def run(job: Job) -> Notes:
    """Replays a sweep and returns what was noted."""
    task = tasks("pollux-t4")[job.task]
    workload, goal = read(job.traces, task, 0.0)
    goal, cost, notes = replace(goal, planned_runs=job.planned_runs), COSTS[job.cost], Notes()

    def start(clock: Any) -> Watched:  # noqa: ANN401 - a function of nothing
        able = Abilities(profile=True, resize=True)
        args = workload.space, goal
        session = Watched(*args, cost=cost, max_concurrent=1, abilities=able, clock=clock)
        session.watch(workload, notes)
        return session

    noise = Noise(job.noise, curves=True)
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
    options = parser.parse_args()
    jobs = [
        Job(task, seed, int(planned), options.traces, options.cost, options.noise)
        for planned in options.planned_runs.split(",")
        for task in range(len(tasks("pollux-t4")))
        for seed in range(options.seeds)
    ]
    notes = Notes()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
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
    yield f"| run of the batch | all | {' | '.join(names)} |"
    yield "|---" * (len(names) + 2) + "|"
    for stage, (low, high) in STAGES.items():
        rows = [row for row in notes.epochs if low <= row[1] < high or row[1] == low == -1.0]
        shares = [_share(rows), *(_share([r for r in rows if r[0] == name]) for name in names)]
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
