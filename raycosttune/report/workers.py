"""What the workers of a trial did."""

import plotly.graph_objects as go

from raycosttune.report.given import of_sweep
from raycosttune.report.style import BLUE, GREY, ORANGE, drawn, without_data
from raycosttune.report.text import shown
from raycosttune.report.thin import every
from raycosttune.report.view import Trial, View

POINTS = 200
LINES = 16  # workers whose shares are drawn
MISSING = (
    "No trial reports its workers: use prepare_data_loader, prepare_model and RebalanceCallback."
)


def watched(sweep: View) -> Trial | None:
    """Returns the trial whose workers are shown: the plan's, else the longest that tells."""
    told = [trial for trial in sweep.trials if trial.measured is not None]
    plan = None if sweep.plan is None else sweep.plan.trial_id
    return max(told, key=lambda t: (t.trial_id == plan, t.workers > 1, t.seconds), default=None)


@of_sweep
def plot_workers(sweep: View, trial_id: str | None = None) -> go.Figure:
    """Draws each worker's seconds of an epoch, computing and idle, and its share of the batch.

    Args:
        sweep: What there is to see.
        trial_id: The trial; by default the plan's, else the longest that tells.
    """
    trial = watched(sweep) if trial_id is None else sweep.trial(trial_id)
    if trial is None or trial.measured is None:
        return without_data(MISSING)
    told = trial.measured
    size = len(told.shares[-1])
    names = [f"worker {rank}" for rank in range(size)]
    traces: list[go.Bar | go.Scatter] = [
        _bar(_mean(told.compute_seconds, size), "computing", BLUE),
        _bar(_mean(told.idle_seconds, size), "idle", ORANGE),
    ]
    places = every(range(len(told.epochs)), POINTS)
    for rank in every(range(size), LINES):
        shares = [told.shares[k] for k in places]
        traces.append(
            go.Scatter(
                x=[told.epochs[k] for k in places],
                y=[share[rank] if rank < len(share) else None for share in shares],
                mode="lines+markers",
                line={"color": GREY, "shape": "hv", "width": 1},
                marker={"size": 5},
                xaxis="x2",
                yaxis="y2",
                name=names[rank],
                showlegend=False,
                hovertemplate=f"{names[rank]}: %{{y:g}} samples, epoch %{{x:g}}<extra></extra>",
            )
        )
    figure = drawn(*traces, x="worker", y="seconds of an epoch", barmode="stack", height=480)
    figure.update_layout(
        xaxis={"domain": [0.0, 1.0], "anchor": "y", "type": "category"},
        yaxis={"domain": [0.6, 1.0]},
        xaxis2={
            "title": {"text": "epochs"},
            "anchor": "y2",
            "automargin": True,
            "gridcolor": "rgba(128,136,144,0.25)",
        },
        yaxis2={
            "domain": [0.0, 0.38],
            "title": {"text": "samples of a batch"},
            "gridcolor": "rgba(128,136,144,0.25)",
            "rangemode": "tozero",
            "automargin": True,
        },
        title={"text": shown(trial.what, 80), "font": {"size": 14}, "y": 0.99},
        margin={"t": 48},
    )
    return figure


def _mean(rows: tuple[tuple[float, ...], ...], size: int) -> list[float]:
    """Averages over the epochs that ran on as many workers as the last."""
    same = [row for row in rows if len(row) == size] or [(0.0,) * size]
    return [sum(row[rank] for row in same) / len(same) for rank in range(size)]


def _bar(seconds: list[float], name: str, color: str) -> go.Bar:
    return go.Bar(
        x=[str(rank) for rank in range(len(seconds))],
        y=seconds,
        name=name,
        marker={"color": color},
        hovertemplate=f"worker %{{x}}: %{{y:.3g}} s {name}<extra></extra>",
    )
