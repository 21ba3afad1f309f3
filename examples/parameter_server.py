"""Trains with sharded parameter servers, and shows how many of them are enough.

Usage: python examples/parameter_server.py [--smoke] [--storage DIR]

Workers push gradients to servers and pull parameters from them while they compute the next
ones. Each server is a Ray actor behind a link of its own, on which bytes wait for their turn.
From one server on, each further one makes a step faster, until the exchange hides behind the
compute: the formula says where. Real are the actors, their messages and the training; emulated
are the link, the bytes of a parameter and what compute takes beyond a small real part, so that
many workers fit on two cores.
"""

import argparse
import asyncio
import json
import logging
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from raycosttune.advise import parameter_servers, server_seconds

WORKERS = 4
BATCH = 256
PIXELS, CLASSES = 64, 10
PARAMETERS = PIXELS * CLASSES
RATE = 0.5
WARMUP = 1  # in the first step no worker waits for the others
ENOUGH = 0.95  # of the best throughput
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """Is what is emulated.

    Attributes:
        parameter_bytes: Of all parameters together.
        bytes_per_second: Of a server's link.
        compute_seconds: Of a step on a worker.
        steps: Steps timed with each number of servers.
        servers: Numbers of servers.
    """

    parameter_bytes: float = 4e6
    bytes_per_second: float = 20e6
    compute_seconds: float = 0.4
    steps: int = 6
    servers: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)

    @property
    def knee(self) -> int:
        """Fewest servers that hide the exchange."""
        return parameter_servers(
            self.parameter_bytes, WORKERS, self.bytes_per_second, self.compute_seconds
        )

    def predicted_seconds(self, servers: int) -> float:
        """Returns a step with so many servers: the exchange and the compute at once."""
        exchange = server_seconds(self.parameter_bytes, WORKERS, servers, self.bytes_per_second)
        return max(exchange, self.compute_seconds)


SMOKE = Setting(steps=3, servers=(1, 2, 4, 5))


@dataclass(frozen=True)
class Row:
    """Is what some servers showed."""

    servers: int
    step_seconds: float
    predicted_seconds: float
    accuracy: float


@ray.remote(num_cpus=0)
class Server:
    """Holds a shard of the parameters behind a link that moves one message after the other."""

    def __init__(self, bytes_per_second: float) -> None:
        self._rate = bytes_per_second
        self._shard = np.zeros(0)
        self._busy_until = 0.0

    async def hold(self, shard: Floats) -> None:
        """Takes a shard in, in place of the one before."""
        self._shard = shard

    async def exchange(self, gradient: Floats, message_bytes: float) -> Floats:
        """Takes a worker's gradient in and returns the parameters, once both have passed."""
        now = time.monotonic()
        self._busy_until = max(now, self._busy_until) + 2 * message_bytes / self._rate
        await asyncio.sleep(self._busy_until - now)
        self._shard = self._shard - RATE / WORKERS * gradient
        return self._shard


@ray.remote(num_cpus=0)
class Worker:
    """Computes gradients on its part of the digits."""

    def __init__(self, rank: int, setting: Setting) -> None:
        images, labels = load_digits(return_X_y=True)
        self._images = images[rank::WORKERS] / 16
        self._targets = np.eye(CLASSES)[labels[rank::WORKERS]]
        self._setting = setting
        self._random = np.random.default_rng(rank)

    def train(self, servers: Sequence[Any], steps: int) -> tuple[float, float]:
        """Takes steps; returns the median seconds of one, and the accuracy after the last."""
        size = self._setting.parameter_bytes / len(servers)
        parameters = np.zeros(PARAMETERS)
        gradient = self._gradient(parameters)
        took = []
        for _ in range(WARMUP + steps):
            began = time.perf_counter()
            parts = np.array_split(gradient, len(servers))
            pulled = [
                server.exchange.remote(part, size)
                for server, part in zip(servers, parts, strict=True)
            ]
            gradient = self._gradient(parameters)  # while the former one is exchanged
            parameters = np.concatenate(ray.get(pulled))
            took.append(time.perf_counter() - began)
        accuracy = float((self._guess(parameters) == self._targets.argmax(1)).mean())
        return statistics.median(took[WARMUP:]), accuracy

    def _gradient(self, parameters: Floats) -> Floats:
        ends = time.perf_counter() + self._setting.compute_seconds
        chosen = self._random.choice(len(self._images), BATCH // WORKERS)
        images, targets = self._images[chosen], self._targets[chosen]
        scores = images @ parameters.reshape(PIXELS, CLASSES)
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        gradient: Floats = (images.T @ (likely - targets) / len(images)).ravel()
        time.sleep(max(0.0, ends - time.perf_counter()))
        return gradient

    def _guess(self, parameters: Floats) -> NDArray[np.int64]:
        scores = self._images @ parameters.reshape(PIXELS, CLASSES)
        return np.asarray(scores.argmax(1))


def measure(setting: Setting) -> list[Row]:
    """Trains with each number of servers in turn, anew each time."""
    all_servers = [
        Server.remote(setting.bytes_per_second)  # type: ignore[attr-defined]  # Ray adds it
        for _ in range(max(setting.servers))
    ]
    workers = [Worker.remote(rank, setting) for rank in range(WORKERS)]  # type: ignore[attr-defined]  # as above
    _train(all_servers, workers, 1)  # once all have started
    rows = []
    for count in setting.servers:
        told = _train(all_servers[:count], workers, setting.steps)
        seconds = max(each for each, _ in told)
        accuracy = float(np.mean([each for _, each in told]))
        rows.append(Row(count, seconds, setting.predicted_seconds(count), accuracy))
    for actor in (*all_servers, *workers):
        ray.kill(actor)
    return rows


def _train(servers: Sequence[Any], workers: Sequence[Any], steps: int) -> list[tuple[float, float]]:
    """Trains anew on some servers; returns what each worker tells."""
    shards = np.array_split(np.zeros(PARAMETERS), len(servers))
    ray.get([s.hold.remote(shard) for s, shard in zip(servers, shards, strict=True)])
    told: list[tuple[float, float]] = ray.get([w.train.remote(servers, steps) for w in workers])
    return told


def measured_knee(rows: Sequence[Row]) -> int:
    """Returns the fewest servers with nearly the best throughput."""
    best = min(row.step_seconds for row in rows)
    return min(row.servers for row in rows if best / row.step_seconds >= ENOUGH)


def show(setting: Setting, rows: Sequence[Row]) -> None:
    """Prints the throughput against the servers."""
    print(f"{WORKERS} workers, batch {BATCH}, digits: steps a second by parameter servers")
    print("servers  measured  predicted  accuracy")
    for row in rows:
        bar = "#" * round(20 * setting.compute_seconds / row.step_seconds)
        knee = "  <- predicted knee" if row.servers == setting.knee else ""
        print(
            f"{row.servers:>7}  {1 / row.step_seconds:>8.2f}  {1 / row.predicted_seconds:>9.2f}"
            f"  {row.accuracy:>8.2f}  {bar}{knee}"
        )
    print(f"predicted knee: {setting.knee} servers; measured: {measured_knee(rows)}")


def start_ray() -> None:
    """Starts a quiet Ray on this machine, or joins the one at `RAY_ADDRESS`."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    own: dict[str, Any] = {"address": "local", "num_cpus": 2, "include_dashboard": False}
    where = {} if "RAY_ADDRESS" in os.environ else own
    ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)


def main(argv: Sequence[str] | None = None) -> None:
    """Measures, prints and writes the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--smoke", action="store_true", help="fewer steps, under a minute")
    parser.add_argument("--storage", type=Path, default=Path("runs"), help="where results go")
    options = parser.parse_args(argv)
    setting = SMOKE if options.smoke else Setting()
    start_ray()
    rows = measure(setting)
    show(setting, rows)
    options.storage.mkdir(parents=True, exist_ok=True)
    path = options.storage / "parameter_server.json"
    told = {"setting": asdict(setting), "knee": setting.knee, "rows": [asdict(r) for r in rows]}
    path.write_text(json.dumps(told, indent=1) + "\n")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
