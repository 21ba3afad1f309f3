"""The command line."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from raycosttune import Allocation, CostMetric, Goal, NodeHours, RayCostTuneError
from raycosttune.commands.advise import advise_command
from raycosttune.commands.explain import explain_command
from raycosttune.commands.options import SWEEP_S_OWN, cost_of, refused
from raycosttune.commands.plan import plan_command
from raycosttune.commands.report import report_command
from raycosttune.commands.watch import watch_command
from raycosttune.core.figure import counted

OF_TRACES = ("metric", "device", "workers_per_node", "startup")
Recorded = tuple[Goal, str | None, CostMetric | None]  # the cost by its unit and itself
# Those of raycosttune.simulate.policies, which takes seconds to import.
POLICIES = """\b
Policies: ours, ours-fixed, random, tpe, tpe-hyperband, tpe-constrained, gp-constrained,
flaml, zeus@WORKERS, liang2022, liang2022-local, workers-then-batch,
batch-then-workers, linear-scaling, pollux."""
REPLAYED = "replayed: only cells that the sweep measured, at each batch's best recipe"


@click.group()
@click.version_option(package_name="raycosttune")
def main() -> None:
    """Finds the workers and the batch that train to a target for the least cost."""


for command in (advise_command, explain_command, plan_command, report_command, watch_command):
    main.add_command(command)


@main.command("simulate", epilog=POLICIES)
@click.argument("source", type=click.Path(exists=True, path_type=Path))
@click.option("--workload", help="Job in a folder of traces; left out, SOURCE is a sweep of yours.")
@click.option("--device", default=None, help="Start of the device's name in the traces.")
@click.option("--metric", default=None, help="Name of the metric in the traces.")
@click.option("--mode", type=click.Choice(["max", "min"]), default=None, help=SWEEP_S_OWN)
@click.option(
    "--target", type=float, default=None, help=f"Value that a run must reach. {SWEEP_S_OWN}"
)
@click.option(
    "--deadline", type=float, default=None, help=f"Limit of one run, seconds. {SWEEP_S_OWN}"
)
@click.option(
    "--planned-runs", type=int, default=None, help=f"How often the training will run. {SWEEP_S_OWN}"
)
@click.option(
    "--cost",
    default=None,
    help="node-hours, worker-hours, or module:Name, a metric or its class. Left out, it is the "
    "recorded sweep's, and node-hours for traces.",
)
@click.option("--workers-per-node", type=int, default=None, help="Of the traces' machines.")
@click.option("--startup", type=float, default=None, help="Start-up of a run in traces, seconds.")
@click.option("--policies", default="ours", show_default=True, help="Comma-separated.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--noise",
    type=click.FloatRange(min=0, max=1),
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
        results = _replay(source, [name.strip() for name in policies.split(",")], options)
    except RayCostTuneError as error:
        raise refused(error) from error
    if as_json:
        click.echo(json.dumps(results, indent=1))
        return
    click.echo(f"oracle: {results['oracle']}")
    for name, row in results["policies"].items():
        click.echo(f"{name}: {row['text']}")
    if options["workload"] is None:
        click.echo(REPLAYED)


def _replay(source: Path, names: list[str], options: dict[str, Any]) -> dict[str, Any]:
    from raycosttune.simulate import Noise, Truth, bill, simulate  # noqa: PLC0415 - takes seconds
    from raycosttune.simulate.policies import start_policy  # noqa: PLC0415 - as above

    goal, unit, recorded = _goal(source, options)
    cost = cost_of(options["cost"], unit, recorded)
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
            f"{counted(len(outcome.trials), 'start')}; with "
            f"{counted(goal.planned_runs, 'planned run')} the bill is "
            f"{result.ratio:.2f} times the oracle's",
        }
    return {"workload": workload.name, "oracle": oracle, "unit": cost.unit, "policies": rows}


def _workload(source: Path, goal: Goal, options: dict[str, Any]) -> Any:  # noqa: ANN401 - two kinds of workload
    from raycosttune.simulate import RecordedWorkload, TraceWorkload  # noqa: PLC0415 - takes seconds

    if options["workload"] is None:
        return RecordedWorkload.read(source, goal)
    return TraceWorkload.read(
        source,
        options["workload"],
        device=options["device"] or "",
        workers_per_node=options["workers_per_node"],
        startup_seconds=options["startup"] or 0.0,
    )


def _goal(source: Path, options: dict[str, Any]) -> Recorded:
    """Returns the goal, the cost's unit and metric: those recorded, with what is said instead."""
    given = {
        "metric": options["metric"],
        "mode": options["mode"],
        "target": options["target"],
        "deadline_seconds": options["deadline"],
        "planned_runs": options["planned_runs"],
    }
    given = {key: value for key, value in given.items() if value is not None}
    if options["workload"] is None:
        return _recorded_goal(source, given, options)
    missing = [key for key in ("target", "mode") if key not in given]
    if missing:
        raise click.UsageError("traces need " + " and ".join(f"--{key}" for key in missing))
    return Goal(**{"metric": "metric", **given}), NodeHours().unit, NodeHours()


def _recorded_goal(source: Path, given: dict[str, Any], options: dict[str, Any]) -> Recorded:
    from raycosttune.simulate.recorded import read_recorded_header  # noqa: PLC0415 - takes seconds

    if source.suffix == ".csv":
        msg = (
            f"simulate replays a sweep's folder, or traces with --workload, not observations @ "
            f"{source}. Ask `raycosttune plan`, `explain` or `report` of these."
        )
        raise click.UsageError(msg)
    goal, unit, cost = read_recorded_header(source)
    ignored = [f"--{key.replace('_', '-')}" for key in OF_TRACES if options[key] is not None]
    if ignored:
        msg = f"a recorded sweep says these itself: leave out {', '.join(ignored)}"
        raise click.UsageError(msg)
    return replace(goal, **given), unit, cost


def _words(cell: Allocation) -> str:
    return cell.named({})


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
