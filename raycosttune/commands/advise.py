"""The command `advise`."""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from raycosttune import RayCostTuneError
from raycosttune.commands.options import refused


@click.command("advise")
@click.argument("target")
@click.option("--batch", type=click.IntRange(min=1), required=True, help="Global batch.")
@click.option("--workers", type=click.IntRange(min=1), help="Most there are. [default: the cores]")
@click.option("--workers-per-node", type=click.IntRange(min=1), help="That one machine holds.")
@click.option("--bandwidth", type=float, help="Between machines, bytes a second.")
@click.option("--memory", type=float, help="That a worker may use, bytes.")
@click.option("--device", default="cpu", show_default=True, help="cpu, cuda or one of several.")
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--steps", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--algorithms", is_flag=True, help="Try the algorithms of each layer too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def advise_command(target: str, batch: int, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's
    """Profiles a job for a minute or two: what limits its scaling, and what to do about it.

    TARGET is module:function, found in this folder too. The function takes no argument and
    returns a model, or (model, dataset, loss), or a raycosttune.train.Job: see docs/advise.md.
    """
    from raycosttune.advise import Cluster, Link, guide  # noqa: PLC0415 - as below
    from raycosttune.train import probe_report  # noqa: PLC0415 - takes seconds

    workers = options.pop("workers") or max(1, (os.cpu_count() or 1) // options["threads"])
    per_node, bandwidth = options.pop("workers_per_node"), options.pop("bandwidth")
    try:
        cluster = Cluster(workers, per_node, None if bandwidth is None else Link(bandwidth))
        with _progress():
            profile, algorithms = probe_report.profiled(target, batch, cluster, **options)
        found = guide(profile, cluster)
    except RayCostTuneError as error:
        raise refused(error) from error
    if as_json:
        data = probe_report.report_data(profile, found, algorithms)
        click.echo(json.dumps(data, indent=1))
        return
    for line in probe_report.report_lines(found, algorithms):
        click.echo(line)


@contextmanager
def _progress() -> Iterator[None]:
    """Writes what is measured next to the standard error stream."""
    logger, handler = logging.getLogger("raycosttune.train"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s ..."))
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
