"""The command line."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

from raycosttune import Allocation, Goal, NodeHours, RayCostTuneError, WorkerHours
from raycosttune.core.cost import CostMetric

COSTS: dict[str, type[NodeHours | WorkerHours]] = {
    "node-hours": NodeHours,
    "worker-hours": WorkerHours,
}


@click.group()
@click.version_option(package_name="raycosttune")
def main() -> None:
    """Finds the workers and the batch that train to a target for the least cost."""


@main.command("simulate")
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.option("--workload", help="Job in a folder of traces; left out, SOURCE is a sweep of yours.")
@click.option("--device", default="", help="Start of the device's name in the traces.")
@click.option("--metric", default=None, help="Name of the metric.")
@click.option("--mode", type=click.Choice(["max", "min"]), default=None)
@click.option("--target", type=float, default=None, help="Value that a run must reach.")
@click.option("--deadline", type=float, default=None, help="Limit of one run, seconds.")
@click.option("--planned-runs", type=int, default=None, help="How often the training will run.")
@click.option("--cost", type=click.Choice(list(COSTS)), default="node-hours", show_default=True)
@click.option("--workers-per-node", type=int, default=None, help="Workers of one machine.")
@click.option("--startup", type=float, default=0.0, help="Start-up of a run in traces, seconds.")
@click.option("--policies", default="ours", show_default=True, help="Comma-separated.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--noise",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Of times, relative.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def simulate_command(source: Path, policies: str, *, as_json: bool, **options: Any) -> None:  # noqa: ANN401 - click's
    """Replays sweeps on measurements: which plan, and what it costs with the search.

    SOURCE is a folder of traces (give --workload), or the folder of a finished sweep.
    """
    try:
        results = _replay(source, policies.split(","), options)
    except RayCostTuneError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(results, indent=1))
        return
    click.echo(f"oracle: {results['oracle']}")
    for name, row in results["policies"].items():
        click.echo(f"{name}: {row['text']}")


def _replay(source: Path, names: list[str], options: dict[str, Any]) -> dict[str, Any]:
    from raycosttune.simulate import Noise, Truth, bill, simulate  # noqa: PLC0415 - takes seconds
    from raycosttune.simulate.policies import start_policy  # noqa: PLC0415

    goal = _goal(source, options)
    cost: CostMetric = COSTS[options["cost"]]()
    workload = _workload(source, goal, options)
    truth = Truth(workload, goal, cost)
    oracle = f"{_words(truth.oracle)}, {truth.oracle_cost:.3g} {cost.unit} a run"
    rows: dict[str, Any] = {}
    for name in names:
        outcome = simulate(
            start_policy(name, workload, goal, cost, seed=options["seed"]),
            workload,
            cost=cost,
            deadline_seconds=goal.deadline_seconds,
            noise=Noise(options["noise"], curves=options["noise"] > 0),
            seed=options["seed"],
        )
        result = bill(truth, outcome.last)
        chosen = "no plan" if result.chosen is None else _words(result.chosen)
        rows[name] = {
            "chosen": result.chosen and [result.chosen.workers, result.chosen.batch_size],
            "bill_ratio": _finite(result.ratio),
            "search_spend": result.spent,
            "regret": _finite(result.regret),
            "misses_deadline": result.misses_deadline,
            "trials": len(outcome.trials),
            "text": f"{chosen}; the search spent {result.spent:.3g} {cost.unit} in "
            f"{len(outcome.trials)} starts; with {goal.planned_runs} planned runs the bill is "
            f"{result.ratio:.2f} times the oracle's",
        }
    return {"workload": workload.name, "oracle": oracle, "unit": cost.unit, "policies": rows}


def _workload(source: Path, goal: Goal, options: dict[str, Any]) -> Any:  # noqa: ANN401
    from raycosttune.simulate import RecordedWorkload, TraceWorkload  # noqa: PLC0415

    if options["workload"] is None:
        return RecordedWorkload.read(source, goal)
    return TraceWorkload.read(
        source,
        options["workload"],
        device=options["device"],
        workers_per_node=options["workers_per_node"],
        startup_seconds=options["startup"],
    )


def _goal(source: Path, options: dict[str, Any]) -> Goal:
    """Returns the goal: the recorded sweep's own, with what the command line says instead."""
    given = {
        "metric": options["metric"],
        "mode": options["mode"],
        "target": options["target"],
        "deadline_seconds": options["deadline"],
        "planned_runs": options["planned_runs"],
    }
    given = {key: value for key, value in given.items() if value is not None}
    recorded = None if options["workload"] is not None else _recorded_goal(source)
    if recorded is not None:
        return replace(recorded, **given)
    if options["workload"] is None:
        msg = f"{source} holds no journal of a sweep; a folder of traces needs --workload"
        raise click.UsageError(msg)
    missing = [key for key in ("target", "mode") if key not in given]
    if missing:
        raise click.UsageError("traces need " + " and ".join(f"--{key}" for key in missing))
    return Goal(**{"metric": "metric", **given})


def _recorded_goal(source: Path) -> Goal | None:
    from raycosttune.results.journal import read_journal  # noqa: PLC0415
    from raycosttune.simulate.recorded import journal_of  # noqa: PLC0415

    rows = read_journal(journal_of(source))
    header = next((row for row in rows if row["row"] == "header"), None)
    if header is None:
        return None
    known = {item.name for item in fields(Goal)}
    return Goal(**{key: value for key, value in header["goal"].items() if key in known})


def _words(cell: Allocation) -> str:
    return f"{cell.workers} workers, batch {cell.batch_size}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
