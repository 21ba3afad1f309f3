"""Sums replayed sweeps up: medians, intervals by workload, tables and a figure.

Usage: python benchmarks/replay_summary.py FILE [FILE ...]

Merges the policies of several files of one setting and prints their tables; a figure goes
beside the first.
"""

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from replay_promises import (
    careful_table,
    certificates,
    finite,
    over_careful,
    promises_table,
    text,
)

Row = dict[str, Any]
HINDSIGHT = " (best stop in hindsight)"
RESAMPLES = 1000
OURS = "ours"
BERT = "pollux-bert"
INDEPENDENT = ("workers-then-batch", "batch-then-workers")


def summary(rows: Sequence[Row], settings: dict[str, Any]) -> dict[str, Any]:
    """Returns the figures of every policy, over all tasks and by task."""
    by_policy = _grouped(rows, "policy")
    ours = by_policy.get(OURS, [])
    without = {name: _without_bert(each) for name, each in by_policy.items()}
    return {
        "settings": settings,
        "policies": {
            name: {
                **_figures(each),
                "median_bill_ratio_interval": _intervals(each),
                "over_ours": _over_ours(each, ours),
                "without_bert": _figures(without[name]) if without[name] else None,
                "seconds": sum(row["seconds"] for row in each),
                "tasks": [
                    {"task": task, "oracle": of_task[0]["oracle"], **_figures(of_task)}
                    | {"chosen": _most_chosen(of_task)}
                    for task, of_task in _grouped(each, "task").items()
                ],
            }
            for name, each in by_policy.items()
        },
    }


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    by_planned = _grouped(rows, "planned_runs")
    ratios = {str(planned): _column(each, "ratio") for planned, each in by_planned.items()}
    return {
        "runs": len(rows),
        "median_bill_ratio": {planned: finite(np.median(each)) for planned, each in ratios.items()},
        "p90_bill_ratio": {planned: finite(_p90(each)) for planned, each in ratios.items()},
        "worst_regret": finite(max(_column(rows, "regret"))),
        "median_regret": finite(np.median(_column(rows, "regret"))),
        "regret_at_most_5_percent": float(np.mean(_column(rows, "regret") <= 0.05 + 1e-9)),
        "deadline_misses": sum(row["misses_deadline"] for row in rows),
        "target_misses": sum(row["misses_target"] for row in rows),
        "kept_deadline_and_target": float(
            np.mean([not (row["misses_deadline"] or row["misses_target"]) for row in rows])
        ),
        "over_careful": {planned: over_careful(each) for planned, each in by_planned.items()},
        "certificates": {planned: certificates(each) for planned, each in by_planned.items()},
        "median_search_spend": finite(np.median(_column(rows, "spend"))),
    }


def _intervals(rows: Sequence[Row]) -> dict[str, list[float | None]]:
    """Bootstraps the median bill by workload: 95 % intervals, by planned runs."""
    intervals = {}
    for planned, each in _grouped(rows, "planned_runs").items():
        values = [_column(of, "ratio") for of in _grouped(each, "workload").values()]
        rng = np.random.default_rng(0)
        medians = [
            np.median(
                np.concatenate([values[k] for k in rng.integers(len(values), size=len(values))])
            )
            for _ in range(RESAMPLES)
        ]
        intervals[str(planned)] = [
            finite(v) for v in np.quantile(medians, [0.025, 0.975], method="nearest")
        ]
    return intervals


def _over_ours(rows: Sequence[Row], ours: Sequence[Row]) -> dict[str, float | None]:
    """Returns the median of the bill over ours, paired by task, seed and planned runs."""
    key = ("task", "seed", "planned_runs")
    own = {tuple(row[k] for k in key): row["ratio"] for row in ours}
    paired: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        other = own.get(tuple(row[k] for k in key))
        if other is not None and math.isfinite(other):
            paired[str(row["planned_runs"])].append(row["ratio"] / other)
    return {planned: finite(np.median(values)) for planned, values in paired.items()}


def _most_chosen(rows: Iterable[Row]) -> list[int] | None:
    chosen = Counter(tuple(row["chosen"]) for row in rows if row["chosen"])
    return list(chosen.most_common(1)[0][0]) if chosen else None


def _without_bert(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["workload"] != BERT]


def _grouped(rows: Iterable[Row], key: str) -> dict[Any, list[Row]]:
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[key]].append(row)
    return dict(groups)


def _column(rows: Iterable[Row], key: str) -> np.ndarray:
    return np.array([row[key] for row in rows], dtype=np.float64)


def _p90(values: np.ndarray) -> float:
    # Nearest value: interpolating towards an infinite one would give no number.
    return float(np.quantile(values, 0.9, method="inverted_cdf"))


def markdown(result: dict[str, Any]) -> str:
    """Returns the tables of a summary."""
    settings = result["settings"]
    head = (
        f"{settings['cost']}, start-up {settings['startup']:g} s, "
        f"{settings['seeds']} seeds, {settings['noise']:.0%} noise on times"
    )
    tables = (_policies_table, careful_table, promises_table, _tasks_table, _joint_table)
    return "\n".join([head, "", *(line for table in tables for line in [*table(result), ""])])


def _policies_table(result: dict[str, Any]) -> Iterator[str]:
    planned = list(next(iter(result["policies"].values()))["median_bill_ratio"])
    columns = [f"median bill at {p}" for p in planned] + [f"p90 at {p}" for p in planned]
    yield (
        "| policy | "
        + " | ".join(columns)
        + " | over ours, paired | without bert | spend | worst regret | missed deadlines "
        "| missed targets | runs |"
    )
    yield "|---|" + "---|" * (len(columns) + 7)
    for name, each in result["policies"].items():
        medians = [f"{text(each['median_bill_ratio'][p])} ({_range(each, p)})" for p in planned]
        p90 = [text(each["p90_bill_ratio"][p]) for p in planned]
        bare = each["without_bert"] or {"median_bill_ratio": {}}
        paired = " / ".join(text(each["over_ours"].get(p)) for p in planned)
        without = " / ".join(text(bare["median_bill_ratio"].get(p)) for p in planned)
        yield (
            f"| {name} | {' | '.join(medians + p90)} | {paired} | {without} | "
            f"{text(each['median_search_spend'])} | {text(each['worst_regret'])} | "
            f"{each['deadline_misses']} | {each['target_misses']} | {each['runs']} |"
        )


def _tasks_table(result: dict[str, Any]) -> Iterator[str]:
    """Yields each policy's median bill by task, at the most planned runs."""
    policies = {
        name: {task["task"]: task for task in each["tasks"]}
        for name, each in result["policies"].items()
        if not name.endswith(HINDSIGHT)
    }
    names = list(policies)
    planned = list(next(iter(result["policies"].values()))["median_bill_ratio"])[-1]
    yield f"Median bill at {planned} planned runs by task; (missed deadlines + targets):"
    yield ""
    yield "| task | oracle's cell | " + " | ".join(names) + " |"
    yield "|---|---|" + "---|" * len(names)
    for task, first in policies[names[0]].items():
        cells = []
        for name in names:
            each = policies[name][task]
            missed = each["deadline_misses"] + each["target_misses"]
            ratio = text(each["median_bill_ratio"][planned])
            cells.append(f"{ratio} ({missed})" if missed else ratio)
        yield f"| {task} | {tuple(first['oracle'])} | {' | '.join(cells)} |"


def _joint_table(result: dict[str, Any]) -> Iterator[str]:
    """Yields what joint choices save a run against choosing one resource after the other."""
    policies = {
        name: {task["task"]: task for task in each["tasks"]}
        for name, each in result["policies"].items()
    }
    joint = [name for name in (OURS, "liang2022", "liang2022-local") if name in policies]
    apart = [name for name in INDEPENDENT if name in policies]
    if not joint or not apart:
        return
    planned = list(next(iter(result["policies"].values()))["median_bill_ratio"])[-1]
    yield (
        f"Saving on the median bill at {planned} planned runs, joint against independent choice; "
        "(missed deadlines and targets of joint / independent):"
    )
    yield ""
    pairs = [(one, other) for one in joint for other in apart]
    yield "| task | " + " | ".join(f"{one} against {other}" for one, other in pairs) + " |"
    yield "|---|" + "---|" * len(pairs)
    for task in policies[joint[0]]:
        cells = []
        for one, other in pairs:
            mine, theirs = policies[one][task], policies[other][task]
            missed = " / ".join(
                str(each["deadline_misses"] + each["target_misses"]) for each in (mine, theirs)
            )
            bills = [each["median_bill_ratio"][planned] for each in (mine, theirs)]
            cells.append(f"{_saving(*bills)} ({missed})")
        yield f"| {task} | {' | '.join(cells)} |"


def _saving(own: float | None, other: float | None) -> str:
    return "none" if own is None or other is None else f"{1 - own / other:.0%}"


def _range(each: dict[str, Any], planned: str) -> str:
    low, high = each["median_bill_ratio_interval"][planned]
    return f"{text(low)} to {text(high)}"


def figure(result: dict[str, Any], path: Path) -> None:
    """Draws each policy's median bill with its interval, where matplotlib is installed."""
    try:
        from matplotlib import figure as drawing
    except ModuleNotFoundError:
        print("no figure: pip install 'raycosttune[bench]' for matplotlib")
        return
    policies = result["policies"]
    planned = list(next(iter(policies.values()))["median_bill_ratio"])
    page = drawing.Figure(figsize=(8, 0.35 * len(policies) + 1.2), layout="constrained")
    axes = page.subplots()
    for shift, runs in enumerate(planned):
        points = [each["median_bill_ratio"][runs] or math.nan for each in policies.values()]
        places = np.arange(len(policies)) + 0.2 * (shift - 1)
        axes.plot(points, places, "o", markersize=4, label=f"{runs} planned runs")
        for place, each in zip(places, policies.values(), strict=True):
            low, high = each["median_bill_ratio_interval"][runs]
            if low is not None and high is not None:
                axes.plot([low, high], [place, place], color=f"C{shift}", linewidth=1)
    axes.set_yticks(range(len(policies)), list(policies))
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("bill over the oracle's: median, 95 % interval by workload")
    axes.axvline(1, color="grey", linewidth=0.5)
    axes.legend()
    page.savefig(path)


def main() -> None:
    """Merges files and prints their tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("files", nargs="+", type=Path)
    files: list[Path] = parser.parse_args().files
    results = [json.loads(path.read_text()) for path in files]
    merged = results[0]
    for result in results[1:]:
        merged["policies"] |= result["policies"]
    print(markdown(merged))
    figure(merged, files[0].with_suffix(".svg"))


if __name__ == "__main__":
    main()
