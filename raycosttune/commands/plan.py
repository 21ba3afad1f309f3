"""The command `plan`."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from raycosttune.commands.options import of_run, opened

NO_PLAN = 1


@click.command("plan")
@of_run
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan_command(run: Path, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's
    """Prints the plan of a sweep, or of observations.

    RUN is a sweep's folder, running, finished or broken off, or a CSV file with the columns
    workers, batch_size, epoch, seconds and value, one row for each evaluation; `trial`,
    `startup_seconds` and hyperparameters may be there too. A CSV file needs --target and --mode.

    Exits with 0 where there is a plan, with 1 where there is none yet.
    """
    from raycosttune.core.plan import NoPlan  # noqa: PLC0415 - takes a second
    from raycosttune.report.text import visible  # noqa: PLC0415 - as above
    from raycosttune.report.view import to_data  # noqa: PLC0415 - as above

    found = opened(run, options)
    plan = found.session.plan()
    if as_json:
        config = {}
        if found.keys is not None and not isinstance(plan, NoPlan):
            batch = found.session.space.user_batch(plan.allocation)
            config = {"config": found.keys.config(plan.allocation, batch, plan.recipe)}
        click.echo(json.dumps({**to_data(plan), **config, "text": str(plan)}, indent=1))
    else:
        click.echo(visible(plan))
    if isinstance(plan, NoPlan):
        sys.exit(NO_PLAN)
