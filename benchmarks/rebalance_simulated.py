"""Replays a policy on workers whose step seconds are known, without running anything."""

import csv
import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import rebalance_paces as paces

from raycosttune.core.rebalance import Policy, Sample, WorkerLog, trimmed
from raycosttune.core.share import equal_shares

PROFILES_FILE = "gavel-device_profiles.csv"
STEPS = 50  # of an epoch
Seconds = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def noise(epochs: int, workers: int, seed: int, spread: float) -> Seconds:
    """Returns factors for the step seconds of each epoch and worker, positive."""
    return np.exp(spread * np.random.default_rng(seed).standard_normal((epochs, workers)))


def replay(
    epochs: Sequence[paces.Workers], policy: Policy | None, total: int, factors: Seconds
) -> list[float]:
    """Returns the seconds of a step in each epoch.

    Args:
        epochs: The workers in each.
        policy: Plans after each epoch from what was measured; None for equal shares.
        total: Global batch.
        factors: Shape (epochs, workers): what noise makes of the step seconds.
    """
    logs = tuple(WorkerLog(f"worker{k}", (), pace.most) for k, pace in enumerate(epochs[0]))
    shares = equal_shares(total, len(logs))
    slowest = []
    for number, (workers, of_epoch) in enumerate(zip(epochs, factors, strict=True), 1):
        seconds = [
            pace.seconds(share) * float(factor)
            for pace, share, factor in zip(workers, shares, of_epoch, strict=True)
        ]
        slowest.append(max(seconds))
        if policy is not None:
            logs = tuple(
                trimmed(replace(log, samples=(*log.samples, Sample(number, share, spent, STEPS))))
                for log, share, spent in zip(logs, shares, seconds, strict=True)
            )
            shares = policy.plan(logs, shares, total)
    return slowest


Profiles = dict[str, dict[str, paces.Pace]]


def read_profiles(folder: Path) -> Profiles:
    """Returns the step seconds of each device for each job.

    Args:
        folder: Holds `gavel-device_profiles.csv`: workload, device, local_batch, step_seconds.
    """
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with (folder / PROFILES_FILE).open(newline="") as file:
        for row in csv.DictReader(file):
            point = (float(row["local_batch"]), float(row["step_seconds"]))
            points.setdefault((row["workload"], row["device"]), []).append(point)
    found: Profiles = {}
    for (workload, device), known in points.items():
        batches, seconds = zip(*sorted(known), strict=True)
        found.setdefault(workload, {})[device] = paces.Pace(profile=(batches, seconds))
    return found


def mixes(profiles: Profiles, workers: int, most: int) -> list[tuple[paces.Workers, int]]:
    """Returns clusters of at least two kinds of devices, each with its global batch.

    The batch is the workers times the second or third batch of the job's profile.

    Args:
        profiles: Of the devices.
        workers: Of each cluster.
        most: How many clusters are drawn where there are more.
    """
    found = []
    for devices in profiles.values():
        kinds = sorted(devices)
        for chosen in itertools.combinations_with_replacement(kinds, workers):
            if len(set(chosen)) > 1:
                cluster = tuple(devices[kind] for kind in chosen)
                found += [(cluster, workers * int(_batches(cluster)[k])) for k in (1, 2)]
    if len(found) > most:
        return random.Random(workers).sample(found, most)
    return found


def _batches(cluster: paces.Workers) -> tuple[float, ...]:
    profile = cluster[0].profile
    return () if profile is None else profile[0]
