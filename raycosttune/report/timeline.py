"""What ran when, on how many workers, and what it cost."""

from collections.abc import Iterator, Sequence

import plotly.graph_objects as go

from raycosttune.core.figure import counted, whole
from raycosttune.report.style import BLUE, ENDS, GREEN, GREY, RED, drawn, without_data
from raycosttune.report.text import shown
from raycosttune.report.thin import chosen, every
from raycosttune.report.view import Trial, View

BARS = 500
STEPS = 2000
THICKEST, THINNEST = 14, 2
SHORTEST = 150  # part of the whole width that a bar has at least


def plot_timeline(sweep: View) -> go.Figure:
    """Draws when each trial held its workers, how it ended, and the workers held in all.

    Args:
        sweep: What there is to see.
    """
    trials = [trial for trial in sweep.trials if trial.held]
    if not trials:
        return without_data("No trial has started yet.")
    bars = chosen(trials, BARS, lambda trial: trial.cost)
    height = max(THINNEST, min(THICKEST, 240 / len(bars)))
    least = sweep.elapsed_seconds / SHORTEST
    traces = [
        _bars(end, [(row, t) for row, t in enumerate(bars, 1) if t.end == end], height, least)
        for end in dict.fromkeys(trial.end for trial in bars)
    ]
    moments, workers = _committed(trials)
    area = go.Scatter(
        x=moments,
        y=workers,
        mode="lines",
        line={"shape": "hv", "color": BLUE},
        fill="tozeroy",
        fillcolor="rgba(47,127,193,0.25)",
        name="workers held",
        yaxis="y2",
        hovertemplate="%{y} workers held<extra></extra>",
        showlegend=False,
    )
    figure = drawn(*traces, area, x="seconds since the sweep began", y="trial", height=460)
    figure.update_layout(
        xaxis={"anchor": "y2"},
        yaxis={"domain": [0.36, 1.0], "autorange": "reversed", "showticklabels": False},
        yaxis2={
            "domain": [0.0, 0.28],
            "title": {"text": "workers held"},
            "rangemode": "tozero",
            "gridcolor": "rgba(128,136,144,0.25)",
            "automargin": True,
        },
    )
    return figure


def _bars(end: str, rows: Sequence[tuple[int, Trial]], width: float, least: float) -> go.Scatter:
    x: list[float | None] = []
    y: list[int | None] = []
    told: list[str] = []
    for row, trial in rows:
        for held in trial.held:
            end_at = max(held.end, held.start + least)  # so that a short one can be seen
            x += [held.start, (held.start + end_at) / 2, end_at, None]
            y += [row, row, row, None]
            told += [_told(trial, held.workers)] * 3 + [""]
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        line={"width": width, "color": ENDS.get(end, GREY)},
        name=end.replace("_", " "),
        hovertext=told,
        hoverinfo="text",
    )


def _told(trial: Trial, workers: int) -> str:
    why = shown(trial.reason or trial.end.replace("_", " "), 120)
    return (
        f"{shown(trial.trial_id, 60)}: {shown(trial.what)}<br>{counted(workers, 'worker')} held, "
        f"{whole(trial.seconds)} s in all<br>{why}"
    )


def _committed(trials: Sequence[Trial]) -> tuple[list[float], list[int]]:
    """Returns when the workers held in all change, and to what."""
    changes: dict[float, int] = {0.0: 0}
    for trial in trials:
        for held in trial.held:
            changes[held.start] = changes.get(held.start, 0) + held.workers
            changes[held.end] = changes.get(held.end, 0) - held.workers
    total, steps = 0, []
    for moment in sorted(changes):
        total += changes[moment]
        steps.append((moment, total))
    kept = every(steps, STEPS)
    return [moment for moment, _ in kept], [workers for _, workers in kept]


def plot_spend(sweep: View) -> go.Figure:
    """Draws what the search has spent over time, by what became of it, and its budget.

    Args:
        sweep: What there is to see.
    """
    if not any(trial.cost > 0 for trial in sweep.trials):
        return without_data("Nothing is spent yet.")
    ends = list(dict.fromkeys(trial.end for trial in sweep.trials))
    steps = every(_cumulated(sweep, ends), STEPS)
    traces = [
        go.Scatter(
            x=[moment for moment, _ in steps],
            y=[spent[k] for _, spent in steps],
            mode="lines",
            line={"shape": "hv", "color": ENDS.get(end, GREY)},
            stackgroup="spent",
            name=end.replace("_", " "),
            hovertemplate=f"{end.replace('_', ' ')}: %{{y:.3g}} at %{{x:.0f}} s<extra></extra>",
        )
        for k, end in enumerate(ends)
    ]
    figure = drawn(*traces, x="seconds since the sweep began", y=f"{shown(sweep.unit)} spent")
    for level, text, color in _levels(sweep):
        figure.add_hline(
            level,
            line={"color": color, "dash": "dash", "width": 2},
            annotation={"text": text},
            annotation_position="top left",
        )
    return figure


def _levels(sweep: View) -> Iterator[tuple[float, str, str]]:
    if sweep.goal.sweep_budget is not None:
        yield sweep.goal.sweep_budget, "budget of the sweep", RED
    if sweep.plan is not None:
        yield sweep.plan.cost.mid, "one run of the plan", GREEN


def _cumulated(sweep: View, ends: Sequence[str]) -> list[tuple[float, list[float]]]:
    """Adds up what trials cost by their ends, each when it last held workers."""
    moments = [(t.held[-1].end if t.held else 0.0, ends.index(t.end), t.cost) for t in sweep.trials]
    spent = [0.0] * len(ends)
    steps = [(0.0, list(spent))]
    for moment, place, cost in sorted(moments):
        spent[place] += cost
        steps.append((moment, list(spent)))
    steps.append((max(sweep.elapsed_seconds, steps[-1][0]), list(spent)))
    return steps
