"""Replays the search for the cheapest type of machine among three.

Usage: OMP_NUM_THREADS=1 python benchmarks/node_types.py --traces DIR [--seeds N]

A cross-source combination: step times on K80, P100 and V100 are Gavel's, learning curves are
Pollux's, on other machines. A batch of Gavel's has the curve of the nearest batch of Pollux's
(for ResNet-18 on CIFAR-10 the same, for ResNet-50 on ImageNet 200 for 256 and so on). Prices are
made up, near what such machines cost by the hour, one worker each, billed by the second.

100 planned runs, times with 5 % noise, without a deadline and with one of twice the fastest run
of all types. The cheapest type is found in two ways:

- all at once: one search among (type, workers, batch), as `CostAwareSearch(profile=True)` of a
  space with `node_type`
- one by one: a search on one type, then on each other one by a session that knows the epochs of
  the first (`read_sweep(...).on_other_machines()`) and what the cheapest plan before it costs
  (`Goal(rival_cost=...)`); every type comes first once

What is printed, medians over seeds:

- bill: dollars of the chosen (type, workers, batch), by the truth, over those of the cheapest
  over all types that meets the deadline
- spent: dollars of all searches
- over one: that over what a search on the cheapest type alone spends, of the same seed, plus the
  profiles that were made on the other types. Nobody knows the cheapest type in advance: it is
  the hardest single type to hold a search against
"""

import argparse
import csv
import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from raycosttune import Dollars, Goal, NodePrice, Plan, PriceSheet
from raycosttune.core.abilities import Abilities
from raycosttune.core.measured import measured_space
from raycosttune.core.prior import Prior
from raycosttune.core.session import Session
from raycosttune.simulate import Noise, TraceWorkload, Truth, TypedWorkload, simulate
from raycosttune.simulate.oracle import seconds_to_target
from raycosttune.simulate.outcome import Outcome
from raycosttune.simulate.table import TableWorkload
from raycosttune.simulate.workload import Curve, Workload

JOBS = {
    "resnet18-cifar10": ("pollux-cifar10", 0.93),
    "resnet50-imagenet": ("pollux-imagenet", 0.74),
}
SHEET = PriceSheet(
    tuple(
        NodePrice(name=name, per_hour=price, workers=1)
        for name, price in (("k80", 0.90), ("p100", 1.60), ("v100", 3.06))
    )
)
TYPES = tuple(node.name for node in SHEET.nodes)
FACTORS, STARTUP, PLANNED_RUNS = (None, 2.0), 30.0, 100


ALL = "all at once"


@dataclass(frozen=True)
class Result:
    """Is what a search over the types came to; see the head of this file."""

    job: str
    factor: float | None
    way: str
    chosen: str
    best: str
    bill: float
    spent: float
    over_one: float


@dataclass(frozen=True)
class Case:
    """Is a job under a deadline, and what is true of it."""

    job: str
    factor: float | None
    goal: Goal
    by_type: dict[str, TableWorkload]
    truths: dict[str, Truth]
    spent_alone: dict[int, float] = field(default_factory=dict)

    @property
    def best(self) -> str:
        """The type of the cheapest configuration."""
        return min(self.truths, key=lambda name: self.truths[name].oracle_cost)

    def judged(
        self, way: str, plan: Plan | None, spent: float, profiles: float, seed: int
    ) -> Result:
        """Returns what a way came to: its plan, its spend, and what of it timed other types."""
        kind = "" if plan is None else plan.allocation.node_type
        paid = math.inf
        if plan is not None and kind in self.truths:
            cell, truth = replace(plan.allocation, node_type=""), self.truths[kind]
            if truth.seconds[cell] <= (self.goal.deadline_seconds or math.inf) * 1.05:
                paid = truth.costs[cell]  # times have 5 % noise
        bill = paid / self.truths[self.best].oracle_cost
        over = spent / (self.alone(seed) + profiles)
        return Result(self.job, self.factor, way, kind, self.best, bill, spent, over)

    def alone(self, seed: int) -> float:
        """Returns what a search on the cheapest type spends that knows of no other."""
        if seed not in self.spent_alone:
            args = self.by_type[self.best], self.goal, Dollars(SHEET, self.best), None, seed
            self.spent_alone[seed] = searched(*args)[0].spent
        return self.spent_alone[seed]


@cache
def curves(traces: Path, source: str) -> dict[int, Curve]:
    """Returns Pollux's curves by batch."""
    read = TraceWorkload.read(traces, source, device="t4", workers_per_node=4)
    return dict(read.curves)


@cache
def workload(traces: Path, job: str, node_type: str) -> TableWorkload:
    """Returns a job on a type of machine."""
    source, _ = JOBS[job]
    by_batch = curves(traces, source)
    with (traces / f"gavel-{job}.times.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["device"] == f"gavel:{node_type}"]
    times: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for row in rows:
        batch = int(row["batch_size"])
        if min(by_batch) / 1.5 <= batch <= max(by_batch) * 1.5:
            pair = int(row["workers"]), batch
            times.setdefault(pair, []).append(
                (float(row["epoch_seconds"]), float(row["step_seconds"]))
            )
    space = measured_space(set(times), 1)
    medians = {
        cell: [statistics.median(told) for told in zip(*pairs, strict=True)]
        for cell in space.cells
        if (pairs := times[cell.workers, cell.batch_size])
    }
    nearest = {b: min(by_batch, key=lambda own: abs(math.log(own / b))) for b in space.batches}
    return TableWorkload(
        name=f"{job} on {node_type}",
        space=space,
        epochs={cell: epoch for cell, (epoch, _) in medians.items()},
        steps={cell: step for cell, (_, step) in medians.items()},
        curves={batch: by_batch[own] for batch, own in nearest.items()},
        startup=STARTUP,
    )


def searched(
    job: Workload, goal: Goal, cost: Dollars, prior: Prior | None, seed: int
) -> tuple[Session, Outcome]:
    """Runs a search."""
    sessions: list[Session] = []
    able = Abilities(profile=True, resize=True)

    def start(clock: Callable[[], float]) -> Session:
        args = job.space, goal
        sessions.append(
            Session(*args, cost=cost, max_concurrent=1, abilities=able, prior=prior, clock=clock)
        )
        return sessions[0]

    limit, noise = goal.deadline_seconds, Noise(time_sd=0.05)
    outcome = simulate(start, job, cost=cost, deadline_seconds=limit, noise=noise, seed=seed)
    return sessions[0], outcome


def cases(traces: Path) -> Iterator[Case]:
    """Yields each job under each deadline."""
    for job, (_, target) in JOBS.items():
        aim = Goal(metric="metric", mode="max", target=target, planned_runs=PLANNED_RUNS)
        by_type = {name: workload(traces, job, name) for name in TYPES}
        least = {n: min(seconds_to_target(table, aim).values()) for n, table in by_type.items()}
        for factor in FACTORS:
            limit = None if factor is None else factor * min(least.values())
            goal = replace(aim, deadline_seconds=limit)
            truths = {
                name: Truth(table, goal, Dollars(SHEET, name))
                for name, table in by_type.items()
                if least[name] <= (limit or math.inf)
            }
            yield Case(job, factor, goal, by_type, truths)


def all_at_once(case: Case, seed: int) -> Result:
    """Searches among the types in one session."""
    cost, job = Dollars(SHEET), TypedWorkload(case.job, case.by_type)
    session, outcome = searched(job, case.goal, cost, None, seed)
    plan = session.plan()
    profiles = sum(
        cost(trial.allocation, trial.seconds)
        for trial in outcome.trials
        if trial.is_profile and trial.allocation.node_type != case.best
    )
    return case.judged(ALL, plan if isinstance(plan, Plan) else None, session.spent, profiles, seed)


def one_by_one(case: Case, first: str, seed: int) -> Result:
    """Searches one type, then the others with its epochs; the cheapest plan is taken."""
    plans: list[Plan] = []
    prior, spent, profiles = None, 0.0, 0.0
    for name in (first, *(other for other in TYPES if other != first)):
        cost = Dollars(SHEET, name)
        rival = min((plan.predicted_cost.mid for plan in plans), default=None)
        aim = replace(case.goal, rival_cost=rival)
        session, outcome = searched(case.by_type[name], aim, cost, prior, seed)
        plan, spent = session.plan(), spent + session.spent
        if isinstance(plan, Plan):
            plans.append(replace(plan, allocation=replace(plan.allocation, node_type=name)))
        prior = prior or Prior(tuple(session.records.values()), is_elsewhere=True)
        if name != case.best:
            timed = (trial for trial in outcome.trials if trial.is_profile)
            profiles += sum(cost(trial.allocation, trial.seconds) for trial in timed)
    best = min(plans, key=lambda plan: plan.predicted_cost.mid, default=None)
    return case.judged(f"{first} first", best, spent, profiles, seed)


def main() -> None:
    """Replays all, and prints a table of medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--traces", type=Path, required=True, help="folder of the measured traces")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if not options.traces.is_dir():
        parser.error(f"the folder of traces must exist, got {options.traces}")
    found = []
    print("| job | deadline | way | cheapest | bill | spent, USD | over one |")
    print("|---|---|---|---|---|---|---|")
    for case in cases(options.traces):
        for way in (ALL, *TYPES):
            seeds = range(options.seeds)
            some = [
                all_at_once(case, seed) if way == ALL else one_by_one(case, way, seed)
                for seed in seeds
            ]
            found += some
            bill, spent, over = (
                statistics.median(getattr(r, key) for r in some)
                for key in ("bill", "spent", "over_one")
            )
            kept = sum(r.chosen == r.best for r in some)
            limit = "none" if case.factor is None else f"{case.factor:g} x"
            print(
                f"| {case.job} | {limit} | {some[0].way} | {case.best}, chosen {kept} of "
                f"{len(some)} | {bill:.3f} | {spent:.3g} | {over:.3f} |",
                flush=True,
            )
    for name, is_one in (("all at once", True), ("one by one", False)):
        some = [r for r in found if (r.way == ALL) is is_one]
        bills, overs = [r.bill for r in some], [r.over_one for r in some]
        print(
            f"{name}: median bill {statistics.median(bills):.3f}, worst {max(bills):.3f}; "
            f"median spend over one {statistics.median(overs):.3f}, worst {max(overs):.3f}"
        )


if __name__ == "__main__":
    main()
