"""Runs the scenarios of emulated workers, and sums up what they took."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import rebalance_paces as paces
from rebalance_emulated import SCENARIOS, Figures, Scenario, Told, train, train_both
from rebalance_world import Run, World

from raycosttune.core.rebalance import Policy

SETTLING = 2  # epochs after which shares follow the speeds


@dataclass(frozen=True)
class Pair:
    """Is a run with equal shares and one with balanced, at the same paces.

    Attributes:
        epochs: The paces.
        off: The run with equal shares.
        on: The run with balanced.
        best_seconds: Seconds of each epoch with the best whole shares, without any overhead.
    """

    epochs: list[paces.Workers]
    off: Run
    on: Run
    best_seconds: list[float]

    def ratio(self, settling: int = SETTLING) -> float:
        """Seconds on over seconds off after the first epochs."""
        return sum(self.on.epoch_seconds[settling:]) / sum(self.off.epoch_seconds[settling:])

    def over_best(self) -> float:
        """Seconds on over the best ones after the first epochs."""
        return sum(self.on.epoch_seconds[SETTLING:]) / sum(self.best_seconds[SETTLING:])


def run_pair(
    world: World, epochs: list[paces.Workers], policy: Policy, local_batch: int, steps: int
) -> Pair:
    """Trains with equal shares, then with balanced ones."""
    total = local_batch * world.workers
    off = world.run(train, None, epochs, local_batch, steps)
    on = world.run(train, policy, epochs, local_batch, steps)
    best = [steps * paces.best_seconds(workers, total) for workers in epochs]
    return Pair(epochs, off, on, best)


def run_scenario(
    name: str, workers: int, policy: Policy, epochs: int | None, repeats: int | None
) -> Figures:
    """Runs a scenario of emulated workers.

    Args:
        name: Of the scenario.
        workers: How many.
        policy: What is compared with equal shares.
        epochs: Epochs of a run, None for the scenario's own.
        repeats: Pairs of runs, None for the scenario's own.
    """
    scenario = SCENARIOS[name]
    epochs, repeats = epochs or scenario.epochs, repeats or scenario.repeats
    with World(workers) as world:
        if name == "equal":
            return _overhead(world, scenario, policy, epochs, repeats)
        pairs = [
            run_pair(
                world,
                _paces(name, scenario, workers, epochs, seed),
                policy,
                scenario.local_batch,
                scenario.steps,
            )
            for seed in range(repeats)
        ]
    return summary(pairs)


def _paces(
    name: str, scenario: Scenario, workers: int, epochs: int, seed: int
) -> list[paces.Workers]:
    if name == "hetero":
        return paces.steady(paces.hetero(workers, scenario.sample_seconds), epochs)
    alike = paces.equal(workers, scenario.sample_seconds)
    if name == "drift":
        return paces.drifting(alike, epochs, seed)
    return paces.disturbed(alike, epochs, scenario.step_seconds, seed)


def summary(pairs: Sequence[Pair]) -> Figures:
    """Sums up pairs of runs: means over the epochs after the first two, medians over the pairs."""

    def middle(runs: Sequence[list[float]]) -> float:
        return statistics.median(statistics.fmean(seconds[SETTLING:]) for seconds in runs)

    ratio = statistics.median(pair.ratio() for pair in pairs)
    answers: list[Told] = pairs[-1].on.answers
    return {
        "epoch_seconds_off": middle([pair.off.epoch_seconds for pair in pairs]),
        "epoch_seconds_on": middle([pair.on.epoch_seconds for pair in pairs]),
        "epoch_seconds_best": middle([pair.best_seconds for pair in pairs]),
        "on_over_off": ratio,
        "saving": 1 - ratio,
        "saving_with_first_epochs": 1 - statistics.median(pair.ratio(0) for pair in pairs),
        "makespan_over_optimum": statistics.median(pair.over_best() for pair in pairs),
        "worker_epoch_seconds_on": middle([pair.on.answers[0].seconds for pair in pairs]),
        "worker_epoch_seconds_off": middle([pair.off.answers[0].seconds for pair in pairs]),
        "each_ratio": [pair.ratio() for pair in pairs],
        "each_epoch_off": pairs[-1].off.epoch_seconds,
        "each_epoch_on": pairs[-1].on.epoch_seconds,
        "shares": answers[0].shares[-1],
        "each_shares": answers[0].shares,
    }


def _overhead(
    world: World, scenario: Scenario, policy: Policy, epochs: int, repeats: int
) -> Figures:
    """Compares ours with plain PyTorch on equal workers, an epoch of each in turn."""
    plain: list[float] = []
    ours: list[float] = []
    shares: list[tuple[int, ...]] = []
    for _ in range(repeats):
        arguments = (policy, epochs, scenario.sample_seconds, scenario.local_batch, scenario.steps)
        run = world.run(train_both, *arguments)
        for pair in range(epochs):
            both = run.epoch_seconds[2 * pair : 2 * pair + 2]
            first, second = both if pair % 2 else reversed(both)
            plain.append(first)
            ours.append(second)
        shares += run.answers[0]
    overheads = [our / other - 1 for our, other in zip(ours, plain, strict=True)]
    best = scenario.steps * scenario.step_seconds
    overhead = statistics.median(overheads)
    return {
        "epoch_seconds_off": statistics.median(plain),
        "epoch_seconds_on": statistics.median(ours),
        "epoch_seconds_best": best,
        "overhead": overhead,
        "overhead_quartiles": statistics.quantiles(overheads, n=4)[::2],
        "overhead_ms_per_step": 1e3 * overhead * statistics.median(plain) / scenario.steps,
        "on_over_off": 1 + overhead,
        "saving": -overhead,
        "makespan_over_optimum": statistics.median(ours) / best if best else float("inf"),
        "pairs": len(overheads),
        "shares": shares[-1],
        "changes": sum(one != other for one, other in pairwise(shares)),
    }
