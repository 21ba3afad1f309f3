"""What replayed sweeps promised, and what they could have kept."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def finite(value: float) -> float | None:
    """Returns a rounded number, None for infinite ones."""
    return round(float(value), 4) if math.isfinite(value) else None


def text(value: float | None) -> str:
    """Returns what a table shows."""
    return "none" if value is None else f"{value:.2f}"


def certificates(rows: Sequence[dict[str, Any]]) -> dict[str, float] | None:
    """Returns how many certificates and likely savings hold, and their medians, if there are any.

    Args:
        rows: Those of one policy and number of planned runs.
    """
    given = [row for row in rows if "gap" in row]
    if not given:
        return None
    found = {
        "hold": float(np.mean([row["certificate_holds"] for row in given])),
        "median_gap": float(np.median([row["gap"] for row in given])),
    }
    if likely := [row for row in given if "likely" in row]:
        found["likely_hold"] = float(np.mean([row["likely_holds"] for row in likely]))
        found["median_likely"] = float(np.median([row["likely"] for row in likely]))
    return found


def over_careful(rows: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """Returns bills and regrets over the cheapest cell that keeps the deadline when noisy."""
    careful = np.array([row["careful"] for row in rows])
    bills = np.array([row["ratio"] for row in rows]) / careful
    regrets = (1 + np.array([row["regret"] for row in rows])) / careful - 1
    return {
        "median_bill": finite(np.median(bills)),
        "p90_bill": finite(np.quantile(bills, 0.9, method="inverted_cdf")),
        "regret_at_most_5_percent": float(np.mean(regrets <= 0.05 + 1e-9)),
    }


def careful_table(result: dict[str, Any]) -> Iterator[str]:
    """Yields the bills over the cheapest cell that keeps the deadline when noisy."""
    yield (
        "Over the cheapest cell that is in time in 95 % of its own runs, which the oracle's need "
        "not be:"
    )
    yield ""
    yield "| policy | planned runs | median bill | 90 % of bills | regret at most 5 % |"
    yield "|---|---|---|---|---|"
    for name, each in result["policies"].items():
        for planned, found in each.get("over_careful", {}).items():
            bills = f"{text(found['median_bill'])} | {text(found['p90_bill'])}"
            yield f"| {name} | {planned} | {bills} | {found['regret_at_most_5_percent']:.0%} |"


def promises_table(result: dict[str, Any]) -> Iterator[str]:
    """Yields what ours promises, and how much of it is so."""
    promising = {
        name: each
        for name, each in result["policies"].items()
        if any(each.get("certificates", {}).values())
    }
    if not promising:
        return
    columns = "certificates that hold | median certified gap | likely ones that hold | median"
    yield f"| policy | planned runs | {columns} |"
    yield "|---|---|---|---|---|---|"
    for name, each in promising.items():
        for planned, found in each["certificates"].items():
            if found is not None:
                sure = f"{found['hold']:.1%} | {found['median_gap']:.0%}"
                likely = f"{found['likely_hold']:.1%} | {found['median_likely']:.0%}"
                yield f"| {name} | {planned} | {sure} | {likely} |"
        kept, regret = each["kept_deadline_and_target"], each["regret_at_most_5_percent"]
        yield ""
        yield f"{name}: deadline and target kept in {kept:.1%}, regret at most 5 % in {regret:.1%}."
