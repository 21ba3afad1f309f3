"""One round of chaos: a sweep, what is killed under it, and what is found afterwards."""

import contextlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from chaos_cluster import ChaosCluster, busy, settled
from killed_sweep import SweepFolder

from raycosttune.core.observation import TrialRecord

DRIVER = Path(__file__).with_name("chaos_sweep.py")
KILLS = {"driver": 3, "worker": 3, "node": 2, "head": 1}
GIVE_UP_SECONDS = 300.0
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
        self._has_begun = False
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
            if not self._has_begun and not is_early:
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
        command = [sys.executable, str(DRIVER), folder, self.cluster.address, *train]
        with (self._sweep.folder / "driver.log").open("a") as log:
            self._driver = subprocess.Popen(command, stdout=log, stderr=log)

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
        self._has_begun |= bool(records)
        if self._sweep.is_restorable():  # before that Tune has kept nothing, and begins anew
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
