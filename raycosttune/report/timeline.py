"""What ran when, on how many workers, and what it cost."""

from collections.abc import Iterator, Sequence

import plotly.graph_objects as go

from raycosttune.core.figure import counted, whole
from raycosttune.report.given import of_sweep
from raycosttune.report.style import BLUE, ENDS, GREEN, GREY, RED, drawn, without_data
from raycosttune.report.text import shown
from raycosttune.report.thin import chosen, every
from raycosttune.report.view import Held, Trial, View

BARS = 500
STEPS = 2000
THICKEST, THINNEST = 14, 2
PROFILE = "profile"
SHORTEST = 150  # part of the whole width that a bar has at least


@of_sweep
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
    profiles = [held for profile in sweep.profiles for held in profile.held]
    moments, workers = _committed([*profiles, *(held for t in trials for held in t.held)])
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


def _committed(stretches: Sequence[Held]) -> tuple[list[float], list[int]]:
    """Returns when the workers held in all change, and to what."""
    changes: dict[float, int] = {0.0: 0}
    for held in stretches:
        changes[held.start] = changes.get(held.start, 0) + held.workers
        changes[held.end] = changes.get(held.end, 0) - held.workers
    total, steps = 0, []
    for moment in sorted(changes):
        total += changes[moment]
        steps.append((moment, total))
    kept = every(steps, STEPS)
    return [moment for moment, _ in kept], [workers for _, workers in kept]


@of_sweep
def plot_spend(sweep: View) -> go.Figure:
    """Draws what the search has spent over time, by what became of it, and its budget.

    Args:
        sweep: What there is to see.
    """
    if not any(cost > 0 for _, _, cost in _paid(sweep)):
        return without_data("Nothing is spent yet.")
    paid = _paid(sweep)
    ends = list(dict.fromkeys(end for end, _, _ in paid))
    steps = every(_spent(paid, ends), STEPS)
    traces = [
        go.Scatter(
            x=[moment for moment, _ in steps],
            y=[spent[k] for _, spent in steps],
            mode="lines",
            line={"color": ENDS.get(end, GREY)},
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


def _paid(sweep: View) -> Sequence[tuple[str, Sequence[Held], float]]:
    """Returns the end, the stretches of time and the cost of each trial and profile."""
    trials = [(trial.end, trial.held, trial.cost) for trial in sweep.trials]
    return trials + [(PROFILE, profile.held, profile.cost) for profile in sweep.profiles]


def _spent(
    paid: Sequence[tuple[str, Sequence[Held], float]], ends: Sequence[str]
) -> list[tuple[float, list[float]]]:
    """Adds up what was paid by its end, each evenly from its first to its last second."""
    changes: list[tuple[float, int, float, float]] = []  # moment, place, of the slope, at once
    for end, held, cost in paid:
        place, start = ends.index(end), held[0].start if held else 0.0
        seconds = held[-1].end - start if held else 0.0
        if seconds > 0:
            changes.append((start, place, cost / seconds, 0.0))
            changes.append((start + seconds, place, -cost / seconds, 0.0))
        else:
            changes.append((start, place, 0.0, cost))
    now, slopes, spent = 0.0, [0.0] * len(ends), [0.0] * len(ends)
    steps = [(0.0, list(spent))]
    for moment, place, slope, cost in sorted(changes):
        spent = [so_far + rate * (moment - now) for so_far, rate in zip(spent, slopes, strict=True)]
        now, slopes[place], spent[place] = moment, slopes[place] + slope, spent[place] + cost
        steps.append((now, list(spent)))
    return steps
