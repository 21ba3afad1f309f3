"""What several commands are told, and how they read it."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from raycosttune import CostMetric, Goal, NodeHours, RayCostTuneError, WorkerHours
from raycosttune.core.cost_law import check_cost_metric
from raycosttune.core.space import Space
from raycosttune.results.cost import unknown_metric

if TYPE_CHECKING:
    from raycosttune.report.run import Run  # takes a second

COSTS: dict[str, type[NodeHours | WorkerHours]] = {
    "node-hours": NodeHours,
    "worker-hours": WorkerHours,
}
SWEEP_S_OWN = "Left out, it is the recorded sweep's."
OF_OBSERVATIONS = ("metric", "mode", "workers_per_node", "workers", "batches")
Command = TypeVar("Command", bound=Callable[..., Any])
OPTIONS = (
    click.option("--target", type=float, help=f"Value that a run must reach. {SWEEP_S_OWN}"),
    click.option("--deadline", type=float, help=f"Limit of one run, seconds. {SWEEP_S_OWN}"),
    click.option("--planned-runs", type=int, help=f"How often it will run. {SWEEP_S_OWN}"),
    click.option(
        "--cost",
        help="node-hours, worker-hours, or module:Name, a metric or its class. Left out, it is the "
        "recorded sweep's, and node-hours for a CSV file.",
    ),
    click.option("--metric", help="Column of the metric, of a CSV file.  [default: value]"),
    click.option("--mode", type=click.Choice(["max", "min"]), help="Of a CSV file's metric."),
    click.option("--workers", help="Of a CSV file: counts that are legal beside those in it, 1,2."),
    click.option("--batches", help="Of a CSV file: batches that are legal beside those in it."),
    click.option("--workers-per-node", type=int, help="Of a CSV file: workers of one machine."),
)


def of_run(command: Command) -> Command:
    """Gives a command the argument RUN and the options by which it is read."""
    return _given(command, exists=True)


def of_coming_run(command: Command) -> Command:
    """Does the same where RUN need not be there yet."""
    return _given(command, exists=False)


def _given(command: Command, *, exists: bool) -> Command:
    run = click.argument("run", type=click.Path(exists=exists, path_type=Path))
    for option in reversed((run, *OPTIONS)):
        command = option(command)
    return command


def opened(run: Path, options: Mapping[str, Any]) -> "Run":
    """Reads a sweep's folder, its journal, or observations in a CSV file.

    Raises:
        UsageError: If it can't be read.
    """
    try:
        return _observed(run, options) if run.suffix == ".csv" else _recorded(run, options)
    except RayCostTuneError as error:
        raise refused(error) from error


def refused(error: RayCostTuneError) -> click.UsageError:
    """Returns what a command ends with; an error quotes files, which hold what they like."""
    from raycosttune.report.text import visible  # noqa: PLC0415 - takes a second

    return click.UsageError(visible(error))


def _recorded(run: Path, options: Mapping[str, Any]) -> "Run":
    from raycosttune.report.run import read_run  # noqa: PLC0415 - takes a second

    given = [f"--{name.replace('_', '-')}" for name in OF_OBSERVATIONS if options[name] is not None]
    if given:
        msg = f"a recorded sweep says these itself: leave out {', '.join(given)}"
        raise click.UsageError(msg)
    name = options["cost"]
    cost = None if name is None else cost_of(name, None)
    return read_run(run, cost, _limits(options))


def _observed(path: Path, options: Mapping[str, Any]) -> "Run":
    from raycosttune.report.run import run_of  # noqa: PLC0415 - takes a second
    from raycosttune.results.observations import read_observations  # noqa: PLC0415 - as above

    missing = [f"--{key}" for key in ("target", "mode") if options[key] is None]
    if missing:
        msg = f"observations need {' and '.join(missing)}"
        raise click.UsageError(msg)
    metric = options["metric"] or "value"
    goal = Goal(metric=metric, mode=options["mode"], **_limits(options))
    records = read_observations(path, metric)
    workers = {record.allocation.workers for record in records} | _counts(options, "workers")
    batches = {record.allocation.batch_size for record in records} | _counts(options, "batches")
    per_node = options["workers_per_node"]
    space = Space(tuple(workers), tuple(batches), workers_per_node=per_node, divisible=False)
    placed = [
        replace(r, allocation=space.allocation(r.allocation.workers, r.allocation.batch_size))
        for r in records
    ]
    cost = cost_of(options["cost"], None, NodeHours())
    return run_of(path.stem, placed, goal, cost, space)


def _limits(options: Mapping[str, Any]) -> dict[str, Any]:
    given = {
        "target": options["target"],
        "deadline_seconds": options["deadline"],
        "planned_runs": options["planned_runs"],
    }
    return {key: value for key, value in given.items() if value is not None}


def _counts(options: Mapping[str, Any], name: str) -> set[int]:
    try:
        return {int(text) for text in (options[name] or "").split(",") if text.strip()}
    except ValueError as error:
        msg = f"--{name} must be whole numbers with commas between, got {options[name]!r}"
        raise click.UsageError(msg) from error


def cost_of(name: str | None, unit: str | None, recorded: CostMetric | None = None) -> CostMetric:
    """Returns the cost that is asked for, or else the recorded one.

    Args:
        name: What `--cost` says.
        unit: Unit of the recorded cost.
        recorded: The recorded cost, None where only its unit is.

    Raises:
        UsageError: If it can't be told or loaded.
        InvalidCostError: If it breaks a law of costs.
    """
    if name is None:
        if recorded is None:
            raise click.UsageError(unknown_metric(unit))
        return recorded
    known = COSTS.get(name)
    cost: CostMetric = _loaded(name) if known is None else known()
    check_cost_metric(cost, ())
    return cost


def _loaded(name: str) -> CostMetric:
    """Imports a metric, from the working directory too, and makes one where it is a class."""
    module, _, attribute = name.partition(":")
    if not (module and attribute):
        rule = "node-hours, worker-hours or module:Name, a metric or its class"
        msg = f"--cost must be {rule}, got {name!r}"
        raise click.UsageError(msg)
    sys.path.insert(0, str(Path.cwd()))  # a console script has its own folder there
    try:
        found: Any = getattr(import_module(module), attribute)
        metric: CostMetric = found() if isinstance(found, type) else found
    except Exception as error:  # a user's module may raise anything
        msg = f"--cost {name} can't be loaded: {type(error).__name__}: {error}"
        raise click.UsageError(msg) from error
    return metric
