"""The command `report`."""

import json
from pathlib import Path
from typing import Any

import click

from raycosttune.commands.options import of_run, opened


def _pair(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, int] | None:
    """Reads workers and batch: 4x256."""
    del context, parameter
    if value is None:
        return None
    workers, _, batch = value.partition("x")
    if not (workers.isdecimal() and batch.isdecimal() and int(workers) and int(batch)):
        msg = f"must be workers and batch as 4x256, got {value!r}"
        raise click.BadParameter(msg)
    return int(workers), int(batch)


@click.command("report")
@of_run
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page.  [default: NAME.html in this folder]",
)
@click.option(
    "--default",
    callback=_pair,
    metavar="WxB",
    help="What would have been run without a search, 4x256.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what the page shows as JSON instead.")
def report_command(
    run: Path,
    *,
    out: Path | None,
    default: tuple[int, int] | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Writes a page that shows a sweep, and prints where it lies.

    RUN is a sweep's folder, running, finished or broken off, or a CSV file of observations as
    `raycosttune plan --help` has it. The page opens without a network.
    """
    from raycosttune.report import to_data  # noqa: PLC0415 - takes a second
    from raycosttune.report.read import view_of_run  # noqa: PLC0415 - as above

    view = view_of_run(opened(run, options))
    if as_json:
        click.echo(json.dumps(to_data(view), indent=1))
        return
    page = out or Path(f"{view.name}.html")
    try:
        from raycosttune.report import write_page  # noqa: PLC0415 - needs an extra

        path = write_page(view, page, default=default)
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        msg = f"the page can't be written @ {page}: {error.strerror or error}. "
        raise click.ClickException(
            msg + "Name a file in a folder that is there by --out."
        ) from error
    click.echo(str(path))
