"""How every figure looks."""

import textwrap
from typing import Any

import plotly.graph_objects as go

# Told apart with colour-blind eyes, on white and on near-black (Okabe and Ito 2008, darkened).
BLUE, ORANGE, GREEN, RED, PURPLE, GREY, SLATE = (
    "#2f7fc1",
    "#d9820f",
    "#1f9e77",
    "#d1495b",
    "#a06cc4",
    "#808890",
    "#4f7f8f",
)
ENDS = {
    "reached": GREEN,
    "stopped": ORANGE,
    "finished": BLUE,
    "misnamed": RED,
    "failed": RED,
    "out_of_memory": PURPLE,
    "running": GREY,
    "broken_off": RED,
    "profile": SLATE,
}
SCALE = [[0.0, "#e8f1fa"], [0.5, "#6aa9dc"], [1.0, "#14507f"]]
LINE = 44  # characters, on a phone
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"


def drawn(*traces: Any, x: str, y: str, **layout: Any) -> go.Figure:  # noqa: ANN401 - plotly's own
    """Returns a figure of some traces.

    Args:
        traces: What is drawn.
        x: Title of the horizontal axis.
        y: Title of the vertical axis.
        layout: More of plotly's layout.
    """
    axis = {"automargin": True, "zeroline": False, "gridcolor": "rgba(128,136,144,0.25)"}
    options: dict[str, Any] = {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 13},
        "margin": {"l": 56, "r": 16, "t": 28, "b": 44},
        "height": 420,
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "namelength": -1},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
        **layout,
    }
    for name, title in (("xaxis", x), ("yaxis", y)):
        options[name] = {**axis, "title": {"text": title}, **options.get(name, {})}
    return go.Figure(data=[trace for trace in traces if trace is not None], layout=options)


def without_data(why: str) -> go.Figure:
    """Returns an empty figure that says why it is empty."""
    figure = drawn(x="", y="", height=120)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    lines = "<br>".join(textwrap.wrap(why, LINE))
    figure.add_annotation(text=lines, showarrow=False, x=0.5, y=0.5, xref="paper", yref="paper")
    return figure
