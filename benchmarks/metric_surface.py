"""Measures how well a few learning curves tell the metric at other batches and later epochs.

Usage: python benchmarks/metric_surface.py --traces DIR [--seeds 3]

A(b, e) is predicted, as its gap to the target, and judged against the trend of the traces, up to
the epoch that reaches the target. The curves seen have their own evaluation noise. Printed are the
share of 90 % intervals that hold the trend, the median error and the median width, in units of the
metric, and on how many points they rest:

* from the whole curve of one batch, and of two, to every other batch;
* from the first 20, 50 and 80 % of a run to the rest of it, alone, and beside the whole curve of
  another batch.
"""

import argparse
import itertools
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from replay_tasks import JOBS, Task, read

from raycosttune import Goal
from raycosttune.core.accuracy_surrogate import noise_scales
from raycosttune.core.array import Floats
from raycosttune.core.isotonic import isotonic
from raycosttune.core.metric_surface import Curve, MetricSurface
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate import TraceWorkload
from raycosttune.simulate.noise import resampled

SHARES = (0.2, 0.5, 0.8)
FEWEST, JUDGED = 2, 6  # points of a curve that is seen, and of one that is judged
Rows = dict[str, list[tuple[bool, float, float]]]


@dataclass(frozen=True)
class Truth:
    """Is a curve as it was seen, and its trend; both as gaps to the target.

    Attributes:
        epochs: Up to the target, shape (k,).
        seen: With evaluation noise, shape (k,).
        trend: Shape (k,).
    """

    epochs: Floats
    seen: Floats
    trend: Floats

    @classmethod
    def of(
        cls, workload: TraceWorkload, goal: Goal, batch: int, rng: np.random.Generator
    ) -> "Truth":
        """Reads the curve of a batch."""
        curve = workload.curve(batch)
        epochs = np.array(curve.epochs)
        values = [goal.sign * np.array(v) for v in (resampled(curve, rng), curve.values)]
        seen, raw = (goal.sign * goal.target - v for v in values)
        trend = isotonic(raw, np.ones(len(raw)), increasing=False)
        kept = epochs <= curve.epochs_to(goal) + 1e-9
        return cls(epochs[kept], seen[kept], trend[kept])

    def curve(self, batch: int, share: float = 1.0) -> Curve:
        """Returns the first part of what was seen."""
        count = max(int(len(self.epochs) * share), 1)
        pairs = zip(self.epochs[:count].tolist(), self.seen[:count].tolist(), strict=True)
        return Curve(batch, tuple(pairs))


def judged(
    surface: MetricSurface, batch: int, truth: Truth, after: float = 0.0
) -> Iterator[tuple[bool, float, float]]:
    """Yields whether an interval holds the trend, the error of its mean, and its width."""
    places = np.flatnonzero(truth.epochs > after)
    for k in places[:: max(len(places) // JUDGED, 1)]:
        found, gap = surface.predict(batch, float(truth.epochs[k])), float(truth.trend[k])
        yield found.low <= gap <= found.high, abs(found.mid - gap), found.high - found.low


def measure(workload: TraceWorkload, goal: Goal, seeds: int) -> Rows:
    """Judges a job's predictions."""
    rows: Rows = defaultdict(list)
    batches = workload.space.batches
    scales = noise_scales(min(batches), max(batches))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        truths = {batch: Truth.of(workload, goal, batch, rng) for batch in batches}
        whole = {b: t.curve(b) for b, t in truths.items() if len(t.epochs) >= FEWEST}
        for count in (1, 2):
            for some in itertools.combinations(whole, count):
                surface = MetricSurface([whole[batch] for batch in some], scales)
                for batch in set(batches) - set(some):
                    rows[f"{count} whole, another batch"] += judged(surface, batch, truths[batch])
        for batch, share in itertools.product(whole, SHARES):
            part = truths[batch].curve(batch, share)
            if len(part.points) < FEWEST:
                continue
            told, after = (batch, truths[batch]), part.points[-1][0]
            rows["its rest alone"] += judged(MetricSurface([part], scales), *told, after)
            for other in set(whole) - {batch}:
                surface = MetricSurface([whole[other], part], scales)
                rows["its rest beside another"] += judged(surface, *told, after)
    return rows


def main() -> None:
    """Measures every job and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("| job | predicted | in 90 % interval | median error | median width | points |")
    print("|---|---|---:|---:|---:|---:|")
    try:
        for job in JOBS:
            workload, goal = read(options.traces, Task(job, None, "pollux-t4"), 0.0)
            for name, rows in measure(workload, goal, options.seeds).items():
                held, off, width = np.array(rows, dtype=np.float64).T
                middle = f"{np.median(off):.3g} | {np.median(width):.3g}"
                print(f"| {job} | {name} | {held.mean():.0%} | {middle} | {len(rows)} |")
    except InvalidWorkloadError as error:
        sys.exit(f"metric_surface.py: {error}")


if __name__ == "__main__":
    main()
