"""Learning curves."""

from collections.abc import Sequence

import plotly.graph_objects as go

from raycosttune.report.given import of_sweep
from raycosttune.report.style import ENDS, GREEN, GREY, RED, drawn, without_data
from raycosttune.report.text import plain, shown
from raycosttune.report.thin import chosen, every, quantiles
from raycosttune.report.view import Trial, View

CURVES = 40
POINTS = 200
BAND_FROM = 100  # trials


@of_sweep
def plot_learning_curves(sweep: View) -> go.Figure:
    """Draws the metric over epochs, where each trial ended and why, and where it was going.

    Of many trials those that came nearest to the target are drawn, and of all of them the
    tenth, the half and the nine tenths. A dotted line leads from the end of a trial that has
    not reached the target to the epochs that it is expected to need.

    Args:
        sweep: What there is to see.
    """
    told = [trial for trial in sweep.trials if any(v is not None for v in trial.values)]
    if not told:
        return without_data("No trial has reported the metric yet.")
    drawn_ones = chosen(told, CURVES, lambda trial: _rank(sweep, trial))
    traces: list[go.Scatter] = _band(told) if len(told) > BAND_FROM else []
    seen: set[str] = set()
    for trial in drawn_ones:
        traces.append(_curve(trial, is_new=trial.end not in seen))
        seen.add(trial.end)
    traces += [trace for trial in drawn_ones if (trace := _ahead(sweep, trial)) is not None]
    figure = drawn(*traces, x="epochs", y=shown(sweep.goal.metric or "metric", 60))
    figure.add_hline(
        sweep.goal.target,
        line={"color": RED, "dash": "dash", "width": 2},
        annotation={"text": f"target {sweep.goal.target:g}"},
        annotation_position="bottom right",
    )
    figure.update_xaxes(rangemode="tozero")
    return figure


def _rank(sweep: View, trial: Trial) -> float:
    if sweep.plan is not None and trial.trial_id == sweep.plan.trial_id:
        return float("inf")
    best = max(sweep.goal.sign * value for value in trial.values if value is not None)
    return best + (1e6 if trial.is_running else 0.0)


def _points(trial: Trial) -> list[tuple[float, float]]:
    pairs = zip(trial.epochs, trial.values, strict=True)
    return every([(epoch, value) for epoch, value in pairs if value is not None], POINTS)


def _curve(trial: Trial, *, is_new: bool) -> go.Scatter:
    points, color = _points(trial), ENDS.get(trial.end, GREY)
    end = plain(trial.reason or trial.end.replace("_", " "))
    return go.Scatter(
        x=[epoch for epoch, _ in points],
        y=[value for _, value in points],
        mode="lines+markers",
        line={"color": color, "width": 2},
        marker={"size": [4] * (len(points) - 1) + [10], "color": color},
        name=trial.end.replace("_", " "),
        legendgroup=trial.end,
        showlegend=is_new,
        text=[
            f"{shown(trial.trial_id, 60)}: {shown(trial.what)}<br>epoch {epoch:g}, {value:.4g}"
            f"<br>{shown(end, 120)}"
            for epoch, value in points
        ],
        hoverinfo="text",
    )


def _ahead(sweep: View, trial: Trial) -> go.Scatter | None:
    """Draws where a trial was going."""
    points = _points(trial)
    if trial.reached is not None or trial.expected is None or trial.expected <= points[-1][0]:
        return None
    return go.Scatter(
        x=[points[-1][0], trial.expected],
        y=[points[-1][1], sweep.goal.target],
        mode="lines",
        line={"color": ENDS.get(trial.end, GREY), "width": 1, "dash": "dot"},
        legendgroup=trial.end,
        showlegend=False,
        text=[f"{shown(trial.what)}<br>expected at the target after {trial.expected:.3g} epochs"]
        * 2,
        hoverinfo="text",
    )


def _band(trials: Sequence[Trial]) -> list[go.Scatter]:
    epochs, values = quantiles(trials, POINTS)
    low, middle, high = ([each[k] for each in values] for k in range(3))
    line = {"width": 0, "color": GREY}
    fill = "rgba(128,136,144,0.2)"
    name = f"tenth to nine tenths of {len(trials)} trials"
    return [
        go.Scatter(x=epochs, y=low, mode="lines", line=line, showlegend=False, hoverinfo="skip"),
        go.Scatter(
            x=epochs,
            y=high,
            mode="lines",
            line=line,
            fill="tonexty",
            fillcolor=fill,
            name=name,
            hoverinfo="skip",
        ),
        go.Scatter(
            x=epochs,
            y=middle,
            mode="lines",
            line={"color": GREEN, "dash": "dash"},
            name="half",
            hovertemplate="half of the trials: %{y:.4g}<extra></extra>",
        ),
    ]
