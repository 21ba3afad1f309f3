"""Cost against time."""

from collections.abc import Sequence

import plotly.graph_objects as go

from raycosttune.core.figure import whole
from raycosttune.report.given import of_sweep
from raycosttune.report.style import BLUE, GREEN, GREY, RED, drawn, without_data
from raycosttune.report.text import shown
from raycosttune.report.view import Choice, View


@of_sweep
def plot_cost_against_time(sweep: View) -> go.Figure:
    """Draws what each configuration costs and takes, the deadline, and the Pareto front.

    The front joins the configurations that none is both faster and cheaper than; an untried one
    is drawn where it is predicted to be.

    Args:
        sweep: What there is to see; `read_sweep` reads it.
    """
    if not sweep.choices:
        return without_data("No run has reached the target.")
    unit = shown(sweep.unit)
    figure = drawn(
        _front(sweep),
        _points(sweep, "predicted", [c for c in sweep.choices if not c.is_measured], GREY),
        _points(
            sweep, "measured", [c for c in sweep.choices if c.is_measured and not c.is_plan], BLUE
        ),
        _points(sweep, "the plan", [c for c in sweep.choices if c.is_plan], GREEN),
        x="seconds to the target",
        y=f"{unit} a run",
    )
    limit = sweep.goal.deadline_seconds
    if limit is not None:
        figure.add_vline(
            limit,
            line={"color": RED, "dash": "dash", "width": 2},
            annotation={"text": f"deadline {limit:g} s", "yanchor": "top"},
            annotation_position="top right",
        )
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(rangemode="tozero")
    return figure


def _front(sweep: View) -> go.Scatter:
    best = sorted((c for c in sweep.choices if c.is_best), key=lambda c: c.seconds)
    return go.Scatter(
        x=[c.seconds for c in best],
        y=[c.cost for c in best],
        mode="lines",
        line={"shape": "hv", "color": GREY, "width": 1, "dash": "dot"},
        name="Pareto front",
        hoverinfo="skip",
    )


def _points(sweep: View, name: str, choices: Sequence[Choice], color: str) -> go.Scatter | None:
    if not choices:
        return None
    is_plan = name == "the plan"
    return go.Scatter(
        x=[c.seconds for c in choices],
        y=[c.cost for c in choices],
        mode="markers",
        marker={
            "color": color,
            "size": 16 if is_plan else 9,
            "symbol": "star" if is_plan else "circle-open" if name == "predicted" else "circle",
        },
        name=name,
        hovertext=[_told(sweep, choice) for choice in choices],
        hoverinfo="text",
    )


def _told(sweep: View, choice: Choice) -> str:
    where = "the plan" if choice.is_plan else "measured" if choice.is_measured else "predicted"
    told = f"{choice.cost:.3g} {shown(sweep.unit)}, {whole(choice.seconds)} s, {where}"
    return f"{shown(choice.what)}<br>{told}"
