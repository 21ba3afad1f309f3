"""Replays rebalancing on step times of different devices, measured or made up.

Usage: python benchmarks/rebalance_replay.py --traces DIR --json FILE [--every 1]
           [--noise 0,0.05,0.15] [--workers 2-16] [--synthetic N] [--scenario burst|drift]

Every mix of the devices in `DIR/gavel-device_profiles.csv`, 2 to 16 workers, begins with equal
shares and adjusts them three times. The global batch is the workers times the second or third
point of the profile; between points step times are linear, and shares stay inside the profile's
range. Measured seconds have lognormal noise. Shown is the true step time of the last shares over
that of the best whole shares, and how often it is longer than with equal ones, and how much at
worst. A workload counts as convex where no measured point lies above the line through its
neighbours by more than 2 %. `--every` takes one mix in so many, for a quick look.

`--synthetic` takes N made-up profiles of each shape instead, with a few mixes each. `--scenario`
instead adjusts the shares of workers with affine step times for 40 rounds: in `burst` each
worker is slowed with probability 0.1 a round, for 4 to 20 rounds, by a factor or by constant
seconds; in `drift` each worker's speed wanders by 4 % a round. There it shows the total time over
that of an oracle that knows each round's speeds beforehand.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rebalance_profiles import SHAPES, Mix, Workload, mixes, read_workloads, synthetic_cases

from raycosttune.core.rebalance import DBS, Balance, Equal, Policy, Sample, WorkerLog, trimmed
from raycosttune.core.share import equal_shares

ADJUSTMENTS, ROUNDS, CLUSTERS = 3, 40, 24
Floats = NDArray[np.float64]


def adjusted(
    workload: Workload, mix: Mix, total: int, policy: Policy, noise: Floats
) -> tuple[int, ...]:
    """Returns the shares after as many adjustments as `noise` has rows."""
    logs = [WorkerLog(str(k), (), workload.most(device)) for k, device in enumerate(mix)]
    shares = equal_shares(total, len(mix))
    for number, errors in enumerate(noise):
        measured = np.array(workload.seconds(mix, shares)) * np.exp(errors)
        logs = [
            WorkerLog(log.name, (*log.samples, Sample(number, share, float(each), 10)), log.most)
            for log, share, each in zip(logs, shares, measured, strict=True)
        ]
        shares = policy.plan(logs, shares, total)
    return shares


Case = tuple[Workload, Mix, int]  # the last is the equal share


def replay(cases: Sequence[Case], policy: type[DBS | Balance], deviation: float) -> dict[str, Any]:
    """Replays cases with one policy and one noise."""
    rng = np.random.default_rng(0)
    over, longer = [], []
    for workload, mix, point in cases:
        total = point * len(mix)
        noise = deviation * rng.standard_normal((ADJUSTMENTS, len(mix)))
        shares = adjusted(workload, mix, total, policy(workload.least), noise)
        seconds = max(workload.seconds(mix, shares))
        over.append(seconds / workload.optimum(mix, total))
        longer.append(seconds / max(workload.seconds(mix, [point] * len(mix))))
    return {
        "median": float(np.median(over)),
        "p90": float(np.quantile(over, 0.9)),
        "worse_than_equal": sum(each > 1 + 1e-9 for each in longer),
        "worst_over_equal": max(longer),
        "mixes": len(over),
    }


def disturbed(scenario: str, rng: np.random.Generator, workers: int) -> tuple[Floats, Floats]:
    """Returns a factor and constant seconds for each round and worker, (rounds, workers)."""
    factors, extra = np.ones((ROUNDS, workers)), np.zeros((ROUNDS, workers))
    if scenario == "drift":
        return np.exp(np.cumsum(rng.normal(0, 0.04, factors.shape), axis=0)), extra
    for worker in range(workers):
        start = 0
        while (start := start + int(rng.geometric(0.1))) < ROUNDS:
            end = start + int(rng.integers(4, 21))
            if rng.random() < 0.5:
                factors[start:end, worker] = rng.uniform(1.5, 10)
            else:
                extra[start:end, worker] = rng.uniform(0.5, 5) * 0.05
            start = end - 1
    return factors, extra


def best_seconds(constant: Floats, each: Floats, total: int) -> float:
    """Returns the least seconds of a step of workers with affine step times."""
    low, high = 0.0, float((constant + each * total).max())
    for _ in range(60):
        middle = (low + high) / 2
        shares = np.clip(np.floor((middle - constant) / each + 1e-9), 1, total)
        low, high = (low, middle) if shares.sum() >= total else (middle, high)
    return high


def play(scenario: str, policy: Policy, deviation: float, seed: int) -> float:
    """Returns the total time of a cluster over that of the oracle."""
    rng = np.random.default_rng(seed)
    workers, kinds = int(rng.integers(2, 13)), int(rng.integers(1, 4))
    point, kind = int(rng.choice([16, 32, 64])), rng.integers(0, kinds, workers)
    part, level = (
        rng.uniform(0.02, 0.4, kinds)[kind],
        0.05 * np.exp(rng.normal(0, 0.5, kinds))[kind],
    )
    constant, each, total = level * part, level * (1 - part) / point, point * workers
    shares, logs = equal_shares(total, workers), [WorkerLog(str(k), ()) for k in range(workers)]
    spent = best = 0.0
    for number, (factor, extra) in enumerate(zip(*disturbed(scenario, rng, workers), strict=True)):
        seconds = (constant + each * np.maximum(shares, 1)) * factor + extra
        spent += seconds.max()
        best += best_seconds(constant * factor + extra, each * factor, total)
        told = seconds * np.exp(deviation * rng.standard_normal(workers))
        logs = [
            trimmed(replace(log, samples=(*log.samples, Sample(number, share, float(t), 10))))
            for log, share, t in zip(logs, shares, told, strict=True)
        ]
        shares = policy.plan(logs, shares, total)
    return spent / best


def main(argv: Sequence[str] | None = None) -> None:
    """Replays what the command line asks for, prints a table and writes the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--traces", type=Path, help="folder of the profiles")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--every", type=int, default=1, help="take one mix in so many")
    parser.add_argument("--noise", default="0,0.05,0.15", help="deviations of log seconds")
    parser.add_argument("--workers", default="2-16", help="fewest and most of a mix")
    parser.add_argument("--synthetic", type=int, help="made-up workloads of each shape")
    parser.add_argument("--scenario", choices=("burst", "drift"))
    options = parser.parse_args(argv)
    if options.traces is None and not (options.synthetic or options.scenario):
        parser.error("--traces must be a folder of profiles, or take --synthetic or --scenario")
    noises = [float(text) for text in options.noise.split(",")]
    fewest, most = (int(text) for text in options.workers.split("-"))
    figures: list[dict[str, Any]] = []
    if options.scenario:
        print(f"total time over an oracle's, {options.scenario}: mean of {CLUSTERS} clusters")
        for policy in (Equal(), DBS(), Balance()):
            ratios = {
                noise: float(
                    np.mean([play(options.scenario, policy, noise, k) for k in range(CLUSTERS)])
                )
                for noise in noises
            }
            name = type(policy).__name__
            figures.append({"scenario": options.scenario, "policy": name, "noise": ratios})
            print(
                f"{name:<9}" + "   ".join(f"{ratio:.3f}" for ratio in ratios.values()), flush=True
            )
    else:
        figures = tables(options, noises, [m for m in mixes(3) if fewest <= len(m) <= most])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


def tables(options: argparse.Namespace, noises: Sequence[float], known: Sequence[Mix]) -> list[Any]:
    """Replays all workloads, or made-up ones, and prints a row for each policy."""
    rows: list[tuple[str, str, list[Case]]] = []
    if options.synthetic:
        rows = [(s, "made up", synthetic_cases(s, options.synthetic, known)) for s in SHAPES]
    else:
        for workload in read_workloads(options.traces):
            points = [workload.profiles[0][k][0] for k in (1, 2)]
            cases = [(workload, mix, point) for point in points for mix in known][:: options.every]
            rows.append((workload.name, "convex" if workload.is_convex else "not convex", cases))
    print("step time over the best whole shares: median / p90 (worse than equal, at worst by)")
    figures = []
    for title, kind, cases in rows:
        for policy in (DBS, Balance):
            told = {noise: replay(cases, policy, noise) for noise in noises}
            name = policy.__name__
            figures.append({"workload": title, "kind": kind, "policy": name, "noise": told})
            cells = "   ".join(
                f"{each['median']:.3f} / {each['p90']:.3f} "
                f"({each['worse_than_equal']}, {each['worst_over_equal']:.3f})"
                for each in told.values()
            )
            print(f"{title:<28}{kind:<12}{name:<9}{cells}", flush=True)
    return figures


if __name__ == "__main__":
    main()
