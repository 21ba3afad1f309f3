"""Replays rebalancing on measured step times of different GPUs.

Usage: python benchmarks/rebalance_replay.py --traces DIR --json FILE [--every 1]

Every mix of the devices in `DIR/gavel-device_profiles.csv`, 2 to 16 workers, begins with equal
shares and adjusts them three times. The global batch is the workers times the second or third
point of the profile; between points step times are linear, and shares stay inside the profile's
range. Measured seconds have lognormal noise. Shown is the true step time of the last shares over
that of the best whole shares, and how often it is longer than with equal ones. A workload counts
as convex where no measured point lies above the line through its neighbours by more than 2 %.
`--every` takes one mix in so many, for a quick look.
"""

import argparse
import csv
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raycosttune.core.rebalance import DBS, Balance, Policy, Sample, WorkerLog
from raycosttune.core.share import equal_shares

FILE = "gavel-device_profiles.csv"
ADJUSTMENTS, CONVEX = 3, 1.02
Profile = list[tuple[int, float]]
Mix = tuple[int, ...]


@dataclass(frozen=True)
class Workload:
    """Holds the step times of a job on each kind of device, by samples of a worker."""

    name: str
    profiles: tuple[Profile, ...]

    @cached_property
    def least(self) -> int:
        """Smallest share that all devices were measured at."""
        return max(profile[0][0] for profile in self.profiles)

    @cached_property
    def tables(self) -> list[NDArray[np.float64]]:
        """Seconds of a step on each device, from `least` samples on."""
        tables = []
        for profile in self.profiles:
            samples, seconds = zip(*profile, strict=True)
            shares = np.arange(self.least, profile[-1][0] + 1, dtype=np.float64)
            tables.append(np.interp(shares, np.array(samples, float), np.array(seconds)))
        return tables

    def most(self, device: int) -> int:
        """Returns the largest share that a device was measured at."""
        return self.profiles[device][-1][0]

    def seconds(self, mix: Mix, shares: Sequence[int]) -> list[float]:
        """Returns the seconds of a step on each worker."""
        pairs = zip(mix, shares, strict=True)
        return [float(self.tables[device][share - self.least]) for device, share in pairs]

    @property
    def is_convex(self) -> bool:
        """Whether a larger share never gets cheaper by the sample, to 2 %."""
        return all(
            y1 <= CONVEX * (y0 + (y2 - y0) * (x1 - x0) / (x2 - x0))
            for profile in self.profiles
            for (x0, y0), (x1, y1), (x2, y2) in zip(profile, profile[1:], profile[2:], strict=False)
        )

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """All step times that there are, rising."""
        return np.unique(np.concatenate(self.tables))

    @cached_property
    def _ranges(self) -> dict[int, list[list[tuple[int, int]]]]:
        return {}

    def optimum(self, mix: Mix, total: int) -> float:
        """Returns the least seconds of a step over all whole shares, by bisection."""
        low, high = 0, len(self.values) - 1
        while low < high:
            middle = (low + high) // 2
            if self._reaches(mix, total, middle):
                high = middle
            else:
                low = middle + 1
        return float(self.values[low])

    def _reaches(self, mix: Mix, total: int, place: int) -> bool:
        """Says whether shares done within a time can add up to the batch."""
        if place not in self._ranges:
            self._ranges[place] = [
                self._within(device, place) for device in range(len(self.tables))
            ]
        sums = [(0, 0)]
        for device in mix:
            reached = sorted(
                (a + x, b + y) for a, b in sums for x, y in self._ranges[place][device]
            )
            sums = reached[:1]
            for a, b in reached[1:]:
                if a <= sums[-1][1] + 1:
                    sums[-1] = (sums[-1][0], max(b, sums[-1][1]))
                else:
                    sums.append((a, b))
        return any(a <= total <= b for a, b in sums)

    def _within(self, device: int, place: int) -> list[tuple[int, int]]:
        fits = np.flatnonzero(self.tables[device] <= self.values[place])
        if not len(fits):
            return []
        runs = np.split(fits, np.flatnonzero(np.diff(fits) > 1) + 1)
        return [(int(run[0]) + self.least, int(run[-1]) + self.least) for run in runs]


def read_workloads(folder: Path) -> list[Workload]:
    """Reads the profiles."""
    path = folder / FILE
    if not path.exists():
        msg = f"--traces must be a folder with {FILE}, got {folder}: see docs/simulate.md"
        raise SystemExit(msg)
    rows: dict[str, dict[str, Profile]] = defaultdict(lambda: defaultdict(list))
    with path.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            point = (int(row["local_batch"]), float(row["step_seconds"]))
            rows[row["workload"]][row["device"]].append(point)
    return [
        Workload(name, tuple(sorted(profile) for profile in devices.values()))
        for name, devices in rows.items()
    ]


def mixes(devices: int) -> Iterator[Mix]:
    """Yields every mix of 2 to 16 workers."""
    for workers in range(2, 17):
        yield from itertools.combinations_with_replacement(range(devices), workers)


def adjusted(
    workload: Workload, mix: Mix, total: int, policy: Policy, noise: NDArray[np.float64]
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


def replay(workload: Workload, policy: Policy, deviation: float, every: int) -> dict[str, float]:
    """Replays every mix with one policy and one noise."""
    rng = np.random.default_rng(0)
    over, worse = [], 0
    points = [workload.profiles[0][k][0] for k in (1, 2)]
    cases = [(mix, point) for point in points for mix in mixes(len(workload.profiles))]
    for mix, point in cases[::every]:
        total = point * len(mix)
        noise = deviation * rng.standard_normal((ADJUSTMENTS, len(mix)))
        seconds = max(workload.seconds(mix, adjusted(workload, mix, total, policy, noise)))
        over.append(seconds / workload.optimum(mix, total))
        worse += seconds > max(workload.seconds(mix, [point] * len(mix))) * (1 + 1e-9)
    return {
        "median": float(np.median(over)),
        "p90": float(np.quantile(over, 0.9)),
        "worse_than_equal": worse / len(over),
        "mixes": len(over),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Replays all workloads, prints a table and writes the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--traces", type=Path, required=True, help="folder of the profiles")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--every", type=int, default=1, help="take one mix in so many")
    options = parser.parse_args(argv)
    figures = []
    print("step time over the best whole shares: median / p90 (share worse than equal)")
    for workload in read_workloads(options.traces):
        kind = "convex" if workload.is_convex else "not convex"
        for name, policy in (("DBS", DBS(workload.least)), ("Balance", Balance(workload.least))):
            row = {
                noise: replay(workload, policy, noise, options.every) for noise in (0.0, 0.05, 0.15)
            }
            figures.append({"workload": workload.name, "kind": kind, "policy": name, "noise": row})
            cells = "   ".join(
                f"{told['median']:.3f} / {told['p90']:.3f} ({told['worse_than_equal']:.1%})"
                for told in row.values()
            )
            print(f"{workload.name:<28}{kind:<12}{name:<9}{cells}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
