"""The figures in words, for those who can't see them."""

import math

from raycosttune.core.figure import counted, whole
from raycosttune.report.text import plain
from raycosttune.report.view import View
from raycosttune.report.workers import watched


def alt_texts(sweep: View) -> dict[str, str]:
    """Returns what each figure of the page shows, by its name."""
    return {
        "cost-time": _choices(sweep),
        "cost": _cells(sweep, "cost"),
        "epoch-seconds": _cells(sweep, "epoch_seconds"),
        "epochs": f"Heat map of epochs to the target for {counted(len(sweep.needs), 'pair')} of "
        f"recipe and batch, {sum(n.is_measured for n in sweep.needs)} measured.",
        "curves": _curves(sweep),
        "timeline": f"Bars of {counted(len(sweep.trials), 'trial')} over "
        f"{whole(sweep.elapsed_seconds)} seconds.",
        "spend": f"Spend rising to {sweep.spent:.3g} {plain(sweep.unit)} over "
        f"{whole(sweep.elapsed_seconds)} seconds.",
        "workers": _workers(sweep),
    }


def _choices(sweep: View) -> str:
    best = [choice for choice in sweep.choices if choice.is_best]
    if not best:
        return "Empty: no run has reached the target."
    points = "; ".join(
        f"{plain(c.what, 80)}: {whole(c.seconds)} s, {c.cost:.3g} {plain(sweep.unit)}"
        for c in best[:6]
    )
    return f"Scatter of {counted(len(sweep.choices), 'configuration')}. On the front: {points}."


def _cells(sweep: View, what: str) -> str:
    found = [value for cell in sweep.cells if (value := getattr(cell, what)) is not None]
    name, unit = ("cost of a run", plain(sweep.unit)) if what == "cost" else ("epoch time", "s")
    finite = [value.mid for value in found if math.isfinite(value.mid)]
    if not finite:
        return f"Empty: no {name} is measured yet."
    return (
        f"Heat map of the likely {name} over workers and batch in "
        f"{counted(len(found), 'cell')}, from {min(finite):.3g} to {max(finite):.3g} {unit}."
    )


def _curves(sweep: View) -> str:
    reached = sum(trial.reached is not None for trial in sweep.trials)
    metric = plain(sweep.goal.metric or "the metric", 60)
    return (
        f"Curves of {metric} over epochs; {reached} of {counted(len(sweep.trials), 'trial')} "
        f"reached {sweep.goal.target:g}."
    )


def _workers(sweep: View) -> str:
    trial = watched(sweep)
    if trial is None or trial.measured is None:
        return "Empty: no trial reports what its workers did."
    last = trial.measured.shares[-1]
    shares = ", ".join(f"{share:g}" for share in last[:16])
    return f"Bars of compute and idle seconds of {counted(len(last), 'worker')}; shares {shares}."
