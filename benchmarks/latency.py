"""Times the session's answers on 400 cells, with 100 to 10,000 trials known.

Usage: OMP_NUM_THREADS=1 python benchmarks/latency.py --trials 100,1000,10000 --json FILE

The space is 20 worker counts x 20 batches, all 400 cells legal. Epoch times have 5 % noise, values
a deviation of 0.01. The goal has a deadline, 10**12 planned runs and no tolerance.

Left to itself a session ends this sweep after a handful of runs. So all but the last trials of
each size are not asked for: they are adopted, in random cells of the ten larger batches, as runs of
five evaluations. Four of five of them reached the target, the others were cut after their third
evaluation. The ten smaller batches, where the best cell is, are left open, so that an ask has 150
to 200 cells to rank and answers with one of them. What is adopted is read before the clock runs.

Timed are the last trials before each size, at most 50, fewer where `--seconds` are up (then the
rest is adopted, too). Each is told three epochs and then cut, whatever was decided:

* ask: `Session.ask`, with the fit where one is made anew: the trial before has just ended.
* tell: `Session.tell` of a report and `Session.decide`, with the fit that `decide` makes. The last
  one of a trial includes the `tell` of its end, after which nothing is fitted.
* save: `Session.state` and its JSON, written to a file.
* restore: a new session, the file read, `Session.load_state`. Nothing is fitted.
* first_ask: `Session.ask` after that, which reads every trial anew.

Neither Ray Tune, the journal nor a cluster takes part. `ours` plans by bounds; `ours-planner` can
profile and resize, and made the profiles that it asked for before the trials; `ours-recipes` has
another hyperparameter, new for every trial. `optuna` is OptunaSearch with TPE in the same space; it
chooses all its cells itself, up to 1,000 trials, and a tell is `on_trial_result`, the last one of a
trial with `on_trial_complete`.

Figures are medians in ms of processor time unless named p99 (of fewer than 100: their largest).
"asks" counts what they rest on, "answered" how many of these asks were answered with cells.
"""

import argparse
import json
import logging
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from ray import tune
from ray.tune.search.optuna import OptunaSearch

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import WorkerHours
from raycosttune.core.decision import Run
from raycosttune.core.goal import Goal
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.profile import Profile, Profiled
from raycosttune.core.profiling import MOST_PROFILES
from raycosttune.core.proposer import NoHyperparameters, Proposer
from raycosttune.core.rehearsal import NumberedRecipes
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from raycosttune.simulate import AnalyticWorkload

WORKERS = tuple(range(1, 21))
BATCHES = tuple(range(64, 1281, 64))
OPEN = BATCHES[:10]
TIMED, FEWEST, OPTUNA_MOST = 50, 2, 1000
EVALUATIONS, CUT, CUT_SHORT = 5, 3, "cut by the benchmark"
FEWEST_P99 = 100  # of fewer figures the largest stands for the 99th percentile
REACHING, TIME_NOISE, VALUE_NOISE = 0.8, 0.05, 0.01
SPACE = Space(WORKERS, BATCHES, workers_per_node=4, divisible=False)
WORKLOAD = AnalyticWorkload(SPACE, sync_seconds=1e-3, startup=1.0)
COST = WorkerHours()
TARGET = 0.85
GOAL = Goal(
    target=TARGET, metric="top1", mode="max", deadline_seconds=2e3, planned_runs=10**12, tolerance=0
)
Figures = dict[str, float]


@dataclass(frozen=True)
class Variant:
    """Is a way to use the session."""

    abilities: Abilities
    proposer: Proposer

    def session(self) -> Session:
        """Returns a fresh session."""
        args, clock = (SPACE, GOAL), time.monotonic
        proposer, abilities = self.proposer, self.abilities
        return Session(*args, cost=COST, proposer=proposer, abilities=abilities, clock=clock)


VARIANTS = {
    "ours": Variant(Abilities(), NoHyperparameters()),
    "ours-planner": Variant(Abilities(profile=True, resize=True), NoHyperparameters()),
    "ours-recipes": Variant(Abilities(), NumberedRecipes()),
}


@dataclass
class Stopwatch:
    """Collects milliseconds of processor time by name."""

    spans: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Times what runs under it."""
        start = time.process_time()
        yield
        self.spans.setdefault(name, []).append(1e3 * (time.process_time() - start))

    def figures(self) -> Figures:
        """Returns the medians, and the 99th percentiles of asks and tells."""
        found: Figures = {}
        for name, spans in self.spans.items():
            found[f"{name}_ms"] = float(np.median(spans))
            if name in ("ask", "tell"):
                few = len(spans) < FEWEST_P99
                found[f"{name}_p99_ms"] = max(spans) if few else float(np.percentile(spans, 99))
        return found | {"asks": len(self.spans["ask"])}


def main() -> None:
    """Times every variant at every size, and Optuna."""
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--json", type=Path, required=True, help="write the figures here")
    parser.add_argument("--trials", default="100,1000,10000", help="sizes, comma-separated")
    parser.add_argument("--seconds", type=float, default=30.0, help="limit of each size's asks")
    parser.add_argument("--policies", default=",".join([*VARIANTS, "optuna"]), help="which to time")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sizes = sorted({int(size) for size in arguments.trials.split(",")})
    figures: dict[str, dict[str, Figures]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        for name in arguments.policies.split(","):
            if name == "optuna":
                found = time_optuna([size for size in sizes if size <= OPTUNA_MOST], path)
            else:
                times = (time_session(VARIANTS[name], n, arguments.seconds, path) for n in sizes)
                found = dict(zip(map(str, sizes), times, strict=True))
            figures[name] = found
            for size, by_name in found.items():
                words = ", ".join(f"{key} {value:.4g}" for key, value in by_name.items())
                print(f"{name} {size}: {words}", flush=True)
    arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def time_session(variant: Variant, trials: int, seconds: float, path: Path) -> Figures:
    """Times the last trials of a session, and what it takes to save and restore it."""
    watch, timed, answered = Stopwatch(), min(TIMED, trials // 2), 0
    session = grown(variant, trials - timed)
    end = time.monotonic() + seconds
    for k in range(timed):
        if k >= FEWEST and time.monotonic() > end:
            adopt(session, variant, timed - k, seed=1)
            break
        answered += time_trial(session, f"timed-{k}", watch)
    with watch.timed("save"):
        path.write_text(json.dumps(session.state()))
    with watch.timed("restore"):
        restored = variant.session()
        restored.load_state(json.loads(path.read_text()))
    with watch.timed("first_ask"):
        restored.ask("further")
    return watch.figures() | {"answered": answered, "trials": len(session.records)}


def grown(variant: Variant, trials: int) -> Session:
    """Returns a session that knows its profiles and so many trials."""
    session = variant.session()
    for k in range(MOST_PROFILES * variant.abilities.profile + 1):
        answer = session.ask(f"profile-{k}")
        if not isinstance(answer, Profile):  # a run, which then is one of the trials
            session.tell(f"profile-{k}", Ended(EndCause.STOPPED, CUT_SHORT))
            break
        session.tell_profile(f"profile-{k}", shown(answer))
    adopt(session, variant, trials - len(session.records))
    session.plan()
    return session


def shown(profile: Profile) -> Profiled:
    """Returns what a profile shows."""
    steps = profile.steps * sum(map(WORKLOAD.step_seconds, profile.cells))
    startup = WORKLOAD.startup_seconds(profile.held.workers)
    epochs = {cell: WORKLOAD.epoch_seconds(cell) for cell in profile.cells}
    return Profiled(epochs, startup + steps, startup)


def adopt(session: Session, variant: Variant, trials: int, seed: int = 0) -> None:
    """Adopts trials in random cells whose batches aren't left open."""
    draw = drawing(seed)
    cells = [cell for cell in SPACE.cells if cell.batch_size not in OPEN]
    for k in range(len(session.records), len(session.records) + trials):
        cell = draw.choice(cells)
        reports = drawn_run(cell, draw)
        ended = Ended(EndCause.REACHED)
        if draw.random() > REACHING:
            reports, ended = reports[:CUT], Ended(EndCause.STOPPED, CUT_SHORT)
        recipe = variant.proposer.propose(k, ())
        session.adopt(TrialRecord(f"trial-{k}", cell, recipe, k, reports, ended))


def drawn_run(cell: Allocation, draw: random.Random) -> list[Report]:
    """Returns the reports of a run whose last one reaches the target."""
    values = WORKLOAD.curve(cell.batch_size).values
    last = 1 + next(k for k, value in enumerate(values) if value >= TARGET + 2 * VALUE_NOISE)
    epochs = [round(last * k / EVALUATIONS) for k in range(1, EVALUATIONS + 1)]
    reports = drawn_reports(cell, epochs, draw)
    reached = replace(reports[-1], value=max(TARGET, reports[-1].value or 0.0))
    return [*reports[:-1], reached]


def drawn_reports(cell: Allocation, epochs: Sequence[int], draw: random.Random) -> list[Report]:
    """Returns reports at some epochs, short of the target."""
    values = WORKLOAD.curve(cell.batch_size).values
    reports, before, startup = [], 0, WORKLOAD.startup_seconds(cell.workers)
    for epoch in epochs:
        value = min(draw.gauss(values[epoch - 1], VALUE_NOISE), TARGET - 1e-3)
        pace = WORKLOAD.epoch_seconds(cell) * draw.lognormvariate(0.0, TIME_NOISE)
        reports.append(Report(float(epoch), value, startup + (epoch - before) * pace, startup))
        before, startup = epoch, 0.0
    return reports


def drawing(seed: int | str) -> random.Random:
    """Returns a source of noise."""
    return random.Random(seed)


def time_trial(session: Session, trial_id: str, watch: Stopwatch) -> bool:
    """Asks for a trial and tells its first evaluations; tells whether it got a cell."""
    with watch.timed("ask"):
        answer = session.ask(trial_id)
    if isinstance(answer, Profile):
        session.tell_profile(trial_id, shown(answer))
        return True
    if not isinstance(answer, Run):
        return False
    cell = session.records[trial_id].allocation
    reports = drawn_reports(cell, range(1, CUT + 1), drawing(trial_id))
    for report in reports:
        with watch.timed("tell"):
            session.tell(trial_id, report)
            session.decide(trial_id)
            if report is reports[-1]:
                session.tell(trial_id, Ended(EndCause.STOPPED, CUT_SHORT))
    return True


def time_optuna(sizes: list[int], path: Path) -> dict[str, Figures]:
    """Drives Optuna's search to each size, and times the last trials before it."""
    found: dict[str, Figures] = {}
    search = optuna_search()
    for done, size in zip([0, *sizes], sizes, strict=False):
        watch, first = Stopwatch(), size - min(TIMED, size // 2)
        for k in range(done, size):
            optuna_trial(search, f"trial-{k}", watch if k >= first else Stopwatch())
        with watch.timed("save"):
            search.save(str(path))
        with watch.timed("restore"):
            restored = optuna_search()
            restored.restore(str(path))
        with watch.timed("first_ask"):
            restored.suggest("further")
        found[str(size)] = watch.figures() | {"answered": len(watch.spans["ask"]), "trials": size}
    return found


def optuna_search() -> OptunaSearch:
    """Returns Optuna's search over the same space."""
    workers = tune.randint(WORKERS[0], WORKERS[-1] + 1)
    batch_size = tune.qrandint(BATCHES[0], BATCHES[-1], BATCHES[0])
    space = OptunaSearch.convert_search_space({"workers": workers, "batch_size": batch_size})
    return OptunaSearch(space, metric="cost", mode="min", seed=0)


def optuna_trial(search: OptunaSearch, trial_id: str, watch: Stopwatch) -> None:
    """Asks for a trial and tells it."""
    with watch.timed("ask"):
        config: dict[str, int] = search.suggest(trial_id) or {}
    cell = SPACE.allocation(config["workers"], config["batch_size"])
    reports, seconds = drawn_reports(cell, range(1, CUT + 1), drawing(trial_id)), 0.0
    for k, report in enumerate(reports, 1):
        seconds += report.seconds
        result: dict[str, Any] = {"cost": COST(cell, seconds), "training_iteration": k}
        with watch.timed("tell"):
            search.on_trial_result(trial_id, result)
            if k == len(reports):
                search.on_trial_complete(trial_id, result)


if __name__ == "__main__":
    main()
