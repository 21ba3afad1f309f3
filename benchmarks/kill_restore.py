"""Kills the driver of a sweep in its middle, restores it, and checks that nothing is done twice.

Each case runs a sweep of 25 short trials, sends SIGKILL to its driver once the journal holds a
given number of ended trials, and goes on with `Tuner.restore`. The last case is killed ten times.
Checked in every case, by the journal and by a log that the trials' own function writes:

* no trial that the journal has as ended works again;
* no trial that was asked for is lost: each has an end in the final journal;
* the cost spent is, to the last bit, the sum over the journal's reports and ends.

Each driver starts a Ray of its own, which ends with it, or joins the one at `RAY_ADDRESS`.
"""

import argparse
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from killed_sweep import SweepFolder, run_sweep, train_slowly
from ray import tune

from raycosttune.core.goal import Goal
from raycosttune.tune import function_trainable

TRIALS = 25
EPOCHS = 4
EPOCH_SECONDS = 0.1
GIVE_UP_SECONDS = 300.0


@dataclass
class Case:
    """Is a sweep and the moments, in ended trials, at which it is killed."""

    kills: Sequence[int]
    ended_before: set[str] = field(default_factory=set)
    asked_before: set[str] = field(default_factory=set)


def main() -> None:
    """Runs the cases, or with --drive the sweep itself."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--cases", type=int, default=11, help="how many of the eleven cases")
    parser.add_argument("--trials", type=int, default=TRIALS, help="trials of a sweep")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--moments", type=int, nargs="+", help="one case, killed at these")
    arguments = parser.parse_args()
    if arguments.drive:
        drive(arguments.drive, arguments.trials)
        return
    moments = [0, 1, 3, 6, 9, 12, 15, 18, 21, 24]
    cases = [Case([moment]) for moment in moments] + [Case(moments)]
    if arguments.moments:
        cases = [Case(arguments.moments)]
    figures = [run_case(case, arguments.trials) for case in cases[: arguments.cases]]
    for figure in figures:
        print(
            f"killed at {figure['kills']}: {figure['trials']} trials, "
            f"{figure['restarted']} unfinished ones restarted, {figure['again']} ended ones worked "
            f"again, {figure['lost']} lost, spent {figure['spent']:.6g} (journal "
            f"{figure['journal_spent']:.6g}), {figure['seconds']:.0f} s"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    bad = [f for f in figures if f["again"] or f["lost"] or f["spent"] != f["journal_spent"]]
    sys.exit(f"{len(bad)} of {len(figures)} cases failed" if bad else 0)


def run_case(case: Case, trials: int) -> dict[str, Any]:
    """Runs one case in a folder of its own and returns its figures."""
    folder = Path(tempfile.mkdtemp(prefix="kill-restore-"))
    sweep = SweepFolder(folder)
    begun = time.monotonic()
    again: list[str] = []
    try:
        for kill in [*case.kills, None]:
            before = len(sweep.starts())
            _run_until(sweep, kill, trials)
            again += sorted(set(sweep.started()[before:]) & case.ended_before)
            case.asked_before |= set(sweep.records())
            case.ended_before |= set(sweep.ended())
        started, result = sweep.started(), sweep.result() or {}
        return {
            "kills": list(case.kills),
            "trials": len(sweep.records()),
            "restarted": len(started) - len(set(started)),
            "again": len(again),
            "lost": len(case.asked_before - set(sweep.ended())),
            "spent": result["spent"],
            "journal_spent": sweep.spent(),
            "seconds": time.monotonic() - begun,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_until(sweep: SweepFolder, kill: int | None, trials: int) -> None:
    """Runs the driver to its end, or kills it once so many trials have ended."""
    driver_log = sweep.folder / "driver.log"
    with driver_log.open("a") as log:
        driver = subprocess.Popen(
            [sys.executable, __file__, "--drive", str(sweep.folder), "--trials", str(trials)],
            stdout=log,
            stderr=log,
        )
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while driver.poll() is None:
        records, ended = sweep.records(), len(sweep.ended())
        if kill is not None and records and ended >= kill and sweep.is_restorable():
            time.sleep(0.07 * (kill % 5))  # so that not every kill follows an end at once
            driver.send_signal(signal.SIGKILL)
            driver.wait()
            return
        if time.monotonic() > deadline:
            driver.send_signal(signal.SIGTERM)
            driver.wait()
            sys.exit(driver_log.read_text()[-4000:])
        time.sleep(0.02)
    if driver.returncode:
        sys.exit(driver_log.read_text()[-4000:])


def drive(folder: Path, trials: int) -> None:
    """Runs the sweep in this process: from its start, or from where it was killed."""

    def train(config: dict[str, Any]) -> None:
        log, floor = folder / "work.log", 1 / config["batch_size"]
        train_slowly(log, config, EPOCHS, EPOCH_SECONDS, lambda epoch: 1 / epoch + floor)

    own: dict[str, Any] = {"address": "local", "num_cpus": 4, "include_dashboard": False}
    own["object_store_memory"] = 100_000_000
    where = {} if "RAY_ADDRESS" in os.environ else own
    ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
    run_sweep(
        folder,
        function_trainable(train),
        Goal(metric="loss", mode="min", target=0.001),
        {
            "num_workers": tune.choice([1]),
            "batch_size": tune.choice([2**k for k in range(trials)]),
        },
        num_samples=trials,
        reuse_actors=True,
    )


if __name__ == "__main__":
    main()
