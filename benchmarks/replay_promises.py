"""What replayed sweeps of ours promised, and how much of it is so."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def certificates(rows: Sequence[dict[str, Any]]) -> dict[str, float] | None:
    """Returns how many certificates hold, and their median gap; None where there are none."""
    given = [row for row in rows if "gap" in row]
    if not given:
        return None
    holds = float(np.mean([row["certificate_holds"] for row in given]))
    return {"hold": holds, "median_gap": float(np.median([row["gap"] for row in given]))}


def promises_table(result: dict[str, Any]) -> Iterator[str]:
    """Yields what ours promises, and how much of it is so."""
    promising = {
        name: each
        for name, each in result["policies"].items()
        if any(each.get("certificates", {}).values())
    }
    if not promising:
        return
    yield "| policy | planned runs | certificates that hold | median certified gap |"
    yield "|---|---|---|---|"
    for name, each in promising.items():
        for planned, found in each["certificates"].items():
            if found is not None:
                yield f"| {name} | {planned} | {found['hold']:.1%} | {found['median_gap']:.0%} |"
        kept, regret = each["kept_deadline_and_target"], each["regret_at_most_5_percent"]
        yield ""
        yield f"{name}: deadline and target kept in {kept:.1%}, regret at most 5 % in {regret:.1%}."
