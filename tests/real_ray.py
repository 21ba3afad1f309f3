"""A small local Ray, for tests that need a real one."""

import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import ray

ROOT = Path(__file__).parents[1]
FORKED = ROOT / "tests" / "forked"
_shared = ExitStack()
_environment: dict[str, Any] = {}


@contextmanager
def forks() -> Iterator[dict[str, Any]]:
    """Gives the runtime environment of Ray whose workers are forks: see `tests.forked`."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/forks"
        command = [sys.executable, "-P", str(FORKED / "server.py"), path]
        with subprocess.Popen(command, stdin=PIPE, stdout=PIPE) as server:
            assert server.stdin and server.stdout  # noqa: PT018 - as both are asked for
            assert server.stdout.readline()  # it listens, and ends with its standard input
            client = f"{sys.executable} -S -E {FORKED / 'client.py'} {path}"
            yield {"py_executable": client}


@contextmanager
def local_ray() -> Iterator[None]:
    """Runs a Ray of two CPUs, whose processes find this package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.1")
        patch.setenv("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "10")
        patch.setenv("PYTHONPATH", str(ROOT))
        with forks() as environment:
            ray.init(
                address="local",
                num_cpus=2,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=100_000_000,
                runtime_env=environment,
            )
            patch.setitem(_environment, "runtime_env", environment)
            try:
                yield
            finally:
                ray.shutdown()


def share() -> None:
    """Starts a local Ray, unless the test before has left one."""
    if not ray.is_initialized():
        _shared.enter_context(local_ray())


def joining() -> dict[str, str]:
    """Returns variables by which another process joins the Ray that tests share."""
    return {
        "RAY_ADDRESS": str(ray.get_runtime_context().gcs_address),
        "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps(_environment),
    }


def end() -> None:
    """Ends the Ray that tests have shared, if there is one."""
    _shared.close()


def wait_for_two_workers() -> None:
    """Waits until nothing holds a CPU of the shared Ray any longer."""
    deadline = time.monotonic() + 60
    while ray.available_resources().get("CPU") != 2.0 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert ray.available_resources().get("CPU") == 2.0
