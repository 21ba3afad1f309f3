"""One page that shows a sweep, and needs nothing else to be opened."""

import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

import raycosttune
from raycosttune.core.figure import whole
from raycosttune.report.alt import alt_texts
from raycosttune.report.cost_time import plot_cost_against_time
from raycosttune.report.curves import plot_learning_curves
from raycosttune.report.given import of_sweep
from raycosttune.report.heat import plot_cost, plot_epoch_seconds, plot_epochs
from raycosttune.report.savings import savings
from raycosttune.report.text import plain
from raycosttune.report.thin import chosen
from raycosttune.report.timeline import plot_spend, plot_timeline
from raycosttune.report.view import Trial, View, to_data
from raycosttune.report.workers import plot_workers

ROWS = 500  # of a table
LEAST_PERCENT = 0.005  # that isn't rounded to nothing
UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


@dataclass(frozen=True)
class Shown:
    """Is a figure of the page.

    Attributes:
        name: Its id.
        title: Its heading.
        caption: How to read it.
        draw: Draws it.
    """

    name: str
    title: str
    caption: str
    draw: Callable[[View], go.Figure]


FIGURES = (
    Shown(
        "cost-time",
        "Cost against time",
        "Each point is a configuration; the dotted line joins those that none is both faster and "
        "cheaper than. Filled points are measured.",
        plot_cost_against_time,
    ),
    Shown(
        "cost",
        "Cost of a run",
        "Likely cost with the plan's recipe, without a plan with the best one; ● marks what is "
        "measured, ★ the plan. Bounds are in each cell's text.",
        plot_cost,
    ),
    Shown(
        "epoch-seconds",
        "Seconds of an epoch",
        "Likely seconds; ● marks what was timed, ★ the plan. Bounds rest on shape and slack alone.",
        plot_epoch_seconds,
    ),
    Shown(
        "epochs",
        "Epochs to the target",
        "Likely epochs by recipe and batch; ● marks what reached the target.",
        plot_epochs,
    ),
    Shown(
        "curves",
        "Learning curves",
        "The large mark is where a trial ended; a dotted line leads to where it is expected to "
        "reach the target.",
        plot_learning_curves,
    ),
    Shown(
        "timeline",
        "Timeline",
        "When each trial held its workers, and below the workers held in all.",
        plot_timeline,
    ),
    Shown("spend", "Spend", "What the search has spent, by what became of it.", plot_spend),
    Shown(
        "workers",
        "Workers",
        "Mean seconds of an epoch that each worker computed and waited, and its share of the "
        "batch over the epochs.",
        plot_workers,
    ),
)


@of_sweep
def render_page(sweep: View, *, default: tuple[int, int] | None = None) -> str:
    """Returns the page as HTML.

    Args:
        sweep: What there is to see.
        default: Workers and global batch that would have been run without a search.
    """
    environment = Environment(
        loader=PackageLoader("raycosttune.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        plain=plain, number=_number, whole=whole, percent=_percent, ended=_ended
    )
    source = environment.loader.get_source if environment.loader else None
    assert source is not None  # noqa: S101 - it was given above
    trials = chosen(sweep.trials, ROWS, lambda trial: trial.cost)
    return environment.get_template("page.html").render(
        sweep=sweep,
        figures=FIGURES,
        alts=alt_texts(sweep),
        trials=trials,
        choices=chosen(sweep.choices, ROWS, lambda choice: -choice.cost),
        savings=savings(sweep, default),
        reproduce=json.dumps(to_data(_reproduce(sweep)), indent=2),
        version=raycosttune.__version__,
        nonce=secrets.token_urlsafe(16),
        css=Markup(source(environment, "page.css")[0]),  # noqa: S704 - this package's own
        script=Markup(source(environment, "page.js")[0]),  # noqa: S704 - as above
        plotly=Markup(get_plotlyjs()),  # noqa: S704 - plotly's own
        island=_island(sweep),
    )


@of_sweep
def write_page(sweep: View, path: Path | str, *, default: tuple[int, int] | None = None) -> Path:
    """Writes the page.

    Args:
        sweep: What there is to see.
        path: The file; its folder must exist.
        default: See `render_page`.

    Returns:
        The file's full path.

    Raises:
        OSError: If it can't be written.
    """
    path = Path(path).expanduser().resolve()
    page = render_page(sweep, default=default)
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(page, encoding="utf-8")
    scratch.replace(path)
    return path


def _island(sweep: View) -> Markup:
    """Returns the figures as JSON in which nothing can end the script that holds it."""
    drawn = (f"{json.dumps(shown.name)}:{shown.draw(sweep).to_json()}" for shown in FIGURES)
    text = "{" + ",".join(drawn) + "}"
    for character, code in UNSAFE.items():
        text = text.replace(character, code)
    return Markup(text)  # noqa: S704 - escaped above


def _reproduce(sweep: View) -> dict[str, object]:
    goal = {key: value for key, value in asdict(sweep.goal).items() if value not in (None, ())}
    plan = None if sweep.plan is None else sweep.plan.config
    return {"goal": goal, "cost": sweep.unit, "plan": plan, "raycosttune": raycosttune.__version__}


def _ended(trial: Trial) -> str:
    end = trial.end.replace("_", " ")
    is_said = trial.reason.startswith(end) or not trial.reason
    return (trial.reason or end) if is_said else f"{end}: {trial.reason}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _percent(part: float, of: float) -> str:
    if not of > 0:
        return "-"
    return f"{part / of:.0%}" if part <= 0 or part / of >= LEAST_PERCENT else "<1%"
