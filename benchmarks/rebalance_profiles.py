"""Step times of devices against their share of the batch, measured or made up."""

import csv
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = "gavel-device_profiles.csv"
CONVEX = 1.02
SHAPES = ("convex", "affine", "concave", "flat then linear", "jump", "falling", "bumpy")
SYNTHETIC_MIXES = 4
Profile = list[tuple[int, float]]
Mix = tuple[int, ...]
Floats = NDArray[np.float64]


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
    def tables(self) -> list[Floats]:
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
    def values(self) -> Floats:
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


def synthetic(shape: str, seed: int) -> Workload:
    """Makes up profiles of three devices: five points, each twice the samples of the last."""
    rng = np.random.default_rng([seed, SHAPES.index(shape)])
    points = int(rng.choice([4, 8, 16, 32, 100])) * 2 ** np.arange(5)
    profiles = []
    for _ in range(3):
        share, constant = points / points[2], rng.uniform(0, 0.8 if shape == "affine" else 0.5)
        power = {"convex": rng.uniform(1, 1.5), "concave": rng.uniform(0.6, 1)}.get(shape, 1.0)
        seconds = constant + (1 - constant) * share**power
        if shape == "flat then linear":
            seconds = np.maximum(share, rng.uniform(0.4, 2))
        if shape == "jump":
            seconds[rng.integers(1, 5) :] *= rng.choice([1.0, rng.uniform(1.3, 3.5)])
        if shape == "falling":
            seconds[0] = max(seconds[0], seconds[1] * rng.choice([1.0, rng.uniform(1.1, 2)]))
        if shape == "bumpy":
            seconds = seconds * np.exp(rng.normal(0, 0.15, 5))
        scale = 0.05 * np.exp(rng.normal(0, 0.6))
        profiles.append([(int(b), float(t)) for b, t in zip(points, scale * seconds, strict=True)])
    return Workload(shape, tuple(profiles))


def synthetic_cases(
    shape: str, count: int, known: Sequence[Mix]
) -> list[tuple[Workload, Mix, int]]:
    """Returns a few mixes of each of so many made-up workloads, with the equal share."""
    cases = []
    for seed in range(count):
        workload, rng = synthetic(shape, seed), np.random.default_rng(seed)
        point = workload.profiles[0][1 + seed % 2][0]
        places = rng.choice(len(known), min(SYNTHETIC_MIXES, len(known)), replace=False)
        cases += [(workload, known[place], point) for place in places]
    return cases
