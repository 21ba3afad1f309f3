"""Times proposals of other hyperparameters beside Optuna's own asks, as many trials known.

Usage: OMP_NUM_THREADS=1 python benchmarks/proposals.py --trials 100,1000 --json FILE

There are two floats on a logarithmic scale. In turn, `--repeats` times:

* asked: `Study.ask` of a study at hand, with a sampler at hand, and its trial is told.
* proposed: `OptunaProposer.propose`, when one more record is known and every score has changed.

The first proposal, as after a restore, stands apart. `ours` leaves the sampler to the proposer,
`given` has TPE given as `sampler`, `child` a child of TPE, which might change the trials.

Figures are medians in ms of processor time unless named p99, the largest; "ratio" is that of the
medians.
"""

import argparse
import json
import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.samplers import TPESampler

from raycosttune.core.observation import Recipe
from raycosttune.core.proposer import Scored
from raycosttune.proposal.optuna import OptunaProposer

SPACES: dict[str, BaseDistribution] = {
    "lr": FloatDistribution(1e-4, 1.0, log=True),
    "weight_decay": FloatDistribution(1e-6, 1e-2, log=True),
}


class Child(TPESampler):
    """Is TPE, but not known to be."""


SAMPLERS: dict[str, Callable[[int], TPESampler] | None] = {
    "ours": None,
    "given": lambda seed: TPESampler(seed=seed),
    "child": lambda seed: Child(seed=seed),
}


def main() -> None:
    """Times each sampler at each size."""
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--json", type=Path, required=True, help="write the figures here")
    parser.add_argument("--trials", default="100,1000", help="sizes, comma-separated")
    parser.add_argument("--repeats", type=int, default=50, help="proposals of each size")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for name in SAMPLERS:
        for size in map(int, arguments.trials.split(",")):
            found = timed(name, size, arguments.repeats)
            figures.setdefault(name, {})[str(size)] = found
            words = ", ".join(f"{key} {value:.4g}" for key, value in found.items())
            print(f"{name} {size}: {words}", flush=True)
    arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


def timed(name: str, size: int, repeats: int) -> dict[str, float]:
    """Times asks and proposals in turn, so many trials known."""
    draw = random.Random(0)
    proposer = OptunaProposer(SPACES, SAMPLERS[name])
    study = optuna.create_study(sampler=TPESampler(seed=0))
    records = [scored(drawn(draw)) for _ in range(size)]
    for record in records:
        told(study, record)
    study.ask(SPACES)
    spans: dict[str, list[float]] = {}
    with stopwatch(spans, "first"):
        proposer.propose(size, records)
    for k in range(repeats):
        with stopwatch(spans, "asked"):
            trial = study.ask(SPACES)
        study.tell(trial, math.log(scored(trial.params).score))
        records = [Scored(record.recipe, 1.001 * record.score) for record in records]
        records.append(scored(drawn(draw)))
        with stopwatch(spans, "proposed"):
            proposer.propose(size + k + 1, records)
    medians = {f"{key}_ms": float(np.median(each)) for key, each in spans.items()}
    largest = {f"{key}_p99_ms": max(each) for key, each in spans.items() if key != "first"}
    return medians | largest | {"ratio": medians["proposed_ms"] / medians["asked_ms"]}


@contextmanager
def stopwatch(spans: dict[str, list[float]], name: str) -> Iterator[None]:
    """Notes milliseconds of processor time."""
    start = time.process_time()
    yield
    spans.setdefault(name, []).append(1e3 * (time.process_time() - start))


def told(study: optuna.Study, record: Scored) -> None:
    """Tells a study of a record."""
    params, value = dict(record.recipe), math.log(record.score)
    study.add_trial(optuna.create_trial(params=params, distributions=SPACES, value=value))


def drawn(draw: random.Random) -> Recipe:
    """Draws a recipe."""
    return {"lr": 10 ** draw.uniform(-4, 0), "weight_decay": 10 ** draw.uniform(-6, -2)}


def scored(recipe: Recipe) -> Scored:
    """Scores a recipe by its distance to the best one."""
    rates = float(str(recipe["lr"])), float(str(recipe["weight_decay"]))
    return Scored(recipe, 1 + abs(math.log10(rates[0]) + 2) + abs(math.log10(rates[1]) + 4) / 3)


if __name__ == "__main__":
    main()
