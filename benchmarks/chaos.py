"""Kills drivers, workers, nodes and heads under sweeps, and checks that nothing is lost.

Each round runs a sweep of short trials on a cluster of real processes, kills one kind of them at
random moments, and lets the sweep go on: Tune starts dead trials again, and a dead driver is
started again with `Tuner.restore`. A dead head takes the cluster along, and a new one is started.
Every third round runs Ray Train, the others plain functions. Checked in every round, by the
journal and by a log that the trials write themselves:

* no trial that was asked for is lost: each has an end in the journal and in the search's own
  records, and none that had ended has changed since (`lost_trials`);
* no trial that the journal had as ended works again (`repeated_trials`);
* once the sweep is over no placement group is left, and no process that is still at work, nor
  any at all once the cluster is gone (`leaked_placement_groups`, `leaked_processes`);
* the sweep ends by itself, with a plan.
"""

import argparse
import contextlib
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import ray
from chaos_cluster import ChaosCluster, adopt_orphans, busy, settled
from killed_sweep import SweepFolder, note, run_sweep, train_slowly
from ray import tune

from raycosttune.core.goal import Goal
from raycosttune.core.observation import TrialRecord
from raycosttune.tune import function_trainable, torch_trainable

KINDS = ("driver", "worker", "node", "driver", "worker", "node", "head")
KILLS = {"driver": 3, "worker": 3, "node": 2, "head": 1}
GIVE_UP_SECONDS = 150.0
MOST_RESTARTS = 10
LONGEST_WAIT_SECONDS = 6.0
EARLY = 0.2  # chance that the first kill may come before the first trial


@dataclass
class Round:
    """Is what one round did and found."""

    number: int
    kind: str
    is_train: bool
    kills: list[float] = field(default_factory=list)
    restarts: int = 0
    trials: int = 0
    lost: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    groups: int = 0
    processes: list[str] = field(default_factory=list)
    plan: str | None = None
    trouble: str = ""
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        """Whether anything was lost, repeated, leaked, or hung."""
        found = (self.lost, self.repeated, self.groups, self.processes, self.trouble)
        return any(found) or self.plan is None


def main() -> None:
    """Runs the rounds, or with --drive the sweep of one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--rounds", type=int, default=20, help="how many rounds")
    parser.add_argument("--seed", type=int, default=0, help="seed of what is killed, and when")
    parser.add_argument("--kinds", nargs="+", default=KINDS, help="what is killed, in turn")
    parser.add_argument("--seconds", type=float, default=1200.0, help="begin no round after these")
    parser.add_argument("--keep", type=Path, help="move the folders of bad rounds here")
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--train", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.drive:
        drive(arguments.drive, arguments.address, is_train=arguments.train)
        return
    adopt_orphans()
    figures = run_rounds(arguments)
    print(json.dumps({key: value for key, value in figures.items() if key != "each"}, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
    bad = [figure["number"] for figure in figures["each"] if figure["is_bad"]]
    sys.exit(f"bad rounds: {bad}" if bad or figures["leaked_at_the_end"] else 0)


def run_rounds(arguments: argparse.Namespace) -> dict[str, Any]:
    """Runs round after round on one cluster and sums up."""
    begun, rounds, outlived = time.monotonic(), [], {}
    rng = random.Random(arguments.seed)  # noqa: S311 - not for secrets
    cluster = ChaosCluster(rng)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # in place of Ray's
    try:
        for number in range(arguments.rounds):
            if time.monotonic() - begun > arguments.seconds:
                break
            kind = arguments.kinds[number % len(arguments.kinds)]
            one = Round(number, kind, is_train=number % 3 == 2)
            with Chaos(one, cluster, rng) as chaos:
                chaos.run(arguments.keep)
                cluster = chaos.cluster
            rounds.append(one)
            print(one, flush=True)
    finally:
        outlived = cluster.stop()
    return {
        "rounds": len(rounds),
        "seed": arguments.seed,
        "lost_trials": sum(len(one.lost) for one in rounds),
        "repeated_trials": sum(len(one.repeated) for one in rounds),
        "leaked_placement_groups": sum(one.groups for one in rounds),
        "leaked_processes": sum(len(one.processes) for one in rounds) + len(outlived),
        "leaked_at_the_end": list(outlived.values()),
        "every_sweep_ended_with_a_plan": all(one.plan for one in rounds),
        "kills": sum(len(one.kills) for one in rounds),
        "trials": sum(one.trials for one in rounds),
        "seconds": time.monotonic() - begun,
        "each": [{**asdict(one), "is_bad": one.is_bad} for one in rounds],
    }


class Chaos:
    """Leads one round: a sweep's driver, and what is killed under it."""

    def __init__(self, one: Round, cluster: ChaosCluster, rng: random.Random) -> None:
        """Begins in a folder of its own."""
        self.cluster = cluster
        self._round, self._rng = one, rng
        self._sweep = SweepFolder(Path(tempfile.mkdtemp(prefix="chaos-")))
        self._driver: subprocess.Popen[bytes] | None = None
        self._seen: dict[str, TrialRecord] = {}
        self._asked: set[str] = set()
        self._starts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the driver and removes the folder, whatever has happened."""
        self._kill_driver()
        shutil.rmtree(self._sweep.folder, ignore_errors=True)

    def run(self, keep: Path | None) -> None:
        """Runs the sweep to its end under fire, and notes what was found."""
        one, begun = self._round, time.monotonic()
        due = begun + self._rng.uniform(0.0, LONGEST_WAIT_SECONDS)
        kills, is_early = self._rng.randint(1, KILLS[one.kind]), self._rng.random() < EARLY
        self._start_driver()
        while self._sweep.result() is None and not one.trouble:
            self._look()
            now = time.monotonic()
            if not self._asked and not is_early:
                due += 0.05  # from the first trial on, mostly
            elif now >= due and len(one.kills) < kills and self._kill():
                one.kills.append(round(now - begun, 1))
                due = now + self._rng.uniform(0.5, LONGEST_WAIT_SECONDS)
            self._keep_driving(now - begun)
            time.sleep(0.05)
        self._wait_for_driver()
        self._look()
        self._judge()
        one.seconds = time.monotonic() - begun
        if one.is_bad and keep is not None:
            shutil.copytree(self._sweep.folder, keep / f"round-{one.number}", dirs_exist_ok=True)

    def _start_driver(self) -> None:
        folder, train = str(self._sweep.folder), ["--train"] if self._round.is_train else []
        command = [sys.executable, __file__, "--drive", folder, "--address", self.cluster.address]
        with (self._sweep.folder / "driver.log").open("a") as log:
            self._driver = subprocess.Popen([*command, *train], stdout=log, stderr=log)  # noqa: S603 - this very file

    def _keep_driving(self, now: float) -> None:
        """Starts a dead driver again, and gives up where that leads nowhere."""
        if self._driver is not None and self._driver.poll() is not None:
            self._driver = None
            if self._sweep.result() is None:
                self._round.restarts += 1
                self._start_driver()
        if self._round.restarts > MOST_RESTARTS:
            self._round.trouble = "its driver ends again and again"
        if now > GIVE_UP_SECONDS:
            self._round.trouble = f"it hangs after {now:.0f} s"

    def _kill(self) -> bool:
        """Kills what the round is about; tells if there was anything to kill."""
        match self._round.kind:
            case "driver":
                self._kill_driver()
            case "worker":
                return self.cluster.kill_worker()
            case "node":
                self.cluster.kill_node()
                time.sleep(self._rng.uniform(0.0, 3.0))
                self.cluster.add_node()
            case _:
                self._round.processes += self._lose_cluster().values()
        return True

    def _lose_cluster(self) -> dict[int, str]:
        outlived = self.cluster.stop(but=0 if self._driver is None else self._driver.pid)
        self._kill_driver()
        self.cluster = ChaosCluster(self._rng)
        return outlived

    def _kill_driver(self) -> None:
        if self._driver is not None:
            with contextlib.suppress(ProcessLookupError):
                self._driver.send_signal(signal.SIGKILL)
            self._driver.wait()

    def _wait_for_driver(self) -> None:
        if self._driver is not None and not self._round.trouble:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._driver.wait(timeout=30)
                return
            self._round.trouble = "its driver doesn't end"
        self._kill_driver()

    def _look(self) -> None:
        """Notes what has ended, and which ended trial has begun to work since the last look."""
        started = self._sweep.started()
        again = set(started[self._starts :]) & set(self._seen)
        self._round.repeated += sorted(again)
        self._starts = len(started)
        records = self._sweep.records()
        self._asked |= set(records)
        for name, record in records.items():
            if not record.is_live:
                self._seen.setdefault(name, record)

    def _judge(self) -> None:
        one, result = self._round, self._sweep.result() or {}
        records = self._sweep.records()
        ended = set(self._sweep.ended()) & set(result.get("ended", ()))
        changed = {name for name, seen in self._seen.items() if records.get(name) != seen}
        one.lost = sorted(self._asked - ended | changed)
        one.trials, one.plan = len(records), result.get("plan")
        if result and result["spent"] != self._sweep.spent():
            one.trouble = f"it says that it spent {result['spent']}, not {self._sweep.spent()}"
        one.groups = len(settled(self.cluster.groups))
        one.processes += settled(busy).values()


def drive(folder: Path, address: str, *, is_train: bool) -> None:
    """Runs the sweep in this process: from its start, or from where it was killed."""
    os.environ["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = "10"
    ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    goal = Goal(metric="loss", mode="min", target=0.2, planned_runs=3000)
    if is_train:
        space = {"num_workers": 2, "batch_size": tune.choice([32, 64])}
        run_sweep(folder, _torch_trainable(folder), goal, space, num_samples=2)
        return

    def train(config: dict[str, Any]) -> None:
        speed, log = 16 / config["batch_size"], folder / "work.log"
        train_slowly(log, config, 40, 0.1 + 0.2 * speed, lambda epoch: 1 / (1 + epoch * speed))

    batches = tune.choice([8, 16, 32, 64, 128])
    space = {"num_workers": tune.choice([1, 2]), "batch_size": batches}
    run_sweep(folder, function_trainable(train), goal, space, num_samples=-1)


def _torch_trainable(folder: Path) -> Any:  # noqa: ANN401 - what Tune takes
    def loop(config: dict[str, Any]) -> None:
        import ray.train

        context, checkpoint = ray.train.get_context(), ray.train.get_checkpoint()
        done, is_first = 0, context.get_world_rank() == 0
        if checkpoint:
            with checkpoint.as_directory() as saved:
                done = int(Path(saved, "epoch").read_text())
        if is_first:
            note(folder / "work.log", f"start {context.get_experiment_name()}")
        for epoch in range(done + 1, 31):
            time.sleep(0.2)
            with tempfile.TemporaryDirectory() as fresh:
                Path(fresh, "epoch").write_text(str(epoch))
                last = ray.train.Checkpoint.from_directory(fresh) if is_first else None
                loss = 1 / (1 + epoch * 16 / config["batch_size"])
                ray.train.report({"loss": loss, "epoch": epoch}, checkpoint=last)

    return torch_trainable(loop, failure_config=ray.train.FailureConfig(max_failures=3))


if __name__ == "__main__":
    main()
