"""The command `explain`."""

import json
from pathlib import Path
from typing import Any

import click

from raycosttune.commands.options import of_run, opened


@click.command("explain")
@of_run
@click.option("--json", "as_json", is_flag=True, help="Print JSON: a list of lines.")
def explain_command(run: Path, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's
    """Says why each trial ran and ended, what comes next, and what bounds the plan.

    RUN is a sweep's folder, or a CSV file of observations as `raycosttune plan --help` has it.
    """
    from raycosttune.report.text import visible  # noqa: PLC0415 - takes a second

    text = opened(run, options).session.explain()
    click.echo(json.dumps(text.split("\n"), indent=1) if as_json else visible(text))
