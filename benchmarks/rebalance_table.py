"""The savings of Ye et al. 2020 again: with emulated workers, and replayed."""

import statistics
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import rebalance_paces as paces
from rebalance_scenarios import SETTLING, run_pair
from rebalance_simulated import mixes, noise, read_profiles, replay
from rebalance_world import World

from raycosttune.core.rebalance import DBS, Balance, Equal, Policy
from raycosttune.core.share import equal_shares

PAPER = {4: "12%", 8: "10%"}  # its savings by workers
SAMPLE_SECONDS, LOCAL_BATCH, STEPS = 0.002, 32, 4
STEADY_EPOCHS, DISTURBED_EPOCHS = 6, 24
REPLAYED_EPOCHS, SEEDS, CLUSTERS, NOISE = 40, 5, 20, 0.05
DISTURBANCES = {"none": 0.0, "10 to 20 %": 1.0, "20 to 40 %": 2.0}
SPEEDS: dict[str, Callable[[int, float], paces.Workers]] = {
    "equal": paces.equal,
    "three of four share a device": paces.shared,
}
POLICIES: dict[str, Callable[[], Policy]] = {"balance": Balance, "dbs": DBS, "equal": Equal}
LATE, BEST = "best, an epoch late", "best"
Savings = dict[str, list[float]]
Row = dict[str, Any]


def table(by: str, traces: Path | None, epochs: int | None) -> list[Row]:
    """Returns the rows: real ones with 4 and 8 workers, replayed ones with 4, 8 and 16.

    Savings are of the epochs after the first two.

    Args:
        by: Name of the policy that balances the real ones.
        traces: Folder of device profiles, None for no replays on them.
        epochs: Epochs of a real disturbed run.
    """
    rows = []
    for workers in (4, 8):
        with World(workers) as world:
            for name, of in SPEEDS.items():
                cluster = of(workers, SAMPLE_SECONDS)
                for disturbance in ("none", "10 to 20 %"):
                    savings = _real(world, cluster, by, disturbance, epochs)
                    rows.append(_row("real", workers, name, disturbance, savings))
    profiles = {} if traces is None else read_profiles(traces)
    for workers in (4, 8, 16):
        clusters = {
            name: [(of(workers, SAMPLE_SECONDS), workers * LOCAL_BATCH)] * SEEDS
            for name, of in SPEEDS.items()
        }
        if profiles:
            clusters["K80, P100 and V100 mixed"] = mixes(profiles, workers, CLUSTERS)
        for name, drawn in clusters.items():
            for disturbance in DISTURBANCES:
                savings = _replayed(drawn, disturbance)
                rows.append(_row("replayed", workers, name, disturbance, savings))
    return rows


def _real(
    world: World, cluster: paces.Workers, by: str, disturbance: str, epochs: int | None
) -> Savings:
    if disturbance == "none":
        run = paces.steady(cluster, STEADY_EPOCHS)
    else:
        total = LOCAL_BATCH * world.workers
        run = _disturbed(cluster, total, epochs or DISTURBED_EPOCHS, disturbance, 0)
    pair = run_pair(world, run, POLICIES[by](), LOCAL_BATCH, STEPS)
    return {by: [1 - pair.ratio()], **_best(run, LOCAL_BATCH * world.workers)}


def _replayed(clusters: Sequence[tuple[paces.Workers, int]], disturbance: str) -> Savings:
    policies: dict[str, Policy] = {"balance": Balance(), "dbs": DBS()}
    found: Savings = {name: [] for name in (*policies, LATE, BEST)}
    for seed, (cluster, total) in enumerate(clusters):
        factors = noise(REPLAYED_EPOCHS, len(cluster), seed, NOISE)
        run = _disturbed(cluster, total, REPLAYED_EPOCHS, disturbance, seed)
        off = sum(replay(run, None, total, factors)[SETTLING:])
        for name, policy in policies.items():
            on = sum(replay(run, policy, total, factors)[SETTLING:])
            found[name].append(1 - on / off)
        for name, savings in _best(run, total).items():
            found[name] += savings
    return found


def _disturbed(
    cluster: paces.Workers, total: int, epochs: int, disturbance: str, seed: int
) -> list[paces.Workers]:
    """Returns disturbed workers; the disturbance is measured by epochs with equal shares."""
    share = total // len(cluster)
    seconds = paces.step_seconds(cluster, [share] * len(cluster))
    return paces.disturbed(cluster, epochs, DISTURBANCES[disturbance] * seconds, seed)


def _best(run: Sequence[paces.Workers], total: int) -> Savings:
    """Returns what would be saved without noise by whoever knew each epoch, or that before it."""
    equal = equal_shares(total, len(run[0]))
    off = sum(paces.step_seconds(workers, equal) for workers in run[SETTLING:])
    shares = [_best_shares(workers, total) for workers in run]
    pairs = {
        LATE: zip(run[1:], shares[:-1], strict=True),
        BEST: zip(run[1:], shares[1:], strict=True),
    }
    return {
        name: [1 - sum(paces.step_seconds(*each) for each in list(pair)[SETTLING - 1 :]) / off]
        for name, pair in pairs.items()
    }


_best_shares = cache(paces.best_shares)  # epochs recur


def _row(kind: str, workers: int, speeds: str, disturbance: str, savings: Savings) -> Row:
    return {
        "kind": kind,
        "workers": workers,
        "speeds": speeds,
        "disturbance": disturbance,
        "saving": {name: statistics.median(each) for name, each in savings.items()},
        "saving_range": {name: (min(each), max(each)) for name, each in savings.items()},
        "runs": len(savings[BEST]),
        "paper": PAPER.get(workers, "less"),
    }


def lines(rows: Sequence[Row]) -> list[str]:
    """Returns the rows as a table in Markdown, with a column for each policy."""
    names = list(dict.fromkeys(name for row in rows[::-1] for name in row["saving"]))
    keys = ("kind", "workers", "speeds", "disturbance")
    head = (*keys, *names, "runs", "Ye et al.")
    found = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        savings = [f"{row['saving'][name]:.1%}" if name in row["saving"] else "" for name in names]
        cells = (*(row[key] for key in keys), *savings, row["runs"], row["paper"])
        found.append("| " + " | ".join(map(str, cells)) + " |")
    return found
