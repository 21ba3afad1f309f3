"""Checks advice against real runs on this machine: two cores are enough.

Usage: python benchmarks/advise_real.py --json FILE
           [--parts scaling,link,memory,servers,algorithms] [--steps 20] [--rounds 3]

Results of parts that were measured before are kept in FILE. Beside it comes FILE with the
ending .md.
"""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import advise_memory
import advise_scaling

from raycosttune.train.probe_algorithm import HERE, probe_algorithms
from raycosttune.train.probe_child import run_children

EXAMPLES = str(Path(__file__).parents[1] / "examples")
sys.path.append(EXAMPLES)
JOBS = "advise_jobs"
Rows = list[dict[str, Any]]


def scaling(steps: int, rounds: int) -> Rows:
    """Predicts steps of one and two workers."""
    rows: Rows = []
    for job, batch in (("cnn", 16), ("mlp", 64)):
        rows += advise_scaling.check(f"{JOBS}:{job}", batch, steps, rounds)
    return rows


def link(steps: int, rounds: int) -> Rows:
    """Predicts steps of two workers on a slow link."""
    cells = [("mlp", 64, 25e6), ("mlp", 64, 100e6), ("cnn", 16, 2e6)]
    return [
        advise_scaling.check_throttled(f"{JOBS}:{job}", batch, rate, steps, rounds)
        for job, batch, rate in cells
    ]


def memory(steps: int, rounds: int) -> Rows:
    """Predicts the largest batch."""
    del steps, rounds
    cells = [("images", 16, 6e8), ("images", 16, 1.2e9), ("wide", 16, 6e8)]
    return [advise_memory.check(f"{JOBS}:{job}", batch, limit) for job, batch, limit in cells]


def servers(steps: int, rounds: int) -> Rows:
    """Finds the knee of parameter servers."""
    del rounds
    from parameter_server import Setting, measure, measured_knee, start_ray

    # Ray's processes import the example by name.
    os.environ["PYTHONPATH"] = os.pathsep.join([EXAMPLES, os.environ.get("PYTHONPATH", "")])
    start_ray()
    rows: Rows = []
    for rate in (20e6, 32e6):
        setting = Setting(bytes_per_second=rate, steps=steps)
        found = measure(setting)
        rows.append(
            {
                "bytes_per_second": rate,
                "predicted": setting.knee,
                "measured": measured_knee(found),
                "rows": [asdict(row) for row in found],
            }
        )
    return rows


def algorithms(steps: int, rounds: int) -> Rows:
    """Compares the chosen algorithms with PyTorch's own in fresh pairs."""
    del rounds
    rows: Rows = []
    for job, batch in (("cnn", 16), ("images", 16)):
        target = f"{JOBS}:{job}"
        probe = probe_algorithms(target, batch)
        arguments = {"target": target, "samples": batch, "device": "cpu", "repeats": steps}
        arguments |= {"exact": True, "plans": [dict(probe.choice.algorithms)] * 2}
        (ratios,) = run_children(f"{HERE}:compare_plans", arguments)
        rows.append(
            {
                "job": job,
                "batch_size": batch,
                "chosen": dict(probe.choice.algorithms),
                "costs": {k: {a: list(c) for a, c in v.items()} for k, v in probe.costs.items()},
                "predicted": probe.choice.seconds
                / sum(by_name["default"].seconds for by_name in probe.costs.values()),
                "ratio": statistics.mean(ratios),
            }
        )
    return rows


PARTS: dict[str, Callable[[int, int], Rows]] = {
    "scaling": scaling,
    "link": link,
    "memory": memory,
    "servers": servers,
    "algorithms": algorithms,
}


def table(told: dict[str, Rows]) -> str:
    """Returns the results as Markdown tables."""
    lines: list[str] = []

    def add(title: str, columns: str, rows: list[str]) -> None:
        names = columns.split(", ")
        head = [f"## {title}", "", f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
        lines.extend([*head, *rows, ""])

    add(
        "Steps of one and two workers",
        "job, workers, batch, seconds, predicted over measured",
        [
            f"| {r['job']} | {r['workers']} | {r['batch_size']} | {r['measured_seconds']:.3f} | "
            f"{r['ratio']:.2f} |"
            for r in told.get("scaling", [])
        ],
    )
    add(
        "Two workers on a slow link",
        "job, batch, MB/s, exchange s, step s, predicted over measured",
        [
            f"| {r['job']} | {r['batch_size']} | {r['bytes_per_second'] / 1e6:g} | "
            f"{r['exchange_seconds']:.3f} | {r['measured_seconds']:.3f} | {r['ratio']:.2f} |"
            for r in told.get("link", [])
        ],
    )
    add(
        "The largest batch",
        "job, limit GB, by, predicted, measured, ratio",
        [
            f"| {r['job']} | {r['memory_bytes'] / 1e9:g} | {r['limited_by']} | {r['predicted']} | "
            f"{r['measured']} | {r['ratio']:.3f} |"
            for r in told.get("memory", [])
        ],
    )
    add(
        "Parameter servers",
        "MB/s of a server, predicted knee, measured knee",
        [
            f"| {r['bytes_per_second'] / 1e6:g} | {r['predicted']} | {r['measured']} |"
            for r in told.get("servers", [])
        ],
    )
    add(
        "Algorithms of a convolutional network",
        "job, batch, chosen, seconds over PyTorch's own",
        [
            f"| {r['job']} | {r['batch_size']} | {_counted(r['chosen'])} | {r['ratio']:.3f} |"
            for r in told.get("algorithms", [])
        ],
    )
    return "\n".join(lines)


def _counted(chosen: dict[str, str]) -> str:
    names = list(chosen.values())
    return ", ".join(f"{names.count(name)} {name}" for name in sorted(set(names)))


def main() -> None:
    """Measures, prints the tables and writes both files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    told = json.loads(options.json.read_text()) if options.json.exists() else {}
    for part in options.parts.split(","):
        told[part] = PARTS[part](options.steps, options.rounds)
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    options.json.with_suffix(".md").write_text(table(told))
    print(table(told))


if __name__ == "__main__":
    main()
