"""Measures how well a few measured cells tell the epoch times of the others.

Usage: python benchmarks/surrogates.py --traces DIR --json FILE
           [--seeds 8] [--noise 0.05,0.15] [--sizes 3,6,10,20]

Cells are drawn at random, or as a planner takes them: batches spread at the fewest workers,
then a few at one or two larger counts. Each is sampled once, with noise; judged are the
`measured` cells that were not drawn. Beside FILE comes FILE with the ending .md.

Errors are medians of |predicted / true - 1| over a data set's held-out cells and draws,
coverages are shares of these cells; both are averaged over the data sets of a group.
"""

import argparse
import json
import math
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from raycosttune.core.array import Floats
from raycosttune.core.measured import measured_space
from raycosttune.core.space import Allocation, Space
from raycosttune.core.time_surrogate import Z90, TimeSurrogate
from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate import AnalyticWorkload
from raycosttune.simulate.peers.step_time import fit_step_time
from raycosttune.simulate.peers.surface import Surface
from raycosttune.simulate.tidy import TidyFile

COLUMNS = ("workload", "device", "workers", "batch_size", "step_seconds", "kind")
POLLUX_NODE = 4
MOST_SHARE = 0.6  # of the cells; else too few are held out
FEWEST_CELLS = 8
Samples = Mapping[Allocation, float]


@dataclass(frozen=True)
class DataSet:
    """Is a table of true epoch times.

    Attributes:
        group: Where it comes from.
        name: Its job and device.
        space: Its cells.
        seconds: Seconds of an epoch by cell, up to a unit.
        judged: The cells that were measured rather than interpolated.
    """

    group: str
    name: str
    space: Space
    seconds: Samples
    judged: frozenset[Allocation]


def data_sets(traces: Path) -> Iterator[DataSet]:
    """Yields the tables of a folder, then random analytic ones."""
    files = sorted([*traces.glob("*.grid.csv"), *traces.glob("*.times.csv")])
    if not files:
        msg = f"{traces} must hold the shared traces' CSV files. Name their folder by --traces."
        raise InvalidWorkloadError(msg)
    for path in files:
        yield from _read(path)
    rng = np.random.default_rng(0)
    for k in range(8):
        batches = tuple(32 * 2**j for j in range(7))
        space = Space((1, 2, 3, 4, 6, 8, 12, 16), batches, workers_per_node=4 if k % 2 else None)
        step, sync, epoch = np.exp(rng.normal(np.log([0.03, 0.02, 1.0]), 1.2)).tolist()
        job = AnalyticWorkload(
            space, step_overhead_seconds=step, sync_seconds=sync, epoch_overhead_seconds=epoch
        )
        seconds = {cell: job.epoch_seconds(cell) for cell in space.cells}
        yield DataSet("analytic", f"{k}", space, seconds, frozenset(space.cells))


def _read(path: Path) -> Iterator[DataSet]:
    """Yields a table for every device of a file; packed placements alone."""
    file, (workload, kind, _) = TidyFile(path), path.name.rsplit(".", 2)
    seen: dict[str, dict[tuple[int, int], float]] = defaultdict(dict)
    measured: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for line, row in file.rows(COLUMNS, workload):
        workers, batch = file.count(line, row, "workers"), file.count(line, row, "batch_size")
        is_packed = int(float(row["nodes"] or 1)) == math.ceil(workers / POLLUX_NODE)
        if is_packed or not workload.startswith("pollux"):
            seconds = file.number(line, row, "step_seconds", least=0) / batch
            table = seen[row["device"]]
            table[workers, batch] = min(seconds, table.get((workers, batch), math.inf))
            if row["kind"] == "measured":
                measured[row["device"]].add((workers, batch))
    file.check()
    source = workload.split("-")[0]
    group = f"{source} {kind}" if source == "pollux" else source
    for device, table in seen.items():
        node = 1 if device.endswith("_unconsolidated") else None
        space = measured_space(set(table), POLLUX_NODE if source == "pollux" else node)
        if len(space.cells) >= FEWEST_CELLS and (len(space.workers) > 1 or source == "zeus"):
            seconds_of = {cell: table[cell.workers, cell.batch_size] for cell in space.cells}
            judged = {c for c in space.cells if (c.workers, c.batch_size) in measured[device]}
            yield DataSet(group, f"{workload} {device}", space, seconds_of, frozenset(judged))


def drawn(space: Space, size: int, design: str, rng: np.random.Generator) -> list[Allocation]:
    """Draws the cells to measure, by a design of "random" or "planner"."""
    if design == "random":
        return [space.cells[k] for k in rng.choice(len(space.cells), size, replace=False)]
    by_workers: dict[int, list[Allocation]] = defaultdict(list)
    for cell in space.cells:
        by_workers[cell.workers].append(cell)
    fewest, *larger = by_workers.values()
    spread = np.linspace(0, len(fewest) - 1, min(len(fewest), (size + 1) // 2)).round()
    cells = [fewest[int(k)] for k in np.unique(spread)]
    some = min(len(larger), 1 if size < 8 else 2)
    for k in rng.choice(len(larger), some, replace=False) if some else ():
        share = min(len(larger[k]), size // 2 // some)
        cells += [larger[k][j] for j in rng.choice(len(larger[k]), share, replace=False)]
    return cells


def isotonic(space: Space, samples: Samples) -> Floats:
    """Predicts log seconds by a plain isotonic regression over workers and batch."""
    points = [(-float(cell.workers), -float(cell.batch_size)) for cell in samples]
    surface = Surface.fit(points, [math.log(seconds) for seconds in samples.values()])
    of = [surface.predict((-float(c.workers), -float(c.batch_size))) for c in space.cells]
    return np.array(of)


def pollux(space: Space, samples: Samples) -> Floats:
    """Predicts log seconds by Pollux' seven parameters."""
    steps = [seconds * cell.batch_size for cell, seconds in samples.items()]
    model = fit_step_time(list(samples), steps)
    batches = np.array([cell.batch_size for cell in space.cells])
    return np.asarray(np.log(model.seconds(space.cells) / batches), dtype=np.float64)


PEERS: dict[str, Callable[[Space, Samples], Floats]] = {"isotonic": isotonic, "pollux": pollux}


def judge(data: DataSet, size: int, design: str, noise: float, seeds: int) -> dict[str, float]:
    """Returns errors and coverages of one data set, and the surrogate's milliseconds."""
    told: dict[str, list[Floats]] = defaultdict(list)
    for seed in range(seeds):
        rng = np.random.default_rng([seed, size, len(data.name)])
        cells = drawn(data.space, size, design, rng)
        factors = np.exp(noise * rng.standard_normal(len(cells)))
        samples = {c: data.seconds[c] * float(f) for c, f in zip(cells, factors, strict=True)}
        held = [k for k, c in enumerate(data.space.cells) if c in data.judged and c not in samples]
        truth = np.log([data.seconds[data.space.cells[k]] for k in held])
        started = time.perf_counter()
        ours = TimeSurrogate.of(data.space, {c: (seconds,) for c, seconds in samples.items()})
        off = np.abs(ours.log_mean[held] - truth)
        told["ms"].append(np.array([1e3 * (time.perf_counter() - started)]))
        lower, upper = ours.log_bounds
        told["ours"].append(np.abs(np.expm1(ours.log_mean[held] - truth)))
        told["interval"].append(np.where(off <= Z90 * ours.log_sd[held], 1.0, 0.0))
        is_within = (lower[held] <= truth) & (truth <= upper[held])
        told["bounds"].append(np.where(is_within, 1.0, 0.0))
        for name, predict in PEERS.items():
            told[name].append(np.abs(np.expm1(predict(data.space, samples)[held] - truth)))
    pooled = {name: np.concatenate(values) for name, values in told.items()}
    shares = ("interval", "bounds")
    return {k: float(np.mean(v) if k in shares else np.median(v)) for k, v in pooled.items()}


def rows(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yields a row of results for every data set, size, design and noise."""
    for data in data_sets(options.traces):
        for size in options.sizes:
            if size <= MOST_SHARE * len(data.space.cells):
                for design in ("random", "planner"):
                    for noise in options.noise:
                        found = judge(data, size, design, noise, options.seeds)
                        key = {"group": data.group, "data": data.name, "size": size}
                        yield key | {"design": design, "noise": noise} | found


def table(found: list[dict[str, object]]) -> str:
    """Returns means over the data sets of a group as a Markdown table."""
    names = ("isotonic", "pollux", "ours", "interval", "bounds", "ms")
    gathered: dict[tuple[object, ...], list[list[float]]] = defaultdict(list)
    for row in found:
        key = tuple(row[name] for name in ("noise", "design", "group", "size"))
        gathered[key].append([float(str(row[name])) for name in names])
    header = (
        "| noise | cells | group | sampled | isotonic | Pollux | ours | in 90 % interval | "
        "in bounds | ms |"
    )
    lines = []
    for (noise, design, group, size), values in gathered.items():
        *shares, ms = np.mean(values, axis=0)
        shown = " | ".join(f"{share:.1%}" for share in shares)
        lines.append(f"| {noise} | {design} | {group} | {size:2} | {shown} | {ms:.1f} |")
    return "\n".join([header, "|---" * 3 + "|---:" * 7 + "|", *sorted(lines)])


def main() -> None:
    """Measures, prints the table and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--noise", type=lambda t: [float(x) for x in t.split(",")], default=[0.05])
    parser.add_argument(
        "--sizes", type=lambda t: [int(x) for x in t.split(",")], default=[3, 6, 10, 20]
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore", RuntimeWarning)  # a peer's fit may overflow on its way
    try:
        found = list(rows(options))
    except InvalidWorkloadError as error:
        sys.exit(f"surrogates.py: {error}")
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    options.json.with_suffix(".md").write_text(table(found) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
