"""Heat maps of what is known over workers, batches and recipes."""

import math
from collections.abc import Callable, Mapping

import plotly.graph_objects as go

from raycosttune.core.figure import counted, of_type
from raycosttune.core.prediction import Prediction
from raycosttune.report.given import of_sweep
from raycosttune.report.style import SCALE, drawn, without_data
from raycosttune.report.text import shown
from raycosttune.report.view import Cell, View

LABEL = 24  # characters of a recipe beside a row
LABELLED = 12  # columns that leave room for a number in each
MARK, STAR, PLAN = "●", "★", "the plan"


@of_sweep
def plot_epoch_seconds(sweep: View) -> go.Figure:
    """Draws the seconds of an epoch, T, over workers and batch; cells that were timed are marked.

    Args:
        sweep: What there is to see.
    """
    found = {cell: cell.epoch_seconds for cell in sweep.cells if cell.epoch_seconds}
    return _grid(sweep, found, "s an epoch", lambda cell: cell.is_timed, "timed")


@of_sweep
def plot_cost(sweep: View) -> go.Figure:
    """Draws the cost of a run to the target over workers and batch, as `plot_epoch_seconds`.

    Args:
        sweep: What there is to see.
    """
    found = {cell: cell.cost for cell in sweep.cells if cell.cost}
    what = f"{shown(sweep.unit)} a run"
    return _grid(sweep, found, what, lambda cell: cell.is_measured, "measured")


@of_sweep
def plot_epochs(sweep: View) -> go.Figure:
    """Draws the epochs to the target, E, over batches and recipes; measured ones are marked.

    Args:
        sweep: What there is to see.
    """
    if not sweep.needs:
        return without_data("No trial has reported yet.")
    recipes = list(dict.fromkeys(need.recipe for need in sweep.needs))
    values = {(str(n.batch_size), n.recipe): n.epochs for n in sweep.needs}
    marked = {(str(n.batch_size), n.recipe): "measured" for n in sweep.needs if n.is_measured}
    rows = {recipe: shown(recipe, LABEL) or "all runs" for recipe in recipes}
    return _map(
        values,
        marked,
        rows,
        "epochs",
        ("batch", ""),
        lambda x, y: f"batch {x}{f', {shown(y)}' if y else ''}",
    )


def _grid(
    sweep: View,
    found: Mapping[Cell, Prediction],
    what: str,
    is_marked: Callable[[Cell], bool],
    mark: str,
) -> go.Figure:
    if not found:
        return without_data("Nothing is measured yet.")
    values = {(str(c.batch_size), _row(c.workers, c.node_type)): p for c, p in found.items()}
    marked = {
        (str(c.batch_size), _row(c.workers, c.node_type)): mark for c in found if is_marked(c)
    }
    held = sorted({(cell.node_type, cell.workers) for cell in sweep.cells})
    rows = {_row(n, kind): shown(_row(n, kind), LABEL) for kind, n in held}
    if sweep.plan is not None:
        own = sweep.plan.config
        row = _row(own["workers"], str(own.get("node_type", "")))
        marked[str(own["batch_size"]), row] = PLAN
    counts = {_row(n, kind): f"{counted(n, 'worker')}{of_type(kind)}" for kind, n in held}
    return _map(
        values,
        marked,
        rows,
        what,
        ("batch", "workers"),
        lambda x, y: f"{shown(counts[y])}, batch {x}",
    )


def _row(workers: object, node_type: str) -> str:
    return f"{workers}{of_type(node_type)}"


def _map(
    values: Mapping[tuple[str, str], Prediction],
    marked: Mapping[tuple[str, str], str],
    rows: Mapping[str, str],
    what: str,
    titles: tuple[str, str],
    named: Callable[[str, str], str],
) -> go.Figure:
    columns = sorted({x for x, _ in values}, key=int)
    labels = _apart(rows)
    z = [[_mid(values.get((x, y))) for x in columns] for y in rows]
    is_wide = len(columns) > LABELLED
    told = [
        [_told(values.get((x, y)), named(x, y), what, marked.get((x, y), "")) for x in columns]
        for y in rows
    ]
    heat = go.Heatmap(
        x=columns,
        y=[labels[y] for y in rows],
        z=[[None if value is None else math.log10(value) for value in row] for row in z],
        text=[
            [_label(values.get((x, y)), marked.get((x, y), ""), is_wide=is_wide) for x in columns]
            for y in rows
        ],
        texttemplate="%{text}",
        hovertext=told,
        hoverinfo="text",
        colorscale=SCALE,
        showscale=False,
        xgap=2,
        ygap=2,
        name=what,
    )
    figure = drawn(heat, x=titles[0], y=titles[1], height=180 + 44 * len(rows))
    figure.update_xaxes(type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    return figure


def _apart(rows: Mapping[str, str]) -> dict[str, str]:
    """Gives rows whose labels look alike a number each, so that none covers another."""
    seen: dict[str, int] = {}
    labels = {}
    for key, label in rows.items():
        seen[label] = seen.get(label, 0) + 1
        labels[key] = label if seen[label] == 1 else f"{label} ({seen[label]})"
    return labels


def _mid(value: Prediction | None) -> float | None:
    return None if value is None or not (0 < value.mid < math.inf) else value.mid


def _label(value: Prediction | None, mark: str, *, is_wide: bool) -> str:
    number = "" if is_wide or _mid(value) is None or value is None else f"{value.mid:.3g}"
    return f"{STAR if mark == PLAN else MARK if mark else ''} {number}".strip()


def _told(value: Prediction | None, name: str, what: str, mark: str) -> str:
    if value is None:
        return f"{name}<br>not a legal choice"
    high = f"{value.high:.3g}" if math.isfinite(value.high) else "any"
    bounds = f"{value.mid:.3g} {what}, bounds {value.low:.3g} to {high}"
    return f"{name}<br>{bounds}{f', {mark}' if mark else ''}"
