"""Measures what balancing the shares of a batch saves, and costs, on real workers.

Usage: python benchmarks/rebalance.py --workers 4 --scenario hetero|burst|drift|equal|burner
           --json FILE [--epochs N] [--repeats N] [--policy balance|dbs|equal]
       python benchmarks/rebalance.py --table [--traces DIR] | --accuracy | --all  --json FILE

Workers are processes on this machine, joined by gloo, each with one thread and an ordinary training
loop; epochs are clocked here, when the last worker says that its own ended. Off: equal shares; on:
balanced ones. Seconds, savings and ratios are of the epochs after the first two.

* hetero: compute is a pause of 10 ms for each sample, on the last worker 40 ms. At 4 workers the
  least that on over off can be is 4/13 = 0.31.
* burst: equal workers (2 ms a sample). In each epoch each undisturbed worker is slowed with chance
  0.1, for 4 to 20 epochs, by 10 to 20 % of an undisturbed epoch: the 5 to 10 s of Ye et al. 2020,
  if an epoch of theirs took 50 s, which they don't say.
* drift: equal workers at first (2 ms a sample), whose log speeds wander by 0.15 an epoch.
* equal: equal workers (10 ms a sample). Off is plain PyTorch: DistributedDataParallel, DataLoader
  and DistributedSampler; an epoch of each in turn. "overhead" is the median over the pairs.
* burner: a network on 2 workers, each pinned to a core; another process burns the first one's.
  "recovered": seconds off to on over seconds off to undisturbed.
* table: savings with and without the disturbance of burst, at equal speeds and where three of four
  workers share a device, as in the code of Ye et al.: measured with emulated workers, and replayed
  without running; with `--traces` also on measured K80, P100 and V100 profiles.
* accuracy: the digits, 3 workers of speeds 6:3:1, 10 seeds: final test accuracy on and off.

`makespan_over_optimum` is seconds on over those of the best whole shares, chosen with knowledge of
each epoch's speeds and without any overhead. Use an idle machine with two cores.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rebalance_simulated import PROFILES_FILE

from raycosttune.core.rebalance import DBS, Balance, Equal, Policy

POLICIES: dict[str, Callable[[], Policy]] = {"balance": Balance, "dbs": DBS, "equal": Equal}
EMULATED = ("hetero", "burst", "drift", "equal")
LEAST_EPOCHS = 3
Options = argparse.Namespace


def arguments(argv: Sequence[str] | None = None) -> Options:
    """Returns what the command line says; ends with one error where it can't be used."""
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--scenario", choices=(*EMULATED, "burner"))
    what.add_argument("--table", action="store_true", help="the published savings again")
    what.add_argument("--accuracy", action="store_true", help="accuracy on and off")
    what.add_argument("--all", action="store_true", help="everything, in about 10 minutes")
    parser.add_argument("--json", type=Path, required=True, help="write the figures here")
    parser.add_argument("--workers", type=int, help="emulated workers, default 4")
    parser.add_argument("--epochs", type=int, help=f"epochs of a run, at least {LEAST_EPOCHS}")
    parser.add_argument("--repeats", type=int, help="repeats, or seeds, of all runs")
    parser.add_argument("--policy", choices=POLICIES, default="balance", help="what balances")
    parser.add_argument("--burners", type=int, help="processes that burn, default 1")
    parser.add_argument("--traces", type=Path, help=f"folder with {PROFILES_FILE}, for the table")
    options = parser.parse_args(argv)
    problem = _problem(options)
    if problem:
        parser.error(problem)
    return options


def _problem(options: Options) -> str | None:
    for name, least in (("workers", 2), ("epochs", LEAST_EPOCHS), ("repeats", 1), ("burners", 1)):
        value = getattr(options, name)
        if value is not None and value < least:
            return f"--{name} must be at least {least}, got {value}"
    if not options.json.parent.is_dir() or options.json.is_dir():
        return f"--json must be a file in a folder that exists, got {options.json}"
    if options.traces is not None and not (options.traces / PROFILES_FILE).is_file():
        return f"--traces must be a folder with {PROFILES_FILE}, got {options.traces}"
    needs_cores = options.all or options.scenario == "burner"
    if needs_cores and len(os.sched_getaffinity(0)) < 2:
        return "the burner needs two cores, got one. Choose another scenario"
    emulated = options.all or options.scenario in EMULATED
    for name, is_used in (
        ("workers", emulated),
        ("burners", needs_cores),
        ("traces", options.all or options.table),
    ):
        if getattr(options, name) is not None and not is_used:
            return f"--{name} does nothing here. Leave it out"
    return None


def measure(name: str, options: Options) -> dict[str, Any]:
    """Runs a benchmark, prints its figures and returns them."""
    policy = POLICIES[options.policy]()
    epochs, repeats = options.epochs, options.repeats
    began, load = time.perf_counter(), os.getloadavg()[0]
    if name == "table":
        from rebalance_table import lines, table

        rows = table(options.policy, options.traces, epochs)
        found: dict[str, Any] = {"rows": rows}
        print("\n".join(lines(rows)), flush=True)
    elif name == "accuracy":
        from rebalance_accuracy import run_accuracy

        found = run_accuracy(policy, epochs, repeats)
    elif name == "burner":
        from rebalance_burner import run_burner

        found = run_burner(policy, epochs, repeats, options.burners or 1)
    else:
        from rebalance_scenarios import run_scenario

        workers = options.workers or 4
        found = {"workers": workers, **run_scenario(name, workers, policy, epochs, repeats)}
    found |= {"policy": options.policy, "seconds": time.perf_counter() - began, "load": load}
    for key, value in found.items():
        if isinstance(value, float):
            print(f"{name}: {key} {value:.4g}", flush=True)
        elif not isinstance(value, list):
            print(f"{name}: {key} {value}", flush=True)
    return found


def main() -> None:
    """Runs what the command line asks for, and writes the figures after each part."""
    import torch

    options = arguments()
    machine = {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    if not options.all:
        name = options.scenario or ("table" if options.table else "accuracy")
        options.json.write_text(
            json.dumps({"scenario": name, **measure(name, options), "machine": machine}, indent=1)
        )
        return
    found: dict[str, Any] = {"machine": machine}
    for name in (*EMULATED, "burner", "accuracy", "table"):
        found[name] = measure(name, options)
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
