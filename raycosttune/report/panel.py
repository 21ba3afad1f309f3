"""A glance as a panel in a terminal, or as plain lines where there is none."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from raycosttune.core.figure import counted, whole
from raycosttune.core.prediction import Prediction
from raycosttune.report.glance import Best, Glance, Running, told
from raycosttune.report.text import plain

MOST_RUNNING = 6
SIZES = ((MOST_RUNNING, False), (MOST_RUNNING, True), (2, True))  # of a panel, the largest first
BAR = 24  # characters


def fitted(glance: Glance, console: Console) -> RenderableType:
    """Draws a glance so that the terminal holds it: with fewer words where it is low."""
    for most, is_brief in SIZES:
        drawn = panel(glance, most, is_brief=is_brief)
        if len(console.render_lines(drawn)) < console.height:
            break
    return drawn


def panel(glance: Glance, most: int = MOST_RUNNING, *, is_brief: bool = False) -> RenderableType:
    """Draws a glance; names and words of a user's are taken as text.

    Args:
        glance: What there is to see.
        most: Running trials that are drawn; more are counted.
        is_brief: Whether to leave out why they were started, and which one ended last.
    """
    rows = Table.grid(padding=(0, 2), expand=True)
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(ratio=1, overflow="fold")
    for name, value in _rows(glance, most, is_brief=is_brief):
        rows.add_row(name, value)
    title = Text.assemble(("raycosttune ", "bold"), plain(glance.name, 60))
    return Panel(rows, title=title, title_align="left", border_style="cyan", padding=(0, 1))


def _rows(glance: Glance, most: int, *, is_brief: bool) -> Iterator[tuple[str, RenderableType]]:
    yield "spent", _spent(glance)
    if glance.goal.sweep_deadline_seconds is not None:
        limit = glance.goal.sweep_deadline_seconds
        text = f"{_clock(glance.elapsed_seconds)} of {_clock(limit)}"
        yield "time", _bar(glance.elapsed_seconds, limit, text)
    else:
        yield "time", Text(f"{_clock(glance.elapsed_seconds)}, no deadline of the sweep")
    yield "best", Text(_best(glance))
    for k, running in enumerate(glance.running[:most]):
        why = "" if is_brief else _why(running)
        yield ("runs" if k == 0 else ""), Text(plain(told(running, glance.goal))).append(why, "dim")
    more = len(glance.running) - most
    if more > 0:
        yield "", Text(f"and {more} more", "dim")
    if glance.profiles:
        yield "runs", Text(counted(glance.profiles, "profile") + " of step time")
    if glance.last and not is_brief:
        yield "last", Text(plain(glance.last))
    name, _, rest = glance.ahead.partition(": ")
    yield name, Text(plain(rest))
    if glance.to_come:
        yield "to come", Text(glance.to_come)
    yield "trials", Text(_trials(glance))


def _why(running: Running) -> str:
    told_why = [f"it {running.why}"] if running.why else []
    lines = [*told_why, running.moved] if running.moved else told_why
    return "".join(f"\n{plain(line)}" for line in lines)


def _spent(glance: Glance) -> RenderableType:
    budget, unit = glance.goal.sweep_budget, plain(glance.unit, 40)
    if budget is None:
        return Text(f"{glance.spent:.3g} {unit}, no budget")
    left = max(budget - glance.spent, 0.0)
    text = f"{glance.spent:.3g} of {budget:.3g} {unit}, {left:.3g} left"
    return _bar(glance.spent, budget, text)


def _bar(part: float, whole_: float, text: str) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_row(ProgressBar(total=whole_, completed=min(part, whole_), width=BAR), Text(text))
    return Group(grid)


def _best(glance: Glance) -> str:
    if glance.best is None:
        return f"none yet: {plain(glance.nothing)}"
    return best_words(glance.best, glance.unit, glance.goal.deadline_seconds)


def best_words(best: Best, unit: str, deadline: float | None) -> str:
    """Says the best so far, with its intervals and what could still be saved."""
    limit = "" if deadline is None else f" of {whole(deadline)} s"
    return (
        f"{plain(best.what)}: {_within(best.cost)} {plain(unit, 40)}, "
        f"{whole(best.seconds.mid)} s{limit}; {best.saving}"
    )


def _within(value: Prediction) -> str:
    return f"{value.mid:.3g} ({value.low:.3g} to {value.high:.3g})"


def _trials(glance: Glance) -> str:
    ends = ", ".join(f"{count} {end.replace('_', ' ')}" for end, count in glance.ends.items())
    count, held = len(glance.running), counted(glance.workers, "worker")
    live = f"{count} running on {held}" if count else "none running"
    return ", ".join(part for part in (f"{glance.trials} started", live, ends) if part)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
