"""A small local Ray, for tests that need a real one."""

import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from subprocess import PIPE

import pytest
import ray
from ray._private import ray_constants

from tests.forked.client import VARIABLE

ROOT = Path(__file__).parents[1]
FORKED = ROOT / "tests" / "forked"
_shared = ExitStack()


@contextmanager
def forks() -> Iterator[None]:
    """Forks the workers of each Ray that is started in this context: see `tests.forked`."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = f"{folder}/forks"
        command = [sys.executable, "-P", str(FORKED / "server.py"), path]
        with subprocess.Popen(command, stdin=PIPE, stdout=PIPE) as server:
            assert server.stdin and server.stdout  # noqa: PT018 - as both are asked for
            assert server.stdout.readline()  # it listens, and ends with its standard input
            # Ray joins it to a folder of its own, of which an absolute path leaves nothing.
            patch.setattr(ray_constants, "SETUP_WORKER_FILENAME", str(FORKED / "client.py"))
            patch.setenv(VARIABLE, path)
            yield


@contextmanager
def local_ray() -> Iterator[None]:
    """Runs a Ray of two CPUs, whose processes find this package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.1")
        patch.setenv("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "10")
        patch.setenv("PYTHONPATH", str(ROOT))
        with forks():
            ray.init(
                address="local",
                num_cpus=2,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=100_000_000,
            )
            try:
                yield
            finally:
                ray.shutdown()


def share() -> None:
    """Starts a local Ray, unless the test before has left one."""
    if not ray.is_initialized():
        _shared.enter_context(local_ray())


def address() -> str:
    """Returns where another process joins the Ray that tests share."""
    return str(ray.get_runtime_context().gcs_address)


def end() -> None:
    """Ends the Ray that tests have shared, if there is one."""
    _shared.close()


def wait_for_two_workers() -> None:
    """Waits until nothing holds a CPU of the shared Ray any longer."""
    deadline = time.monotonic() + 60
    while ray.available_resources().get("CPU") != 2.0 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert ray.available_resources().get("CPU") == 2.0
