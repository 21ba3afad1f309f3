"""Measures how well steps of one and two workers tell the speed-up of more.

Usage: python benchmarks/speedup.py --traces DIR --json FILE

Each predictor sees steps of one and two workers of a job, and answers the speed-up of every
measured cell with more workers at the same global batch. Beside FILE comes FILE with the ending
.md. Errors are |predicted / measured - 1|; a group's figures are taken over the medians of its
jobs, so that large grids don't outvote small ones, and over all its cells.
"""

import argparse
import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from advise_predictors import PREDICTORS, Known, Target, can_predict

from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.tidy import TidyFile

COLUMNS = ("workload", "device", "workers", "batch_size", "step_seconds", "kind")
POLLUX_NODE = 4
APART = "_unconsolidated"  # a device of that name has each worker on a node of its own
MOST_ON_ONE = 10**6
Row = dict[str, object]


@dataclass
class Table:
    """Holds the steps of one job on one device: seconds by workers, nodes and global batch."""

    seconds: dict[tuple[int, int, int], float] = field(default_factory=dict)
    sync: dict[tuple[int, int, int], float] = field(default_factory=dict)
    measured: set[tuple[int, int, int]] = field(default_factory=set)

    def curve(self, workers: int, nodes: int, *, is_local: bool = False) -> dict[int, float]:
        """Returns seconds by batch, the global one or a worker's own."""
        share = workers if is_local else 1
        return {
            b // share: s
            for (n, k, b), s in sorted(self.seconds.items())
            if (n, k) == (workers, nodes)
        }


def read(path: Path) -> dict[str, Table]:
    """Returns the tables of a file by device."""
    file, workload = TidyFile(path), path.name.rsplit(".", 2)[0]
    tables: dict[str, Table] = defaultdict(Table)
    for line, row in file.rows(COLUMNS, workload):
        workers, batch = file.count(line, row, "workers"), file.count(line, row, "batch_size")
        cell = workers, int(float(row["nodes"] or 1)), batch
        table, seconds = tables[row["device"]], file.number(line, row, "step_seconds", least=0)
        table.seconds[cell] = min(seconds, table.seconds.get(cell, math.inf))
        if row.get("sync_seconds"):
            table.sync[cell] = float(row["sync_seconds"])
        if row["kind"] == "measured":
            table.measured.add(cell)
    file.check()
    return dict(tables)


def jobs(traces: Path) -> Iterator[tuple[str, Known, list[tuple[Target, float, bool]]]]:
    """Yields a group, what is known, and targets with their seconds and whether measured."""
    grids = sorted(traces.glob("pollux-*.grid.csv"))
    others = sorted(traces.glob("gavel-*.times.csv"))
    if not grids or not others:
        msg = f"{traces} must hold the shared traces' CSV files. Name their folder by --traces."
        raise InvalidWorkloadError(msg)
    for path in grids:
        name = path.name.removesuffix(".grid.csv")
        local = read(traces / f"{name}.times.csv")
        for device, table in read(path).items():
            known = _known(name, table, local[device], local[device].curve(2, 2, is_local=True))
            yield "T4, 4 a node", known, list(_targets(table, known))
    for path in others:
        tables = read(path)
        name = path.name.removesuffix(".times.csv")
        for device, table in tables.items():
            if not device.endswith(APART):
                apart = tables.get(device + APART, Table())
                far = apart.curve(2, 2, is_local=True)
                known = _known(f"{name} {device}", table, table, far)
                known = replace(known, per_node=MOST_ON_ONE)
                yield "gavel, one node", known, list(_targets(table, known))
                if known.far_local:
                    known = replace(known, per_node=1)
                    yield "gavel, a node each", known, list(_targets(apart, known))


def _known(name: str, table: Table, local: Table, far: dict[int, float]) -> Known:
    sync = {b: s for (n, k, b), s in table.sync.items() if (n, k) == (2, 1)}
    return Known(
        name=name,
        per_node=POLLUX_NODE,
        one=table.curve(1, 1),
        two=table.curve(2, 1),
        one_local=local.curve(1, 1, is_local=True),
        two_local=local.curve(2, 1, is_local=True),
        far_local=far,
        sync=sync,
    )


def _targets(table: Table, known: Known) -> Iterator[tuple[Target, float, bool]]:
    for (workers, nodes, batch), seconds in sorted(table.seconds.items()):
        is_packed = nodes == math.ceil(workers / known.per_node)
        is_known = batch in known.one and batch in known.two and len(known.one_local) > 1
        if workers > 2 and is_packed and is_known and len(known.two_local) > 1:
            target = Target(workers, nodes, batch)
            yield target, seconds, (workers, nodes, batch) in table.measured


def rows(traces: Path) -> Iterator[Row]:
    """Yields a row for every target and predictor."""
    for group, known, targets in jobs(traces):
        for target, seconds, is_measured in targets:
            measured = known.one[target.batch] / seconds
            place = "within a node" if target.nodes == 1 else "across nodes"
            for name, predict in PREDICTORS.items():
                if can_predict(name, known, target):
                    found = predict(known, target)
                    yield {
                        "group": f"{group}, {place}" if group.startswith("T4") else group,
                        "job": known.name,
                        "predictor": name,
                        "workers": target.workers,
                        "batch_size": target.batch,
                        "is_measured": is_measured,
                        "speedup": measured,
                        "predicted": found,
                        "error": abs(found / measured - 1),
                    }


def table(found: list[Row]) -> str:
    """Returns errors by group and predictor as a Markdown table."""
    lines = [
        "| group | predicted by | jobs | cells | median | 90 % | of jobs' medians | of all cells |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for group in dict.fromkeys(str(row["group"]) for row in found):
        for name in PREDICTORS:
            of = [row for row in found if row["group"] == group and row["predictor"] == name]
            judged = [row for row in of if row["is_measured"]]
            if not judged:
                continue
            by_job: dict[object, list[Row]] = defaultdict(list)
            for row in judged:
                by_job[row["job"]].append(row)
            errors = _errors(judged)
            figures = (
                statistics.median(errors),
                float(np.quantile(errors, 0.9)),
                statistics.median(statistics.median(_errors(each)) for each in by_job.values()),
                statistics.median(_errors(of)),
            )
            shown = " | ".join(f"{figure:.1%}" for figure in figures)
            lines.append(f"| {group} | {name} | {len(by_job)} | {len(judged)} | {shown} |")
    return "\n".join(lines)


def _errors(of: Iterable[Row]) -> list[float]:
    return [float(str(row["error"])) for row in of]


def main() -> None:
    """Predicts, prints the table and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    options = parser.parse_args()
    try:
        found = list(rows(options.traces))
    except InvalidWorkloadError as error:
        sys.exit(f"speedup.py: {error}")
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    options.json.with_suffix(".md").write_text(table(found) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
