"""The command `watch`."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from raycosttune.commands.options import of_coming_run, opened
from raycosttune.commands.plan import NO_PLAN

if TYPE_CHECKING:
    from raycosttune.report.glance import Glance  # takes a second
    from raycosttune.report.run import Run

PATIENCE = 2.0  # times what reading takes lies between two readings
WAIT_SECONDS, WAIT_STEP = 60.0, 0.2  # for a sweep to begin


@click.command("watch")
@of_coming_run
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="Seconds between two looks.",
)
@click.option("--once", is_flag=True, help="Look once.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    help="Seconds to wait for the sweep to begin.  [default: 60, with --once 0]",
)
@click.option("--json", "as_json", is_flag=True, help="Print an object a line at each change.")
def watch_command(
    run: Path,
    *,
    every: float,
    once: bool,
    wait: float | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Shows a running sweep from its journal until it ends: a panel, or lines without a terminal.

    RUN is a sweep's folder, which need not be there yet: Tune makes it when the sweep begins.
    Exits as `raycosttune plan` does: with 0 where there is a plan.
    """
    from raycosttune.report.screen import Screen  # noqa: PLC0415 - takes a second
    from raycosttune.report.text import visible  # noqa: PLC0415 - as above

    _wait_for(run, (0.0 if once else WAIT_SECONDS) if wait is None else wait)
    screen = Screen(is_live=False if as_json else None, say=_print)
    seen: tuple[float, int] | None = None
    try:
        while True:
            began, now = time.monotonic(), _stamp(run)
            if now != seen or screen.is_live:
                read = opened(run, options)
                glance = _glance(read)
                if as_json:
                    _print_json(glance)
                else:
                    screen.show(glance, read.session)
                seen = now
            if once or _is_over(read):
                break
            time.sleep(max(every, PATIENCE * (time.monotonic() - began)))
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        screen.close()
    if glance.best is None and not (as_json or screen.is_live):
        click.echo(visible(read.session.plan()))  # why there is none
    if read.quiet:
        is_broken = read.session.live or read.session.live_profiles
        click.echo(f"{'broken off: ' if is_broken else ''}{read.quiet}", err=True)
    sys.exit(0 if glance.best is not None else NO_PLAN)


def _wait_for(run: Path, seconds: float) -> None:
    """Waits for a journal, and says so; where none comes, reading it says what is wrong."""
    until, is_told = time.monotonic() + seconds, False
    while run.suffix != ".csv" and not _stamp(run)[1] and time.monotonic() < until:
        if not is_told:
            click.echo(f"waiting up to {seconds:g} s for a sweep to begin @ {run}", err=True)
            is_told = True
        try:
            time.sleep(WAIT_STEP)
        except KeyboardInterrupt:
            sys.exit(130)


def _stamp(run: Path) -> tuple[float, int]:
    """Returns what changes where the journal does."""
    from raycosttune.results.journal import journal_of  # noqa: PLC0415 - takes a second

    try:
        told = journal_of(run).stat()
    except OSError:
        return 0.0, 0  # reading it says what is wrong
    return told.st_mtime, told.st_size


def _glance(run: "Run") -> "Glance":
    from raycosttune.report.build import ahead_of  # noqa: PLC0415 - takes a second
    from raycosttune.report.glance import glance_of, to_come  # noqa: PLC0415 - as above

    glance = glance_of(run.session, name=run.name, to_come=to_come(run.session))
    glance = replace(glance, ahead=ahead_of(run.session, run.times))
    if run.folder is None or run.quiet or not (glance.running or glance.profiles):
        return glance
    since = max(time.time() - (run.folder / "journal.jsonl").stat().st_mtime, 0.0)
    return replace(glance, elapsed_seconds=glance.elapsed_seconds + since)


def _is_over(run: "Run") -> bool:
    """Tells whether nothing more is to be expected; older journals don't say so themselves."""
    if run.session.live or run.session.live_profiles:
        return bool(run.quiet)
    says_itself = run.times.is_timed and run.folder is not None
    return bool(run.times.over or run.quiet) if says_itself else True


def _print(line: str) -> None:
    click.echo(line)


def _print_json(glance: "Glance") -> None:
    from raycosttune.report.view import to_data  # noqa: PLC0415 - takes a second

    click.echo(json.dumps(to_data(glance)))
